//! One run: a server, a beacon, many events, a shutdown; then the two ledgers are held against each other.

use std::thread;
use std::time::{Duration, Instant};

use afterboot_beacon::wire::Counters;
use afterboot_beacon::{Beacon, SpoolOptions};
use serde::Serialize;
use tempfile::TempDir;

use super::scene::{Room, Scene, Torture};
use crate::collector::{Ledger, Mode, Server};

const APP: &str = "shop";
const ROUTE: &str = "order_paid";
const USER: &str = "user-12345";

/// The same event as the floor's.
#[derive(Serialize)]
struct Order {
    path: &'static str,
    amount: u32,
    currency: &'static str,
    ok: bool,
}

const ORDER: Order = Order { path: "/checkout/confirm", amount: 1999, currency: "EUR", ok: true };

/// What a server that takes events is given to take all of them: what only a broken run waits for, or a machine with much
/// else to do.
const DRAIN_WITHIN: Duration = Duration::from_secs(60);
/// One that asks again for a part of each batch is not waited for to the end where the rest is safe on disk.
const PARTIAL_WITHIN: Duration = Duration::from_secs(12);
/// What one that takes none is given to refuse a few requests.
const REFUSE_FOR: Duration = Duration::from_millis(1500);
/// What the next beacon is given to deliver what the one before it spooled, likewise.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);
const SHUTDOWN: Duration = Duration::from_secs(5);

/// Two requests of 100 events are under way at most: when they are called off, the server may have them.
const CALLED_OFF: u64 = 200;

/// The turns of a flapping server.
const TURNS: [(Mode, Duration); 6] = [
    (Mode::Ok, Duration::from_millis(300)),
    (Mode::Flap(3), Duration::from_millis(400)),
    (Mode::Refuse, Duration::from_millis(150)),
    (Mode::LostAck, Duration::from_millis(200)),
    (Mode::Ok, Duration::from_millis(300)),
    (Mode::Busy, Duration::from_millis(100)),
];
/// While a server flaps, events come in so many portions, with a pause between two.
const PORTIONS: u64 = 50;
const PAUSE: Duration = Duration::from_millis(60);

pub(crate) struct Outcome {
    pub(crate) counters: Counters,
    pub(crate) server: Ledger,
    /// What each post took, in nanoseconds.
    pub(crate) times: Vec<u64>,
    pub(crate) shutdown: Duration,
    /// Why the run failed.
    pub(crate) faults: Vec<String>,
}

pub(crate) fn run(scene: &Scene) -> Outcome {
    let server = Server::start(scene.torture.server());
    let dir = tempfile::tempdir().expect("a folder for the spool");
    let beacon = beacon(scene, &server, &dir);
    let stream = beacon.stream();
    let times = match scene.torture {
        Torture::Flap => post_while_flapping(&beacon, &server, scene.events),
        _ => post_all(&beacon, 0..scene.events),
    };
    let drained = scene.torture.takes_events() && drain(&beacon, scene);
    if !scene.torture.takes_events() {
        sleep(REFUSE_FOR);
    }
    let begun = now();
    let counters = beacon.shutdown_blocking(SHUTDOWN);
    let shutdown = begun.elapsed();
    let ledger = server.ledger();
    let mut faults = faults(scene, &counters, &ledger, drained);
    let missing = ledger.missing(APP, stream);
    if drained && scene.room == Room::Enough && !missing.is_empty() {
        faults.push(format!("the server misses {} numbers that nobody declared", missing.len()));
    }
    if counters.spooled > 0 {
        faults.extend(bequest(scene, &counters, &server, &dir));
    }
    Outcome { counters, server: ledger, times, shutdown, faults }
}

/// What the beacon left on disk is taken over by the next one and arrives, now that the server is well.
fn bequest(scene: &Scene, left: &Counters, server: &Server, dir: &TempDir) -> Option<String> {
    let before = server.look(|ledger| ledger.accepted.len()) as u64;
    server.set_mode(Mode::Ok);
    let heir = beacon(scene, server, dir);
    let until = now() + ARRIVES_WITHIN;
    let has_more = |heir: &Counters| heir.spooled + heir.queued + heir.in_flight > 0;
    while now() < until && {
        let counters = heir.counters();
        counters.acked < left.spooled || has_more(&counters)
    } {
        sleep(Duration::from_millis(10));
    }
    let counters = heir.shutdown_blocking(SHUTDOWN);
    let arrived = server.look(|ledger| ledger.accepted.len()) as u64 - before;
    // A request that was called off may have arrived. A row that was being written when time was up is on disk, and is
    // counted as dropped.
    let late = left.dropped.get("shutdown").copied().unwrap_or_default();
    let least = left.spooled.saturating_sub(CALLED_OFF);
    let right = (least..=left.spooled + late).contains(&arrived)
        && (left.spooled..=left.spooled + late).contains(&counters.adopted)
        && counters.acked == counters.adopted
        && counters.balances()
        && server.look(|ledger| ledger.wrong.is_empty() && ledger.conflicts.is_empty());
    let summary = || server.look(Ledger::summary);
    (!right).then(|| {
        format!(
            "{} were spooled, and {arrived} of them arrived later: {counters:?}, {}",
            left.spooled,
            summary()
        )
    })
}

fn beacon(scene: &Scene, server: &Server, dir: &TempDir) -> Beacon {
    let mut builder = Beacon::builder(APP)
        .endpoint(&server.url())
        .user(USER)
        .request_time_limit(Duration::from_secs(1))
        .replay_spread(Duration::from_millis(100));
    if scene.room == Room::Enough {
        builder = builder.max_events(2_000_000).max_bytes(1 << 30);
    }
    if scene.spool {
        builder = builder.spool(SpoolOptions::new(dir.path().join("spool")).max_bytes(1 << 30));
    }
    builder.build().expect("a valid configuration")
}

/// Basic events, with one of ten vital, and one of 25 that replaces the one before it.
fn post_all(beacon: &Beacon, seqs: std::ops::Range<u64>) -> Vec<u64> {
    let mut times = Vec::with_capacity(seqs.clone().count());
    for seq in seqs {
        let begun = now();
        let post = beacon.post(ROUTE, &ORDER);
        match seq {
            _ if seq % 10 == 0 => drop(post.vital()),
            _ if seq % 25 == 7 => drop(post.merge_by("volume")),
            _ => drop(post),
        }
        times.push(begun.elapsed().as_nanos() as u64);
    }
    times
}

fn post_while_flapping(beacon: &Beacon, server: &Server, events: u64) -> Vec<u64> {
    let mut turns = TURNS.iter().cycle();
    let mut turn_ends = now();
    let mut times = Vec::with_capacity(events as usize);
    for portion in 0..PORTIONS {
        if turn_ends <= now()
            && let Some((mode, lasts)) = turns.next()
        {
            server.set_mode(mode.clone());
            turn_ends = now() + *lasts;
        }
        times.extend(post_all(beacon, events * portion / PORTIONS..events * (portion + 1) / PORTIONS));
        sleep(PAUSE);
    }
    server.set_mode(Mode::Ok);
    times
}

/// Waits until every event is settled. Are they?
fn drain(beacon: &Beacon, scene: &Scene) -> bool {
    let until = now() + if scene.may_leave_a_rest() { PARTIAL_WITHIN } else { DRAIN_WITHIN };
    loop {
        let counters = beacon.flush_blocking(Duration::from_millis(20)).counters;
        if counters.queued + counters.in_flight + counters.spooled == 0 {
            return true;
        }
        if now() >= until {
            return false;
        }
        if scene.torture == Torture::Partial {
            // Each batch holds something to be sent again, for which the beacon gives the server a second or more. Told
            // that the network is back, it tries at once.
            beacon.notify_online();
        }
        // A flush that is complete, because all is on disk, does not wait.
        sleep(Duration::from_millis(2));
    }
}

fn faults(scene: &Scene, counters: &Counters, server: &Ledger, drained: bool) -> Vec<String> {
    let Counters { posted, acked, rejected, merged, dead, spooled, queued, in_flight, .. } = *counters;
    let unique = server.accepted.len() as u64;
    let server_rejected = server.rejected.len() as u64;
    let shutdown = counters.dropped.get("shutdown").copied().unwrap_or_default();
    // Events whose ack may have been lost with a request that the shutdown called off.
    let unsure = if drained { 0 } else { CALLED_OFF };
    let mut faults = Vec::new();
    let mut hold = |right: bool, fault: String| {
        if !right {
            faults.push(fault);
        }
    };
    hold(counters.balances(), format!("the ledger does not balance: {counters:?}"));
    hold(posted == scene.events, format!("posted is {posted}, and {} were", scene.events));
    hold(
        queued + in_flight == 0,
        format!("{queued} are queued and {in_flight} in flight after the shutdown"),
    );
    hold(dead == 0, format!("{dead} are dead, and no mode refuses an event for ever"));
    hold(
        (acked..=acked + unsure).contains(&unique),
        format!("acked is {acked}, and the server has {unique}: up to {unsure} more are explained"),
    );
    hold(
        (rejected..=rejected + unsure).contains(&server_rejected),
        format!("rejected is {rejected}, and the server rejected {server_rejected}"),
    );
    hold(server.conflicts.is_empty(), format!("a number came under two ids: {:?}", server.conflicts.first()));
    hold(server.wrong.is_empty(), format!("the contract was broken: {:?}", server.wrong.first()));
    hold(
        drained || !scene.torture.takes_events() || scene.may_leave_a_rest(),
        format!("not everything was settled within {DRAIN_WITHIN:?}: {counters:?}"),
    );
    hold(merged > 0, "nothing was merged".to_owned());
    if scene.room == Room::Enough {
        let (place, there) = match (scene.torture, scene.spool) {
            (Torture::Partial, _) => ("acked, rejected or spooled", acked + rejected + spooled),
            (mode, _) if mode.takes_events() => ("acked", acked),
            (_, true) => ("spooled", spooled),
            (_, false) => ("dropped at the shutdown", shutdown),
        };
        let all = posted - merged;
        hold(there == all, format!("{there} are {place}, and {all} should be: {counters:?}"));
    }
    faults
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a real server and a real disk take real time")]
    Instant::now()
}

fn sleep(time: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "this thread is the application, which does something else"
    )]
    thread::sleep(time);
}
