//! Runs one program, and says what must hold: nothing hangs, books balance and agree with what the server said, no event has
//! two names, and what has a receipt arrives, unless the program itself took the files away.

mod disk;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afterboot_beacon::testing::{Machine, ScriptedTransport};
use afterboot_beacon::wire::Counters;
use afterboot_beacon::{Beacon, SpoolOptions};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

use crate::program::{Act, Mood, Program, USERS, Wish};
use crate::server::Server;

/// The answer to a deadline may come so much later.
const GRACE: Duration = Duration::from_millis(100);

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct World<'a> {
    program: &'a Program,
    folder: TempDir,
    /// Each copy of the disk at the moment of a kill is a root of its own.
    kills: u32,
    server: Arc<Mutex<Server>>,
    machine: Machine,
    beacon: Beacon,
    other: Option<Beacon>,
    user: usize,
    next: u32,
    /// Who posted what.
    posted: Vec<(String, usize)>,
    /// How many of them have an end of their own.
    mortals: u64,
    /// Durable posts whose receipts said yes.
    promised: Arc<Mutex<BTreeSet<String>>>,
    /// What the program did to the disk since a post makes its receipt worth nothing.
    epoch: Arc<AtomicU64>,
    /// Of the beacons before: what they counted as lost, acked and rejected.
    lost: u64,
    acked: u64,
    rejected: u64,
}

pub(crate) fn run(program: &Program) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Arc::new(Mutex::new(Server::new(program.seed)));
        let machine = Machine::new();
        let beacon = build(program, folder.path().join("0"), &server, &machine, 0);
        let mut world = World {
            program,
            folder,
            kills: 0,
            server,
            machine,
            beacon,
            other: None,
            user: 0,
            next: 0,
            posted: Vec::new(),
            mortals: 0,
            promised: Arc::default(),
            epoch: Arc::default(),
            lost: 0,
            acked: 0,
            rejected: 0,
        };
        locked(&world.server).mood = program.mood;
        for (at, act) in program.acts.iter().enumerate() {
            world.take(act).await;
            world.look(&format!("after {at}: {act:?}"));
        }
        world.settle().await;
    });
}

fn build(
    program: &Program,
    root: PathBuf,
    server: &Arc<Mutex<Server>>,
    machine: &Machine,
    user: usize,
) -> Beacon {
    let mind = Arc::clone(server);
    let mut builder = Beacon::builder("shop")
        .transport(ScriptedTransport::new(move |seen| locked(&mind).answer(seen)))
        .runtime(tokio::runtime::Handle::current())
        .wall_from_tokio()
        .machine(machine)
        .seed(program.seed)
        .max_events(program.events)
        .batch_events(program.batch_events)
        .batch_bytes(program.batch_bytes)
        .replay_spread(Duration::from_secs(program.spread))
        .spool(SpoolOptions::new(root).max_bytes(program.spool_bytes));
    if program.tight {
        builder = builder.max_bytes(program.batch_bytes);
    }
    let beacon = builder.build().expect("a beacon");
    beacon.set_user(USERS[user]);
    beacon
}

fn lost(counters: &Counters) -> u64 {
    counters.dropped_in_all() + counters.merged + counters.dead + counters.rejected
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl World<'_> {
    fn root(&self) -> PathBuf {
        self.folder.path().join(self.kills.to_string())
    }

    fn post(&mut self, wish: &Wish) {
        let name = format!("e{}", self.next);
        self.next += 1;
        let data = json!({"name": name, "user": USERS[self.user], "pad": "x".repeat(wish.size)});
        self.posted.push((name.clone(), self.user));
        self.mortals += u64::from(wish.keep.is_some());
        let key = wish.merge.map(|key| key.to_string());
        let mut post = self.beacon.post("r\n\"", &data);
        if wish.vital {
            post = post.vital();
        }
        if wish.signal {
            post = post.urgent();
        }
        if let Some(delay) = wish.delay {
            post = post.delay(delay);
        }
        if let Some(keep) = wish.keep {
            post = post.expiry(keep);
        }
        if let Some(key) = &key {
            post = post.merge_by(key);
        }
        if wish.durable {
            let receipt = post.durable();
            let (promised, epoch) = (Arc::clone(&self.promised), Arc::clone(&self.epoch));
            let posted_in = epoch.load(Ordering::Relaxed);
            let mortal = wish.keep.is_some();
            tokio::spawn(async move {
                if receipt.await.is_ok() && !mortal && epoch.load(Ordering::Relaxed) == posted_in {
                    locked(&promised).insert(name);
                }
            });
        }
    }

    async fn take(&mut self, act: &Act) {
        let beacon = self.beacon.clone();
        match *act {
            Act::Post(ref wish) => self.post(wish),
            Act::Many(count, vital) => (0..count).for_each(|_| self.post(&Wish::small(vital))),
            Act::Wait(time) => sleep(ms(time)).await,
            Act::User(user) => {
                self.user = user;
                beacon.set_user(USERS[user]);
            }
            Act::Session(session) => beacon.set_session(session.then_some("s")),
            Act::Online(false) => {
                beacon.notify_offline();
                self.other.iter().for_each(Beacon::notify_offline);
                locked(&self.server).offline.get_or_insert_with(Instant::now);
            }
            Act::Online(true) => self.online(),
            Act::Server(mood) => locked(&self.server).mood = mood,
            Act::Flush { ms: time, waits } => {
                let flush = async move { drop(beacon.flush(ms(time)).await) };
                in_time(flush, ms(time), waits).await;
            }
            Act::Checkpoint { ms: time, waits } => {
                let checkpoint = async move { assert!(beacon.checkpoint(ms(time)).await.balances()) };
                in_time(checkpoint, ms(time), waits).await;
            }
            Act::Erase(user) => self.erase(user).await,
            Act::ReplayDead => {
                let letters = beacon.dead_letters(None, 100).await.unwrap_or_default();
                let ids: Vec<_> = letters.iter().map(|letter| letter.id()).collect();
                let _ = beacon.replay_dead_letters(&ids).await;
            }
            Act::PurgeDead => drop(beacon.purge_dead_letters(None).await),
            Act::Another if self.other.is_none() => {
                let another = self.build();
                if locked(&self.server).offline.is_some() {
                    another.notify_offline();
                }
                self.other = Some(std::mem::replace(&mut self.beacon, another));
            }
            Act::Another => {}
            Act::Restart { ms: time, says_so } => {
                drop(beacon);
                self.restart(ms(time), says_so).await;
            }
            Act::Kill => {
                drop(beacon);
                self.kill().await;
            }
            Act::Remove(what) => {
                self.spoil().await;
                disk::remove(&self.root(), what);
            }
            Act::Corrupt(how) => {
                self.spoil().await;
                disk::corrupt(&self.root(), how);
            }
            Act::Lock(time) => disk::lock(&self.root(), ms(time)),
            Act::Clock(by) => self.machine.set_wall_by(by),
            Act::Threads(there_are) => self.machine.refuse_threads(!there_are),
        }
    }

    fn build(&self) -> Beacon {
        build(self.program, self.root(), &self.server, &self.machine, self.user)
    }

    fn online(&self) {
        locked(&self.server).offline = None;
        self.beacon.notify_online();
        self.other.iter().for_each(Beacon::notify_online);
    }

    /// From here on nothing holds of what lies on the disk.
    async fn spoil(&mut self) {
        // What is being written at that moment may have its receipt.
        sleep(Duration::from_secs(1)).await;
        self.forget_promises();
    }

    fn forget_promises(&mut self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        locked(&self.promised).clear();
        // What lay there of processes that are gone is in no ledger any more.
        self.lost = u64::MAX;
    }

    async fn erase(&mut self, user: usize) {
        let theirs = self.posted.iter().filter(|(_, whose)| *whose == user);
        let theirs: Vec<String> = theirs.map(|(name, _)| name.clone()).collect();
        let erased = self.beacon.erase_user(USERS[user].unwrap_or_default()).await;
        let mut promised = locked(&self.promised);
        theirs.iter().for_each(|name| {
            promised.remove(name);
        });
        // What another process has is not erased while it lives.
        if erased.is_ok() && self.other.is_none() {
            let now = Instant::now();
            locked(&self.server).erased.extend(theirs.into_iter().map(|name| (name, now)));
        }
    }

    /// The books of a beacon that is gone.
    fn close(&mut self, counters: &Counters) {
        self.lost = self.lost.saturating_add(lost(counters));
        self.acked += counters.acked;
        self.rejected += counters.rejected;
    }

    async fn restart(&mut self, budget: Duration, says_so: bool) {
        if says_so {
            let began = Instant::now();
            let counters = self.beacon.shutdown(budget).await;
            assert!(began.elapsed() <= budget + GRACE, "a shutdown took {:?}", began.elapsed());
            assert!(counters.balances() && counters.queued + counters.in_flight == 0, "{counters:?}");
            self.close(&counters);
        } else {
            self.close(&self.beacon.counters());
            // What was lost on the way out is not told to anybody.
            self.lost = u64::MAX;
        }
        self.beacon = self.build();
        locked(&self.server).offline = None;
        self.other.iter().for_each(Beacon::notify_online);
        // A dropped beacon has half a second.
        sleep(Duration::from_secs(6)).await;
    }

    /// What lies on the disk now is all that is left.
    async fn kill(&mut self) {
        if self.other.is_some() {
            return;
        }
        for vital in [true, false, true] {
            self.post(&Wish { durable: true, ..Wish::small(vital) });
        }
        // Nothing is half written, as far as this process can tell.
        sleep(Duration::from_secs(1)).await;
        let before = self.root();
        self.kills += 1;
        disk::copy(&before, &self.root());
        self.epoch.fetch_add(1, Ordering::Relaxed);
        locked(&self.server).killed.insert(self.beacon.stream().to_string());
        let counters = self.beacon.counters();
        self.close(&counters);
        // What was in memory.
        self.lost = u64::MAX;
        let _ = self.beacon.shutdown(Duration::ZERO).await;
        self.beacon = self.build();
        locked(&self.server).offline = None;
        sleep(Duration::from_secs(1)).await;
    }

    fn look(&self, when: &str) {
        let counters = self.beacon.counters();
        assert!(counters.balances(), "{when}: {counters:?}");
        assert!(self.other.as_ref().is_none_or(|other| other.counters().balances()), "{when}");
        // Whatever the wall clock was set to: nothing else is as old as that.
        for beacon in [&self.beacon].into_iter().chain(&self.other) {
            let expired = beacon.counters().dropped.get("expired").copied().unwrap_or_default();
            assert!(expired <= self.mortals, "{when}: {expired} expired, {} could", self.mortals);
        }
        let server = locked(&self.server);
        assert!(server.wrong.is_empty(), "{when}: {:#?}", server.wrong);
        let others = self.other.as_ref().map(|other| other.counters());
        let acked = self.acked + counters.acked + others.as_ref().map_or(0, |other| other.acked);
        let rejected = self.rejected + counters.rejected + others.as_ref().map_or(0, |other| other.rejected);
        assert!(acked <= server.said_accepted, "{when}: {acked} acked, {} were", server.said_accepted);
        assert!(
            rejected <= server.said_rejected,
            "{when}: {rejected} rejected, {} were",
            server.said_rejected
        );
    }

    /// The server is well again and everybody comes by.
    async fn settle(&mut self) {
        locked(&self.server).mood = Mood::Well;
        self.machine.refuse_threads(false);
        self.online();
        if let Some(other) = self.other.take() {
            let counters = other.shutdown(Duration::from_secs(20)).await;
            assert!(counters.balances() && counters.queued + counters.in_flight == 0, "{counters:?}");
            self.close(&counters);
        }
        for user in [1, 2, 3, 0, 1] {
            self.user = user;
            self.beacon.set_user(USERS[user]);
            let before = locked(&self.server).requests;
            sleep(Duration::from_secs(2 * 3600)).await;
            // What may wait for ever leaves while its user is there.
            let _ = self.beacon.flush(Duration::from_secs(60)).await;
            sleep(Duration::from_secs(120)).await;
            let requests = locked(&self.server).requests - before;
            assert!(requests < 20_000, "{requests} requests");
        }
        // What was declared travels with the next batch.
        for _ in 0..5 {
            self.post(&Wish::small(true));
            sleep(Duration::from_secs(120)).await;
        }
        let _ = self.beacon.flush(Duration::from_secs(60)).await;
        self.look("at the end");
        let counters = self.beacon.shutdown(Duration::from_secs(20)).await;
        assert!(counters.balances(), "{counters:?}");
        assert_eq!((counters.queued, counters.in_flight, counters.spooled), (0, 0, 0), "{counters:?}");
        let server = locked(&self.server);
        assert!(server.wrong.is_empty(), "{:#?}", server.wrong);
        let missing = self.posted.iter().filter(|(name, _)| !server.taken.contains(name)).count() as u64;
        let lost = self.lost.saturating_add(lost(&counters) + server.elsewhere.len() as u64);
        assert!(missing <= lost, "{missing} never came, {lost} are counted: {counters:?}");
        for name in locked(&self.promised).iter().filter(|_| self.program.is_roomy()) {
            let came = server.taken.contains(name) || server.judged.contains(name);
            assert!(came, "{name} had a receipt and never came: {counters:?}");
        }
    }
}

async fn in_time(what: impl Future<Output = ()> + Send + 'static, budget: Duration, waits: bool) {
    let asked = tokio::spawn(what);
    if waits {
        timeout(budget + GRACE, asked).await.expect("an answer within its bound").expect("no panic");
    }
}
