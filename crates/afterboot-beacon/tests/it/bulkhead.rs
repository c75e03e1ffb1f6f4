//! Disk and network share no threads, and a thread that cannot be had is trouble that passes.
//!
//! Each test is a process of its own, in which calls of the system hang or fail.

use std::time::Duration;

use afterboot_beacon::{Beacon, BeaconBuilder, NotDurable, SpoolState};
use tokio::time::Instant;

use crate::collector::{Mode, Server};
use crate::common::{LONG, balance, balanced, event, ms, secs, until};
use crate::shim::{Shim, own_threads, threads};

/// Within a second of its recovery a disk is in use again; the rest is for a machine that is busy.
const SOON: Duration = Duration::from_secs(4);

fn beacon(shim: &Shim, url: &str) -> BeaconBuilder {
    Beacon::builder("shop").endpoint(url).spool(shim.options()).replay_spread(Duration::ZERO).seed(1)
}

/// The same server, by a name that has to be looked up.
fn by_name(server: &Server) -> String {
    server.url().replace("127.0.0.1", "localhost")
}

fn durable(beacon: &Beacon, name: &str) -> Result<(), NotDurable> {
    beacon.post("durable", &event(name, None)).urgent().durable().wait_blocking(LONG)
}

fn trouble(beacon: &Beacon) -> Option<String> {
    match beacon.health().spool {
        SpoolState::Failing(why) => Some(why),
        _ => None,
    }
}

/// Posts until the disk takes one. How many it did not take.
fn until_durable(beacon: &Beacon, within: Duration) -> u64 {
    let begun = Instant::now();
    let mut refused = 0;
    while let Err(why) = durable(beacon, "again") {
        assert!(begun.elapsed() < within, "still {why} after {within:?}: {:?}", beacon.health());
        refused += 1;
        std::thread::park_timeout(ms(50));
    }
    refused
}

/// Everything that was posted comes to be at the server, and nothing is left.
fn all_arrive(beacon: &Beacon, posted: u64) {
    until("delivery of all", || {
        let counters = balanced(beacon);
        beacon.notify_online();
        counters.acked == posted && counters.queued + counters.in_flight + counters.spooled == 0
    });
}

/// B1, B6, B31: the disk's first call needs a thread, and there is none to be had.
#[test]
fn a_thread_that_cannot_be_had_for_the_disk_is_trouble_that_passes() {
    let name = "bulkhead::a_thread_that_cannot_be_had_for_the_disk_is_trouble_that_passes";
    let Some(shim) = Shim::enter(name) else { return };
    let server = Server::start(Mode::Ok);
    // The beacon's own.
    let refused = shim.allow_threads(1);
    let beacon = beacon(&shim, &server.url()).build().expect("a beacon");
    let receipt = durable(&beacon, "first");
    assert!(matches!(&receipt, Err(NotDurable::Disk(why)) if why.contains("thread")), "{receipt:?}");
    assert!(trouble(&beacon).is_some_and(|why| why.contains("thread")), "{:?}", beacon.health());
    all_arrive(&beacon, 1);
    drop(refused);
    let refused = until_durable(&beacon, SOON);
    assert_eq!(trouble(&beacon), None);
    all_arrive(&beacon, refused + 2);
    let counters = balance(beacon.shutdown_blocking(secs(5)));
    assert_eq!((counters.acked, counters.dropped_in_all()), (refused + 2, 0), "{counters:?}");
    assert_eq!(shim.processes().len(), 0);
}

/// B6, B31: the end comes while no thread can be had.
#[test]
fn leaving_without_a_thread_for_the_disk_keeps_its_budget_and_counts_what_is_lost() {
    let name = "bulkhead::leaving_without_a_thread_for_the_disk_keeps_its_budget_and_counts_what_is_lost";
    let Some(shim) = Shim::enter(name) else { return };
    let server = Server::start(Mode::Refuse);
    let _refused = shim.allow_threads(1);
    let beacon = beacon(&shim, &server.url()).build().expect("a beacon");
    for number in 0..5 {
        beacon.post("click", &event(&number.to_string(), None));
    }
    let counters = balance(beacon.checkpoint_blocking(ms(500)));
    assert_eq!((counters.posted, counters.queued), (5, 5), "{counters:?}");
    let begun = Instant::now();
    let counters = balance(beacon.shutdown_blocking(secs(1)));
    assert!(begun.elapsed() < secs(1) + SOON, "{:?}", begun.elapsed());
    assert_eq!((counters.dropped["shutdown"], counters.queued), (5, 0), "{counters:?}");
}

/// B2, B31: a beacon without its own thread is an error that says so.
#[test]
fn a_build_without_a_thread_is_an_error() {
    let Some(shim) = Shim::enter("bulkhead::a_build_without_a_thread_is_an_error") else { return };
    let refused = shim.allow_threads(0);
    let built = beacon(&shim, "http://127.0.0.1:9/").build();
    drop(refused);
    assert!(built.is_err_and(|error| error.to_string().contains("start")), "a thread was refused");
    assert_eq!(shim.processes().len(), 0);
}

/// B31: the look-up of the server's name needs a thread, and there is none to be had.
#[test]
fn a_thread_that_cannot_be_had_for_a_look_up_is_network_trouble_that_passes() {
    let name = "bulkhead::a_thread_that_cannot_be_had_for_a_look_up_is_network_trouble_that_passes";
    let Some(shim) = Shim::enter(name) else { return };
    let server = Server::start(Mode::Ok);
    // The beacon's own and the disk's.
    let refused = shim.allow_threads(2);
    let beacon = beacon(&shim, &by_name(&server)).build().expect("a beacon");
    durable(&beacon, "durable").expect("the disk has its thread");
    until("a failure", || beacon.health().last_error.is_some());
    let why = beacon.health().last_error.unwrap_or_default();
    assert!(why.contains("thread") && !why.contains("panicked"), "{why}");
    assert_eq!(trouble(&beacon), None);
    drop(refused);
    all_arrive(&beacon, 1);
    balance(beacon.shutdown_blocking(secs(5)));
}

/// B31: each look-up hangs; each costs the network its time, all of them one thread, and the disk nothing.
#[test]
fn look_ups_that_hang_cost_one_thread_and_the_disk_nothing() {
    let name = "bulkhead::look_ups_that_hang_cost_one_thread_and_the_disk_nothing";
    let Some(shim) = Shim::enter(name) else { return };
    let server = Server::start(Mode::Ok);
    let hung = shim.hang("getaddrinfo");
    let builder = beacon(&shim, &by_name(&server)).request_time_limit(ms(200));
    let beacon = builder.build().expect("a beacon");
    let mut posted = 0;
    let begun = Instant::now();
    let mut failures = beacon.events();
    let mut failed = 0;
    while failed < 8 {
        assert!(begun.elapsed() < LONG, "{failed} look-ups were given up");
        beacon.notify_online();
        durable(&beacon, &posted.to_string()).expect("the disk is well");
        posted += 1;
        while let Some(next) = failures.try_next() {
            let failure =
                matches!(next, afterboot_beacon::Next::Event(afterboot_beacon::BeaconEvent::Failed { .. }));
            failed += u32::from(failure);
        }
        std::thread::park_timeout(ms(20));
    }
    assert!(own_threads() <= 3, "{:?}", threads());
    assert_eq!(trouble(&beacon), None);
    drop(hung);
    all_arrive(&beacon, posted);
    balance(beacon.shutdown_blocking(secs(5)));
}

/// B31: an answer that comes when nobody waits any more is the next one's.
#[test]
fn a_look_up_that_takes_longer_than_a_request_may_is_not_in_vain() {
    let name = "bulkhead::a_look_up_that_takes_longer_than_a_request_may_is_not_in_vain";
    let Some(shim) = Shim::enter(name) else { return };
    let server = Server::start(Mode::Ok);
    let hung = shim.hang("getaddrinfo");
    let builder = beacon(&shim, &by_name(&server)).request_time_limit(ms(300));
    let beacon = builder.build().expect("a beacon");
    beacon.post("click", &event("click", None)).urgent();
    until("a failure", || beacon.health().last_error.is_some());
    drop(hung);
    until("the end of the look-up", || own_threads() <= 2);
    // From here on no look-up would come to an end.
    let _hung = shim.hang("getaddrinfo");
    all_arrive(&beacon, 1);
    balance(beacon.shutdown_blocking(secs(5)));
}

/// B2, B31: a look-up that never ends keeps nobody from leaving, and what could not be sent is on disk.
#[test]
fn a_look_up_that_never_ends_keeps_nobody_from_leaving() {
    let Some(shim) = Shim::enter("bulkhead::a_look_up_that_never_ends_keeps_nobody_from_leaving") else {
        return;
    };
    let server = Server::start(Mode::Ok);
    let _hung = shim.hang("getaddrinfo");
    let own = beacon(&shim, &by_name(&server)).build().expect("a beacon");
    own.post("click", &event("own", None)).urgent();
    let begun = Instant::now();
    let counters = balance(own.shutdown_blocking(secs(1)));
    assert_eq!((counters.spooled, counters.dropped_in_all()), (1, 0), "{counters:?}");
    assert!(begun.elapsed() < secs(1) + SOON, "{:?}", begun.elapsed());
    // On the application's runtime, which waits for the blocking calls of its own pool when it goes.
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let beside =
        beacon(&shim, &by_name(&server)).runtime(runtime.handle().clone()).build().expect("a beacon");
    beside.post("click", &event("beside", None)).urgent();
    until("a request", || balanced(&beside).in_flight == 1);
    let counters = balance(runtime.block_on(beside.shutdown(secs(1))));
    assert_eq!((counters.dropped_in_all(), counters.queued), (0, 0), "{counters:?}");
    drop(runtime);
    assert!(begun.elapsed() < secs(2) + SOON, "{:?}", begun.elapsed());
}

/// B1, B6, B31: whatever the disk hangs in, it costs one thread, the network nothing, and what it has in hand goes on in
/// memory. When it comes back it is in use at once, in the same directory.
fn a_disk_that_hangs_in(call: &str, test: &str) {
    let Some(shim) = Shim::enter(test) else { return };
    let server = Server::start(Mode::Ok);
    let beacon = beacon(&shim, &server.url()).build().expect("a beacon");
    durable(&beacon, "before").expect("the disk is well");
    all_arrive(&beacon, 1);
    let hung = shim.hang(call);
    let receipt = durable(&beacon, "hung");
    assert!(matches!(&receipt, Err(NotDurable::Disk(why)) if why.contains("in time")), "{receipt:?}");
    let begun = Instant::now();
    let mut posted = 2;
    while begun.elapsed() < secs(3) {
        let receipt = durable(&beacon, &posted.to_string());
        assert!(receipt.is_err(), "nobody waits for a disk that hangs");
        posted += 1;
        std::thread::park_timeout(ms(100));
    }
    assert!(trouble(&beacon).is_some_and(|why| why.contains("in time")), "{:?}", beacon.health());
    until("delivery in spite of the disk", || balanced(&beacon).acked == posted);
    assert!(own_threads() <= 2, "{:?}", threads());
    assert_eq!(shim.processes().len(), 1);
    drop(hung);
    posted += 1 + until_durable(&beacon, SOON);
    assert_eq!(trouble(&beacon), None);
    all_arrive(&beacon, posted);
    assert_eq!(shim.processes().len(), 1);
    let counters = balance(beacon.shutdown_blocking(secs(5)));
    assert_eq!((counters.acked, counters.adopted, counters.dropped_in_all()), (posted, 0, 0), "{counters:?}");
    assert_eq!(shim.processes().len(), 0);
}

#[test]
fn a_disk_that_hangs_in_a_commit_costs_one_thread() {
    a_disk_that_hangs_in("write", "bulkhead::a_disk_that_hangs_in_a_commit_costs_one_thread");
}

/// B31: the spool is not open yet.
#[test]
fn a_disk_that_hangs_in_its_opening_costs_one_thread() {
    for call in ["open", "flock", "fsync"] {
        let name = "bulkhead::a_disk_that_hangs_in_its_opening_costs_one_thread";
        let Some(shim) = Shim::enter(name) else { return };
        let server = Server::start(Mode::Ok);
        let hung = shim.hang(call);
        let beacon = beacon(&shim, &server.url()).build().expect("a beacon");
        let receipt = durable(&beacon, "hung");
        assert!(
            matches!(&receipt, Err(NotDurable::Disk(why)) if why.contains("in time")),
            "{call}: {receipt:?}"
        );
        until("delivery in spite of the disk", || balanced(&beacon).acked == 1);
        assert!(own_threads() <= 2, "{call}: {:?}", threads());
        drop(hung);
        let posted = 2 + until_durable(&beacon, SOON);
        all_arrive(&beacon, posted);
        assert_eq!(shim.processes().len(), 1, "{call}");
        balance(beacon.shutdown_blocking(secs(5)));
        assert_eq!(shim.processes().len(), 0, "{call}");
    }
}

/// B31: what a dead process left behind hangs when it is removed.
#[test]
fn a_disk_that_hangs_in_the_removal_of_an_orphan_costs_one_thread() {
    let name = "bulkhead::a_disk_that_hangs_in_the_removal_of_an_orphan_costs_one_thread";
    let Some(shim) = Shim::enter(name) else { return };
    let server = Server::start(Mode::Ok);
    let orphan = shim.root().join("p-0123456789ab");
    std::fs::create_dir_all(&orphan).expect("a folder");
    std::fs::write(orphan.join("lock"), "").expect("a lock");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(shim.root(), private).expect("its owner's alone");
    let hung = shim.hang("unlink");
    let beacon = beacon(&shim, &server.url()).build().expect("a beacon");
    until("trouble", || trouble(&beacon).is_some());
    assert!(durable(&beacon, "hung").is_err());
    until("delivery in spite of the disk", || balanced(&beacon).acked == 1);
    assert!(own_threads() <= 2, "{:?}", threads());
    drop(hung);
    let posted = 2 + until_durable(&beacon, SOON);
    all_arrive(&beacon, posted);
    until("a removed orphan", || !orphan.exists());
    balance(beacon.shutdown_blocking(secs(5)));
}

/// B2, B22, B31: leaving does not wait for it beyond its deadline.
#[test]
fn a_disk_that_hangs_when_it_is_closed_or_written_keeps_nobody_from_leaving() {
    for call in ["close", "write", "unlink"] {
        let name = "bulkhead::a_disk_that_hangs_when_it_is_closed_or_written_keeps_nobody_from_leaving";
        let Some(shim) = Shim::enter(name) else { return };
        let server = Server::start(Mode::Refuse);
        let beacon = beacon(&shim, &server.url()).build().expect("a beacon");
        durable(&beacon, "durable").expect("the disk is well");
        beacon.post("click", &event("click", None));
        let _hung = shim.hang(call);
        let begun = Instant::now();
        let counters = balance(beacon.shutdown_blocking(secs(1)));
        assert!(begun.elapsed() < secs(1) + SOON, "{call}: {:?}", begun.elapsed());
        assert_eq!((counters.posted, counters.queued, counters.in_flight), (2, 0, 0), "{call}: {counters:?}");
    }
}

/// B15, B36: what an opening that failed has made is undone, however often it is tried.
#[tokio::test(start_paused = true)]
async fn openings_that_fail_leave_nothing_behind() {
    let Some(shim) = Shim::enter("bulkhead::openings_that_fail_leave_nothing_behind") else { return };
    // No locks, as on some network file systems; a full disk.
    for call in ["flock", "write"] {
        let refused = shim.fail(call);
        let server = afterboot_beacon::testing::ScriptedTransport::accepting();
        let builder = Beacon::builder("shop").transport(server).spool(shim.options()).wall_from_tokio();
        let beacon = builder.runtime(tokio::runtime::Handle::current()).build().expect("a beacon");
        for number in 0..20 {
            assert!(beacon.post("durable", &number).durable().await.is_err(), "{call}");
            assert!(trouble(&beacon).is_some(), "{call}");
            let left = crate::common::files(&shim.root());
            assert!(left.is_empty(), "{call}, try {number}: {left:?}");
            tokio::time::sleep(secs(number)).await;
        }
        drop(refused);
        tokio::time::sleep(secs(1)).await;
        beacon.post("durable", "well").durable().await.expect("the disk is well");
        assert_eq!(shim.processes().len(), 1);
        balance(beacon.shutdown(secs(5)).await);
        assert_eq!(shim.processes().len(), 0);
    }
}
