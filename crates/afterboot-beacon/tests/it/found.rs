//! What went wrong once.

#[cfg(feature = "spool")]
use std::collections::BTreeSet;
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport, Seen};
#[cfg(feature = "spool")]
use afterboot_beacon::wire::{Ack, Verdict};
use afterboot_beacon::{Beacon, BeaconBuilder};
#[cfg(feature = "spool")]
use afterboot_beacon::{Response, SpoolOptions};
use tokio::runtime::Handle;
#[cfg(feature = "spool")]
use tokio::time::{Instant, sleep};

fn beacon(server: &ScriptedTransport) -> BeaconBuilder {
    Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).wall_from_tokio().seed(1)
}

fn numbers(seen: &Seen) -> Vec<u64> {
    seen.batch.events.iter().map(|event| event.seq).collect()
}

/// Takes every event but those of even numbers, for which it asks again.
#[cfg(feature = "spool")]
fn odd_ones(seen: &Seen) -> Reply {
    let verdict = |seq: &u64| if seq.is_multiple_of(2) { Verdict::Retry } else { Verdict::Accepted };
    let verdicts: Vec<Verdict> = numbers(seen).iter().map(verdict).collect();
    let body = serde_json::to_vec(&Ack::from_verdicts(&verdicts)).expect("an ack is JSON");
    Reply::Response(Response::new(202).with_body(body))
}

/// Waits until so many are, or for as long as only a broken run takes.
#[cfg(feature = "spool")]
async fn acked(beacon: &Beacon, events: u64) {
    let patience = Instant::now() + Duration::from_secs(20);
    while beacon.counters().acked < events && Instant::now() < patience {
        sleep(Duration::from_millis(5)).await;
    }
}

/// The second half went back ahead of the first, and was joined with it in that order: a body that no server takes.
#[tokio::test(start_paused = true)]
async fn the_parts_of_a_split_batch_leave_in_the_order_of_their_numbers() {
    let server =
        ScriptedTransport::new(
            |seen| if seen.inflated_len > 2048 { Reply::Status(413) } else { Reply::Accept },
        );
    let beacon = beacon(&server).build().unwrap();
    for n in 0..250 {
        beacon.post("click", &n);
    }
    let flushed = beacon.flush(Duration::from_secs(60)).await;
    assert!(flushed.complete);
    assert_eq!((flushed.counters.acked, flushed.counters.dead), (250, 0), "{:?}", flushed.counters);
    for seen in server.seen() {
        assert!(numbers(&seen).is_sorted(), "{:?}", numbers(&seen));
    }
}

/// The parts had one name between them: when one was settled, the other counted as settled too.
#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_both_parts_of_a_split_batch() {
    let server = ScriptedTransport::new(|seen| match numbers(seen)[..] {
        [0, .., 99] => Reply::Status(413),
        [0, ..] => Reply::Accept,
        _ => Reply::After(Duration::from_secs(5), Box::new(Reply::Accept)),
    });
    let beacon = beacon(&server).build().unwrap();
    for n in 0..100 {
        beacon.post("click", &n);
    }
    let early = beacon.flush(Duration::from_secs(2)).await;
    assert!(!early.complete, "{:?}", early.counters);
    assert!(early.counters.in_flight > 0, "{:?}", early.counters);
    let late = beacon.flush(Duration::from_secs(10)).await;
    assert!(late.complete);
    assert_eq!(late.counters.acked, 100);
}

/// All of it was compressed first, on the driver's thread, and written in one transaction: where time was too short for
/// all, nothing was saved, and the answer came before it was known.
#[cfg(feature = "spool")]
#[test]
fn a_shutdown_that_is_too_short_for_everything_saves_a_part_and_counts_the_rest() {
    const EVENTS: u64 = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::new(|_| Reply::Hang);
    let builder =
        Beacon::builder("shop").transport(server).spool(SpoolOptions::new(dir.path().join("spool")));
    let beacon = builder.max_events(2 * EVENTS as usize).max_bytes(1 << 30).build().unwrap();
    for n in 0..EVENTS {
        beacon.post("click", &(n, n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
    // A fourth of it is for the disk.
    let counters = beacon.shutdown_blocking(Duration::from_millis(1200));
    let dropped = counters.dropped.get("shutdown").copied().unwrap_or_default();
    assert!(counters.spooled > 0, "{counters:?}");
    assert_eq!(counters.spooled + dropped, EVENTS, "{counters:?}");
}

/// The row lay there whole, and whoever read it next sent and counted again what had been settled of it.
#[cfg(feature = "spool")]
#[tokio::test]
async fn what_is_left_of_a_row_at_the_shutdown_is_all_that_the_next_beacon_reads() {
    let dir = tempfile::tempdir().unwrap();
    let spool = || SpoolOptions::new(dir.path().join("spool"));
    let beacon = |server: &ScriptedTransport| {
        let builder = Beacon::builder("shop").transport(server.clone()).spool(spool());
        builder.replay_spread(Duration::ZERO).build().unwrap()
    };
    let nobody = ScriptedTransport::new(|_| Reply::Status(503));
    let first = beacon(&nobody);
    for n in 0..10 {
        first.post("click", &n);
    }
    let counters = first.shutdown(Duration::from_secs(4)).await;
    assert_eq!(counters.spooled, 10, "{counters:?}");

    let half = ScriptedTransport::new(odd_ones);
    let second = beacon(&half);
    acked(&second, 5).await;
    let counters = second.shutdown(Duration::from_secs(4)).await;
    assert_eq!((counters.adopted, counters.acked, counters.spooled), (10, 5, 5), "{counters:?}");

    let all = ScriptedTransport::accepting();
    let third = beacon(&all);
    acked(&third, 5).await;
    let counters = third.shutdown(Duration::from_secs(4)).await;
    assert_eq!((counters.adopted, counters.acked), (5, 5), "{counters:?}");
    let came: Vec<u64> = all.seen().iter().flat_map(numbers).collect();
    assert_eq!(came, [0, 2, 4, 6, 8]);
}

/// B1, B16: one part was left to the row of both, which the other part took along when it was written anew: durable events
/// were gone, and no count said so. Of three parts, the row stayed beside what was written anew.
#[cfg(feature = "spool")]
#[tokio::test]
async fn what_is_left_of_the_parts_of_a_row_at_the_shutdown_is_all_that_the_next_beacon_reads() {
    for events in [4, 10] {
        let dir = tempfile::tempdir().unwrap();
        let beacon = |server: &ScriptedTransport| {
            let spool = SpoolOptions::new(dir.path().join("spool"));
            let builder = Beacon::builder("shop").transport(server.clone()).spool(spool);
            builder.replay_spread(Duration::ZERO).build().unwrap()
        };
        let nobody = ScriptedTransport::new(|_| Reply::Status(503));
        let first = beacon(&nobody);
        for n in 0..events {
            first.post("click", &n);
        }
        let counters = first.shutdown(Duration::from_secs(4)).await;
        assert_eq!(counters.spooled, events, "{counters:?}");

        // Takes half of them at a time, and no part but the first.
        let half = ScriptedTransport::new(move |seen| match numbers(seen) {
            all if all.len() as u64 > events / 2 => Reply::Status(413),
            part if part.contains(&1) => odd_ones(seen),
            _ => Reply::Hang,
        });
        let second = beacon(&half);
        acked(&second, 1).await;
        let counters = second.shutdown(Duration::from_secs(4)).await;
        let left = counters.spooled;
        assert!(counters.acked > 0 && counters.acked + left == events, "{counters:?}");

        let all = ScriptedTransport::accepting();
        let third = beacon(&all);
        acked(&third, left).await;
        let counters = third.shutdown(Duration::from_secs(4)).await;
        assert_eq!((counters.adopted, counters.acked), (left, left), "{counters:?}");
        let came: BTreeSet<u64> = all.seen().iter().flat_map(numbers).collect();
        assert_eq!(came.len() as u64, left, "{came:?}");
    }
}
