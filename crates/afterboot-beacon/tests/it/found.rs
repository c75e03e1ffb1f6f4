//! What went wrong once.

use std::time::Duration;

#[cfg(feature = "spool")]
use afterboot_beacon::SpoolOptions;
use afterboot_beacon::testing::{Reply, ScriptedTransport, Seen};
use afterboot_beacon::{Beacon, BeaconBuilder};
use tokio::runtime::Handle;

fn beacon(server: &ScriptedTransport) -> BeaconBuilder {
    Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).wall_from_tokio().seed(1)
}

fn numbers(seen: &Seen) -> Vec<u64> {
    seen.batch.events.iter().map(|event| event.seq).collect()
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
