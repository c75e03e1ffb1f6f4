//! A whole beacon, a real spool and a server that answers anything, in any order of calls, under a paused clock.

mod far;
mod steps;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use afterboot_beacon::testing::ScriptedTransport;
use afterboot_beacon::wire::Counters;
use afterboot_beacon::{Beacon, SpoolOptions};
use proptest::prelude::*;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

use self::far::{Far, Mood};
use self::steps::{Setting, Step, USERS, Wish, setting, step};

/// Real time that a case may take. One that spins takes for ever, because virtual time then stands still.
const PATIENCE: Duration = Duration::from_secs(60);

type Shared<T> = Arc<Mutex<T>>;

fn locked<T>(shared: &Shared<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct World<'a> {
    setting: &'a Setting,
    root: &'a Path,
    far: Shared<Far>,
    beacon: Beacon,
    other: Option<Beacon>,
    user: usize,
    next: u32,
    /// Who posted what.
    posted: Vec<(String, usize)>,
    /// Durable posts whose receipts said yes.
    promised: Shared<BTreeSet<String>>,
    /// What earlier beacons left behind as lost.
    lost: u64,
}

fn build(setting: &Setting, root: &Path, far: &Shared<Far>, user: usize) -> Beacon {
    let mind = Arc::clone(far);
    let server = ScriptedTransport::new(move |seen| locked(&mind).answer(seen));
    let mut builder = Beacon::builder("shop")
        .transport(server)
        .runtime(tokio::runtime::Handle::current())
        .wall_from_tokio()
        .seed(setting.seed)
        .max_events(setting.events)
        .batch_events(setting.batch_events)
        .batch_bytes(setting.batch_bytes)
        .replay_spread(Duration::from_secs(setting.spread));
    if setting.tight {
        builder = builder.max_bytes(setting.batch_bytes);
    }
    if let Some(bytes) = setting.spool {
        builder = builder.spool(SpoolOptions::new(root.join("spool")).max_bytes(bytes));
    }
    let beacon = builder.build().expect("a beacon");
    beacon.set_user(USERS[user]);
    beacon
}

fn lost(counters: &Counters) -> u64 {
    counters.dropped_in_all() + counters.merged + counters.dead + counters.rejected
}

impl World<'_> {
    fn post(&mut self, wish: &Wish) {
        let name = format!("e{}", self.next);
        self.next += 1;
        let data = json!({"name": name, "user": USERS[self.user], "pad": "x".repeat(wish.size as usize)});
        self.posted.push((name.clone(), self.user));
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
            let promised = Arc::clone(&self.promised);
            let mortal = wish.keep.is_some();
            tokio::spawn(async move {
                if receipt.await.is_ok() && !mortal {
                    locked(&promised).insert(name);
                }
            });
        }
    }

    async fn take(&mut self, step: &Step) {
        let ms = |ms: u32| Duration::from_millis(u64::from(ms));
        let beacon = self.beacon.clone();
        match *step {
            Step::Post(ref wish) => self.post(wish),
            Step::Many(count, vital) => {
                for _ in 0..count {
                    self.post(&Wish::small(vital));
                }
            }
            Step::Wait(time) => sleep(ms(time)).await,
            Step::User(user) => {
                self.user = user;
                beacon.set_user(USERS[user]);
            }
            Step::Session(session) => beacon.set_session((session > 0).then_some("s")),
            Step::Offline => {
                beacon.notify_offline();
                self.other.iter().for_each(Beacon::notify_offline);
                locked(&self.far).offline.get_or_insert_with(Instant::now);
            }
            Step::Online => {
                locked(&self.far).offline = None;
                beacon.notify_online();
                self.other.iter().for_each(Beacon::notify_online);
            }
            Step::Server(mood) => locked(&self.far).mood = mood,
            Step::Flush { ms: time, waits } => {
                let flush = async move { drop(beacon.flush(ms(time)).await) };
                in_time(flush, ms(time), waits).await;
            }
            Step::Checkpoint { ms: time, waits } => {
                let checkpoint = async move { assert!(beacon.checkpoint(ms(time)).await.balances()) };
                in_time(checkpoint, ms(time), waits).await;
            }
            Step::Erase(user) => self.erase(user).await,
            Step::Replay => {
                let letters = beacon.dead_letters(None, 100).await.unwrap_or_default();
                let ids: Vec<_> = letters.iter().map(|letter| letter.id()).collect();
                let _ = beacon.replay_dead_letters(&ids).await;
            }
            Step::Purge => drop(beacon.purge_dead_letters(None).await),
            Step::Another if self.other.is_none() => {
                let another = build(self.setting, self.root, &self.far, self.user);
                if locked(&self.far).offline.is_some() {
                    another.notify_offline();
                }
                self.other = Some(std::mem::replace(&mut self.beacon, another));
            }
            Step::Another => {}
            Step::Vanish => {
                // What is being written at that moment may have its receipt.
                sleep(Duration::from_secs(1)).await;
                let _ = std::fs::remove_dir_all(self.root.join("spool"));
                locked(&self.promised).clear();
                // What lay there of processes that are gone is in no ledger any more.
                self.lost = u64::MAX;
            }
            Step::Restart { ms: time, says_so } => {
                drop(beacon);
                self.restart(ms(time), says_so).await;
            }
        }
    }
}

async fn in_time(what: impl Future<Output = ()> + Send + 'static, budget: Duration, waits: bool) {
    let asked = tokio::spawn(what);
    if waits {
        let limit = budget + Duration::from_millis(100);
        timeout(limit, asked).await.expect("an answer within its bound").expect("no panic");
    }
}

impl World<'_> {
    async fn erase(&mut self, user: usize) {
        let theirs: Vec<String> =
            self.posted.iter().filter(|(_, whose)| *whose == user).map(|(name, _)| name.clone()).collect();
        let erased = self.beacon.erase_user(USERS[user].unwrap_or_default()).await;
        let mut promised = locked(&self.promised);
        theirs.iter().for_each(|name| {
            promised.remove(name);
        });
        // What another process has is not erased while it lives.
        if erased.is_ok() && self.other.is_none() {
            locked(&self.far).erased.extend(theirs.into_iter().map(|name| (name, Instant::now())));
        }
    }

    async fn restart(&mut self, budget: Duration, says_so: bool) {
        let begun = Instant::now();
        if says_so {
            let counters = self.beacon.shutdown(budget).await;
            assert!(begun.elapsed() <= budget + Duration::from_millis(100), "{:?}", begun.elapsed());
            assert!(counters.balances() && counters.queued + counters.in_flight == 0, "{counters:?}");
            self.lost = self.lost.saturating_add(lost(&counters));
        } else {
            // What was lost on the way out is not told to anybody.
            self.lost = u64::MAX;
        }
        self.beacon = build(self.setting, self.root, &self.far, self.user);
        locked(&self.far).offline = None;
        // A dropped beacon has half a second.
        sleep(Duration::from_secs(6)).await;
    }

    fn look(&self) {
        let counters = self.beacon.counters();
        assert!(counters.balances(), "{counters:?}");
        assert!(self.other.as_ref().is_none_or(|other| other.counters().balances()));
        let far = locked(&self.far);
        assert!(far.wrong.is_empty(), "{:#?}", far.wrong);
    }

    /// The server is well again and everybody comes by.
    async fn settle(&mut self) {
        locked(&self.far).mood = Mood::Well;
        locked(&self.far).offline = None;
        self.beacon.notify_online();
        if let Some(other) = self.other.take() {
            let counters = other.shutdown(Duration::from_secs(20)).await;
            assert!(counters.balances() && counters.queued + counters.in_flight == 0, "{counters:?}");
            self.lost = self.lost.saturating_add(lost(&counters));
        }
        for user in [1, 2, 3, 0, 1] {
            self.user = user;
            self.beacon.set_user(USERS[user]);
            let before = locked(&self.far).requests;
            sleep(Duration::from_secs(2 * 3600)).await;
            // What may wait for ever leaves while its user is there.
            let _ = self.beacon.flush(Duration::from_secs(60)).await;
            sleep(Duration::from_secs(120)).await;
            let requests = locked(&self.far).requests - before;
            assert!(requests < 20_000, "{requests} requests");
        }
        // What was declared travels with the next batch.
        for _ in 0..5 {
            self.post(&Wish::small(true));
            sleep(Duration::from_secs(120)).await;
        }
        let counters = self.beacon.flush(Duration::from_secs(60)).await.counters;
        assert!(counters.balances(), "{counters:?}");
        assert_eq!((counters.queued, counters.in_flight, counters.spooled), (0, 0, 0), "{counters:?}");
        let far = locked(&self.far);
        assert!(far.wrong.is_empty(), "{:#?}", far.wrong);
        let missing = self.posted.iter().filter(|(name, _)| !far.taken.contains(name)).count() as u64;
        let lost = self.lost.saturating_add(lost(&counters) + far.elsewhere.len() as u64);
        assert!(missing <= lost, "{missing} never came, {lost} are counted: {counters:?}");
        // A spool that is full may give up what it holds.
        let roomy = self.setting.spool.is_some_and(|bytes| bytes > 1 << 20);
        for name in locked(&self.promised).iter().filter(|_| roomy) {
            let came = far.taken.contains(name) || far.judged.contains(name);
            assert!(came, "{name} had a receipt and never came: {counters:?}");
        }
    }
}

fn run(setting: &Setting, steps: &[Step]) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    let root = tempfile::tempdir().expect("a folder");
    runtime.block_on(async {
        let far = Arc::new(Mutex::new(Far::new(setting.seed)));
        let mut world = World {
            setting,
            root: root.path(),
            beacon: build(setting, root.path(), &far, 0),
            other: None,
            far,
            user: 0,
            next: 0,
            posted: Vec::new(),
            promised: Shared::default(),
            lost: 0,
        };
        for step in steps {
            world.take(step).await;
            world.look();
        }
        world.settle().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    /// B1, B2, B6, B18, B23: whatever is called and whatever is answered, in whatever order.
    #[test]
    fn every_event_arrives_or_is_counted(
        setting in setting(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let (done, is_done) = mpsc::channel();
        let case = (setting.clone(), steps.clone());
        let thread = thread::spawn(move || {
            run(&setting, &steps);
            let _ = done.send(());
        });
        match is_done.recv_timeout(PATIENCE) {
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end after {PATIENCE:?}: {case:#?}"),
            _ => prop_assert!(thread.join().is_ok(), "see above"),
        }
    }
}
