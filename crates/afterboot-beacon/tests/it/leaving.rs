//! Flush, checkpoint, shutdown and drop, from wherever they are called.

use std::time::Duration;

use afterboot_beacon::wire::Counters;
use afterboot_beacon::{Beacon, BeaconBuilder, BeaconEvent, Next};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::collector::{Mode, Server};
use crate::common::{
    Root, assert_clean, balance, balanced, block_on, drained, event, ms, secs, until, until_arrived,
};

/// More than this no call may take beyond its deadline, on however busy a machine.
const SLACK: Duration = Duration::from_secs(3);

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Posts, then ends this way, and is judged.
struct Case {
    server: Server,
    root: Root,
    beacon: Beacon,
    names: Vec<String>,
}

impl Case {
    fn new(mode: Mode, build: impl FnOnce(BeaconBuilder) -> BeaconBuilder) -> Case {
        let (server, root) = (Server::start(mode), Root::new());
        let beacon = build(root.beacon(&server)).build().expect("a beacon");
        let names: Vec<String> = (0..5).map(|number| format!("e{number}")).collect();
        for name in &names {
            beacon.post("click", &event(name, None));
        }
        balanced(&beacon);
        Case { server, root, beacon, names }
    }

    async fn all_ways(&self, deadline: Duration) {
        let begun = Instant::now();
        let flushed = self.beacon.flush(deadline).await;
        self.judge(flushed.counters, begun, deadline);
        let begun = Instant::now();
        let counters = self.beacon.checkpoint(deadline).await;
        self.judge(counters, begun, deadline);
        let begun = Instant::now();
        let counters = self.beacon.shutdown(deadline).await;
        self.judge(counters, begun, deadline);
    }

    fn all_blocking_ways(&self, deadline: Duration) {
        let begun = Instant::now();
        let flushed = self.beacon.flush_blocking(deadline);
        self.judge(flushed.counters, begun, deadline);
        let begun = Instant::now();
        let counters = self.beacon.checkpoint_blocking(deadline);
        self.judge(counters, begun, deadline);
        let begun = Instant::now();
        let counters = self.beacon.shutdown_blocking(deadline);
        self.judge(counters, begun, deadline);
    }

    fn judge(&self, counters: Counters, begun: Instant, deadline: Duration) {
        let took = begun.elapsed();
        assert!(took < deadline + SLACK, "{took:?} for {deadline:?}");
        let counters = balance(counters);
        assert_eq!(counters.dropped_in_all(), 0, "{counters:?}");
    }

    /// The end: everything is at the server.
    fn arrived(self) {
        let counters = balanced(&self.beacon);
        assert_eq!((counters.acked, counters.posted), (5, 5), "{counters:?}");
        until_arrived(&self.server, &self.names);
        assert_clean(&self.server);
    }

    /// The end with a server that never answers: everything is at the next one.
    fn spooled(self) {
        let counters = balanced(&self.beacon);
        assert_eq!((counters.spooled, counters.posted), (5, 5), "{counters:?}");
        let Case { server, root, beacon, names } = self;
        drop(beacon);
        next_delivers(&server, &root, &names);
    }
}

/// The server is well, and whoever comes next sends what was left.
fn next_delivers(server: &Server, root: &Root, names: &[String]) {
    server.set_mode(Mode::Ok);
    let next = root.beacon(server).build().expect("a beacon");
    until_arrived(server, names);
    balance(next.shutdown_blocking(secs(5)));
    assert_clean(server);
}

/// B2, B4.
#[test]
fn every_way_to_leave_works_on_a_plain_thread() {
    let case = Case::new(Mode::Ok, |builder| builder);
    case.all_blocking_ways(secs(10));
    case.arrived();
    let case = Case::new(Mode::Hung, |builder| builder);
    case.all_blocking_ways(ms(300));
    case.spooled();
}

/// B2, B4: an executor that is not tokio's.
#[test]
fn every_way_to_leave_works_without_tokio() {
    let case = Case::new(Mode::Ok, |builder| builder);
    block_on(case.all_ways(secs(10)));
    case.arrived();
    let case = Case::new(Mode::Hung, |builder| builder);
    block_on(case.all_ways(ms(300)));
    case.spooled();
}

/// B2, B4: the blocking ones too, as the beacon has a thread of its own.
#[test]
fn every_way_to_leave_works_inside_a_runtime() {
    for runtime in [current_thread(), multi_thread()] {
        for blocking in [false, true] {
            let case = Case::new(Mode::Ok, |builder| builder);
            runtime.block_on(async {
                if blocking { case.all_blocking_ways(secs(10)) } else { case.all_ways(secs(10)).await }
            });
            case.arrived();
            let case = Case::new(Mode::Hung, |builder| builder);
            runtime.block_on(async {
                if blocking { case.all_blocking_ways(ms(300)) } else { case.all_ways(ms(300)).await }
            });
            case.spooled();
        }
    }
}

/// B2, B4: from a task of the runtime that the beacon itself runs on.
#[test]
fn every_way_to_leave_works_from_a_task_beside_the_beacon() {
    for runtime in [current_thread(), multi_thread()] {
        for (mode, deadline) in [(Mode::Ok, secs(10)), (Mode::Hung, ms(300))] {
            let here = runtime.handle().clone();
            let case = Case::new(mode.clone(), |builder| builder.runtime(here));
            let case = runtime.block_on(async {
                let task = tokio::spawn(async move {
                    case.all_ways(deadline).await;
                    case
                });
                task.await.expect("no panic")
            });
            if mode == Mode::Ok { case.arrived() } else { case.spooled() }
        }
    }
}

/// B4: what cannot go on meanwhile is waited for until the deadline and no longer.
#[test]
fn a_blocking_flush_on_the_beacons_own_thread_is_bounded() {
    let runtime = current_thread();
    let here = runtime.handle().clone();
    let case = Case::new(Mode::Ok, |builder| builder.runtime(here));
    runtime.block_on(async {
        let begun = Instant::now();
        let flushed = case.beacon.flush_blocking(ms(200));
        assert!(!flushed.complete);
        case.judge(flushed.counters, begun, ms(200));
        case.all_ways(secs(10)).await;
    });
    case.arrived();
}

/// B2: nobody said goodbye. The next process has it.
#[test]
fn a_drop_anywhere_spools_within_its_bound() {
    let (one, many) = (current_thread(), multi_thread());
    type Drops<'a> = Box<dyn Fn(Beacon) + 'a>;
    let places: [(&str, Drops<'_>); 4] = [
        ("on a thread", Box::new(drop)),
        ("inside a current-thread runtime", Box::new(|beacon| one.block_on(async { drop(beacon) }))),
        ("inside a multi-thread runtime", Box::new(|beacon| many.block_on(async { drop(beacon) }))),
        (
            "in a task",
            Box::new(|beacon| {
                many.block_on(many.spawn(async { drop(beacon) })).expect("no panic");
            }),
        ),
    ];
    for (place, drops) in places {
        for mode in [Mode::Ok, Mode::Hung] {
            let Case { server, root, beacon, names } = Case::new(mode, |builder| builder);
            let begun = Instant::now();
            drops(beacon);
            assert!(begun.elapsed() < ms(600) + SLACK, "{place}: {:?}", begun.elapsed());
            next_delivers(&server, &root, &names);
        }
    }
}

/// B2: on a caller's runtime nobody waits, and the runtime saves it as soon as it can.
#[test]
fn a_drop_beside_the_beacon_is_saved_by_the_runtime() {
    for runtime in [current_thread(), multi_thread()] {
        let here = runtime.handle().clone();
        let Case { server, root, beacon, names } = Case::new(Mode::Hung, |builder| builder.runtime(here));
        runtime.block_on(async {
            let (begun, mut steps) = (Instant::now(), beacon.events());
            drop(beacon);
            assert!(begun.elapsed() < secs(1));
            while steps.next().await != Some(Next::Event(BeaconEvent::ShutDown)) {}
        });
        drop(runtime);
        next_delivers(&server, &root, &names);
    }
}

/// A caller's runtime that goes away takes nothing with it that a disk could keep.
#[test]
fn a_lost_runtime_leaves_what_it_had_to_the_spool_and_to_the_count() {
    for durable in [false, true] {
        for runtime in [current_thread(), multi_thread()] {
            let here = runtime.handle().clone();
            let Case { server, root, beacon, mut names } =
                Case::new(Mode::Hung, |builder| builder.runtime(here));
            runtime.block_on(async {
                let first = event("durable", None);
                beacon.post("durable", &first).durable().await.expect("room on the disk");
                names.push("durable".to_owned());
                if durable {
                    // Under way, or not even begun.
                    let under_way = event("under way", None);
                    drop(beacon.post("durable", &under_way).durable());
                }
            });
            drop(runtime);
            let counters = balanced(&beacon);
            assert_eq!((counters.queued, counters.in_flight), (0, 0), "{counters:?}");
            beacon.post("click", &event("late", None));
            let counters = balanced(&beacon);
            assert_eq!(counters.dropped["closed"], 1, "{counters:?}");
            let begun = Instant::now();
            assert!(beacon.flush_blocking(secs(20)).complete);
            balance(beacon.shutdown_blocking(secs(20)));
            drop(beacon);
            assert!(begun.elapsed() < SLACK, "nobody is waited for: {:?}", begun.elapsed());

            server.set_mode(Mode::Ok);
            let next = root.beacon(&server).build().expect("a beacon");
            let arrived = || server.look(|ledger| ledger.accepted.len()) as u64;
            until("what was said to be on disk", || arrived() >= counters.spooled && drained(&next));
            until_arrived(&server, &["durable".to_owned()]);
            let lost = counters.dropped.get("shutdown").copied().unwrap_or(0);
            if lost == 0 {
                until_arrived(&server, &names);
            }
            // Whether a write that was under way came to its end, nobody could know.
            assert!(arrived() <= counters.spooled + lost, "{} arrived: {counters:?}", arrived());
            balance(next.shutdown_blocking(secs(5)));
            assert_clean(&server);
        }
    }
}

fn shutdowns_with_a_hung_server(times: usize) -> Vec<Duration> {
    let deadline = ms(250);
    let mut over: Vec<Duration> = (0..times)
        .map(|_| {
            let (server, root) = (Server::start(Mode::Hung), Root::new());
            let beacon = root.beacon(&server).batch_events(10).build().expect("a beacon");
            for number in 0..300 {
                beacon.post("click", &event(&number.to_string(), None));
            }
            let begun = Instant::now();
            let counters = balance(beacon.shutdown_blocking(deadline));
            assert_eq!((counters.queued, counters.in_flight), (0, 0), "{counters:?}");
            begun.elapsed().saturating_sub(deadline)
        })
        .collect();
    over.sort();
    over
}

/// B5: the margin is one of machines that others use as well.
#[test]
fn shutdowns_with_a_hung_server_end_at_their_deadline() {
    let over = shutdowns_with_a_hung_server(8);
    assert!(over[4] <= ms(500) && over[7] <= secs(3), "{over:?}");
}

/// B5: as promised, on a machine of one's own: `cargo test -p afterboot-beacon --test it -- --ignored at_their_deadline`.
#[test]
#[ignore = "measures time: nothing else may run"]
fn twenty_shutdowns_with_a_hung_server_end_at_their_deadline_exactly() {
    let over = shutdowns_with_a_hung_server(20);
    assert!(over[10] <= ms(100) && over[18] <= secs(1), "{over:?}");
}

/// B5: the request ends, memory does not grow, and who is refused is counted.
#[test]
fn a_hung_server_costs_no_more_memory_than_allowed() {
    let server = Server::start(Mode::Hung);
    let builder = Beacon::builder("shop").endpoint(&server.url()).request_time_limit(ms(100)).max_events(500);
    let beacon = builder.build().expect("a beacon");
    for number in 0..3000 {
        beacon.post("click", &event(&number.to_string(), None));
        if number % 100 == 0 {
            let counters = balanced(&beacon);
            assert!(counters.queued + counters.in_flight <= 500, "{counters:?}");
        }
    }
    until("a second try", || {
        beacon.notify_online();
        server.look(|ledger| {
            ledger.requests.iter().any(|seen| seen.parsed.as_ref().is_some_and(|seen| seen.attempt > 1))
        })
    });
    let counters = balanced(&beacon);
    assert_eq!(counters.dropped["queue_full"], 2500, "{counters:?}");
    server.set_mode(Mode::Ok);
    until("the rest", || {
        beacon.notify_online();
        balanced(&beacon).acked == 500
    });
    balance(beacon.shutdown_blocking(secs(5)));
    assert_clean(&server);
}
