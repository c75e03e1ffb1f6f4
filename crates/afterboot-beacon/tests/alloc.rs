//! What posts cost in allocations and bytes. A binary of its own: it counts what the whole process allocates.

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::wire::{Ack, Batch, gunzip};
use afterboot_beacon::{Beacon, BeaconBuilder, Request, Response, Sending, Transport, TransportError};
use serde::Serialize;
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Serialize)]
struct Order {
    path: &'static str,
    amount: u32,
    currency: &'static str,
    ok: bool,
    step: u32,
}

const ORDER: Order = Order { path: "/checkout/confirm", amount: 1999, currency: "EUR", ok: true, step: 3 };
const MANY: u64 = 100_000;

/// One test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn live() -> i64 {
    let Stats { bytes_allocated, bytes_deallocated, .. } = GLOBAL.stats();
    bytes_allocated as i64 - bytes_deallocated as i64
}

fn builder(transport: impl Transport) -> BeaconBuilder {
    Beacon::builder("shop").user("user-12345").transport(transport)
}

/// Acks and remembers nothing, so that all that is live is the beacon's.
#[derive(Debug)]
struct Forgetful;

impl Transport for Forgetful {
    fn send(&self, request: Request) -> Sending {
        Box::pin(async move {
            let body = gunzip(&request.body, 1 << 20).map_err(TransportError::new)?;
            let batch = Batch::parse(&body).map_err(TransportError::new)?;
            let ack = Ack::all_accepted(batch.events.len());
            let body = serde_json::to_vec(&ack).map_err(TransportError::new)?;
            Ok(Response::new(202).with_body(body))
        })
    }
}

fn offline() -> Beacon {
    let beacon = builder(Forgetful).max_events(2_000_000).max_bytes(1 << 30).build().unwrap();
    beacon.notify_offline();
    // What exists once a beacon and once a thread.
    beacon.post("order_paid", &ORDER);
    beacon
}

/// B5.
#[test]
fn an_event_queued_costs_at_most_300_bytes_and_a_fifth_of_an_allocation() {
    let _alone = alone();
    let beacon = offline();
    let (before, stats) = (live(), GLOBAL.stats());
    for _ in 0..MANY {
        beacon.post("order_paid", &ORDER);
    }
    let bytes = (live() - before) as f64 / MANY as f64;
    let after = GLOBAL.stats();
    let allocations = after.allocations - stats.allocations;
    let resized = after.reallocations - stats.reallocations;
    let allocated = allocations as f64 / MANY as f64;
    assert_eq!(beacon.counters().queued, MANY + 1);
    assert!(bytes <= 300.0, "{bytes} bytes an event");
    assert!(allocated <= 0.2, "{allocated} allocations a post, and {resized} were resized");
    beacon.shutdown_blocking(Duration::ZERO);
}

#[test]
fn memory_is_given_back_when_everything_is_acked() {
    let _alone = alone();
    let beacon = builder(Forgetful).max_events(2_000_000).max_bytes(1 << 30).build().unwrap();
    beacon.post("order_paid", &ORDER);
    assert!(beacon.flush_blocking(Duration::from_secs(30)).complete);
    let before = live();
    for _ in 0..MANY {
        beacon.post("order_paid", &ORDER);
    }
    let flushed = beacon.flush_blocking(Duration::from_secs(120));
    assert!(flushed.complete, "{flushed:?}");
    assert_eq!(flushed.counters.acked, MANY + 1);
    let left = live() - before;
    // The queue's ring and the like, which have grown once: not the 20 MB of the events.
    assert!(left <= 512 * 1024, "{left} bytes are left");
    beacon.shutdown_blocking(Duration::from_secs(1));
}

#[test]
fn a_storm_of_merges_keeps_the_heap_bounded() {
    let _alone = alone();
    let beacon = offline();
    let before = live();
    let mut most = 0;
    for n in 0..MANY {
        beacon.post("order_paid", &ORDER).merge_by("volume");
        if n % 64 == 0 {
            most = most.max(live() - before);
        }
    }
    let counters = beacon.counters();
    assert_eq!((counters.queued, counters.merged), (2, MANY - 1), "{counters:?}");
    // 64 KiB of what was replaced may lie in the buffer, which doubles as it grows and is copied when it is cleared.
    assert!(most <= 400 * 1024, "{most} bytes");
    beacon.shutdown_blocking(Duration::ZERO);
}

fn hung() -> BeaconBuilder {
    builder(ScriptedTransport::new(|_| Reply::Hang))
}

/// The buffers that are being filled, the requests under way, and what the allocator of a queue has to spare.
const SLACK: i64 = 1 << 20;

/// The most that the heap grows by while this is done so many times.
fn most_while(times: u64, mut act: impl FnMut(u64)) -> i64 {
    let before = live();
    let mut most = 0;
    for n in 0..times {
        act(n);
        if n % 64 == 0 {
            most = most.max(live() - before);
        }
    }
    most
}

/// B6.
#[test]
fn a_server_that_hangs_does_not_make_the_heap_grow_beyond_the_limit() {
    let _alone = alone();
    const LIMIT: usize = 4 << 20;
    let beacon = hung().max_bytes(LIMIT).max_events(1_000_000).build().unwrap();
    let most = most_while(3 * MANY / 2, |n| {
        let post = beacon.post("order_paid", &ORDER);
        if n % 10 == 0 { drop(post.vital()) } else { drop(post) }
    });
    let counters = beacon.counters();
    assert!(counters.balances(), "{counters:?}");
    assert!(counters.dropped_in_all() > MANY / 2, "{counters:?}");
    assert!(most <= LIMIT as i64 + SLACK, "{most} bytes, {LIMIT} are allowed");
    beacon.shutdown_blocking(Duration::ZERO);
}

/// B6: a batch costs something as well.
#[test]
fn batches_of_one_event_do_not_make_the_heap_grow_beyond_the_limit() {
    let _alone = alone();
    const LIMIT: usize = 4 << 20;
    let beacon = hung().max_bytes(LIMIT).max_events(1_000_000).build().unwrap();
    let most = most_while(MANY / 2, |n| {
        beacon.set_user(Some(if n % 2 == 0 { "one" } else { "another" }));
        drop(beacon.post("order_paid", &ORDER));
    });
    let counters = beacon.counters();
    assert!(counters.balances() && counters.dropped_in_all() > 0, "{counters:?}");
    assert!(most <= LIMIT as i64 + SLACK, "{most} bytes, {LIMIT} are allowed");
    beacon.shutdown_blocking(Duration::ZERO);
}

/// B6: each vital event that has to go leaves a number to be declared, and nothing can be declared meanwhile.
#[test]
fn what_was_displaced_does_not_make_the_heap_grow_for_ever() {
    let _alone = alone();
    let beacon = hung().max_events(2_000).build().unwrap();
    let mut vital = |_| drop(beacon.post("order_paid", &1).vital());
    most_while(MANY, &mut vital);
    let most = most_while(4 * MANY, &mut vital);
    assert!(most <= 256 * 1024, "{most} bytes");
    beacon.shutdown_blocking(Duration::ZERO);
}

/// B6: also where the batch that is being filled is all that there is to take room from.
#[test]
fn what_was_displaced_from_an_open_batch_does_not_stay_in_its_buffer() {
    let _alone = alone();
    let beacon = builder(Forgetful).max_events(10).build().unwrap();
    beacon.notify_offline();
    let most = most_while(MANY, |n| drop(beacon.post("order_paid", &ORDER).vital().merge_by(&n.to_string())));
    assert!(most <= 512 * 1024, "{most} bytes");
    beacon.shutdown_blocking(Duration::ZERO);
}

/// B6: what fits no batch waits for the disk, and not without bound.
#[test]
fn events_that_fit_nowhere_do_not_make_the_heap_grow_beyond_their_share() {
    let _alone = alone();
    const LIMIT: usize = 4 << 20;
    let (kept, dropped) = ("x".repeat(100_000), "x".repeat(400_000));
    let beacon = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let spool = afterboot_beacon::SpoolOptions::new("/nonexistent/spool");
    let builder = builder(Forgetful).max_bytes(LIMIT).spool(spool);
    let beacon = builder.runtime(beacon.handle().clone()).build().unwrap();
    let most = most_while(640, |n| drop(beacon.post("dump", if n % 2 == 0 { &kept } else { &dropped })));
    let counters = beacon.counters();
    let set_aside = counters.dead + counters.dropped["dead_full"];
    assert_eq!((set_aside, counters.dropped["too_large"]), (320, 320), "{counters:?}");
    assert!(most <= LIMIT as i64 + SLACK, "{most} bytes, {LIMIT} are allowed");
}

/// B6: each batch names its user.
#[test]
fn long_names_do_not_make_the_heap_grow_beyond_the_limit() {
    let _alone = alone();
    const LIMIT: usize = 4 << 20;
    let names = ["a".repeat(2000), "b".repeat(2000)];
    let beacon = hung().max_bytes(LIMIT).build().unwrap();
    let most = most_while(20_000, |n| {
        beacon.set_user(Some(&names[n as usize % 2]));
        drop(beacon.post("order_paid", &ORDER));
    });
    let counters = beacon.counters();
    assert!(counters.balances() && counters.dropped_in_all() > 0, "{counters:?}");
    assert!(most <= LIMIT as i64 + SLACK, "{most} bytes, {LIMIT} are allowed");
    beacon.shutdown_blocking(Duration::ZERO);
}

/// B6: a key of any length costs what a short one does.
#[test]
fn long_merge_keys_do_not_make_the_heap_grow() {
    let _alone = alone();
    let beacon = offline();
    let key = "k".repeat(1 << 20);
    let most = most_while(90, |n| drop(beacon.post("state", &1).merge_by(&key[n as usize..])));
    assert!(most <= 512 * 1024, "{most} bytes");
    beacon.post("state", &1).merge_by(&key);
    assert_eq!(beacon.counters().merged, 1);
    beacon.shutdown_blocking(Duration::ZERO);
}

/// B6: and what it costs is counted.
#[test]
fn merge_keys_do_not_make_the_heap_grow_beyond_the_limit() {
    let _alone = alone();
    const LIMIT: usize = 256 << 10;
    let beacon = builder(Forgetful).max_bytes(LIMIT).build().unwrap();
    beacon.notify_offline();
    let most = most_while(MANY, |n| drop(beacon.post("s", &1).vital().merge_by(&n.to_string())));
    let counters = beacon.counters();
    assert!(counters.balances() && counters.dropped_in_all() > 0, "{counters:?}");
    assert!(most <= LIMIT as i64 + 256 * 1024, "{most} bytes, {LIMIT} are allowed");
    beacon.shutdown_blocking(Duration::ZERO);
}
