//! When batches leave, under a paused clock.

use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::{Beacon, BeaconBuilder};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn beacon(server: &ScriptedTransport) -> BeaconBuilder {
    Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).wall_from_tokio().seed(1)
}

/// B24: the first event's delay counts, however many come after it.
#[tokio::test(start_paused = true)]
async fn a_steady_stream_cannot_postpone_the_timer() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    let begun = Instant::now();
    beacon.post("click", &1);
    sleep(ms(4900)).await;
    beacon.post("click", &2);
    sleep(ms(99)).await;
    assert_eq!(server.requests(), 0, "at 4999 ms");
    sleep(ms(2)).await;
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].batch.events.len(), 2);
    assert_eq!(seen[0].at - begun, ms(5000));
    assert!(beacon.counters().balances());
}

#[tokio::test(start_paused = true)]
async fn a_vital_event_leaves_after_one_second_and_a_signal_at_once() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    let begun = Instant::now();
    beacon.post("crash", &1).vital();
    sleep(ms(1100)).await;
    beacon.post("crash", &2).urgent();
    sleep(ms(10)).await;
    let at: Vec<Duration> = server.seen().iter().map(|seen| seen.at - begun).collect();
    assert_eq!(at, [ms(1000), ms(1100)]);
}

#[tokio::test(start_paused = true)]
async fn full_batches_leave_at_once_and_the_rest_on_time() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).batch_events(20).build().unwrap();
    let begun = Instant::now();
    for n in 0..45 {
        beacon.post("click", &n);
    }
    sleep(secs(6)).await;
    let seen = server.seen();
    let left: Vec<(Duration, usize)> =
        seen.iter().map(|seen| (seen.at - begun, seen.batch.events.len())).collect();
    assert_eq!(left, [(ms(0), 20), (ms(0), 20), (ms(5000), 5)]);
    let seqs: Vec<u64> =
        seen.iter().flat_map(|seen| seen.batch.events.iter().map(|event| event.seq)).collect();
    assert_eq!(seqs, (0..45).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_asked_again_after_1_2_4_seconds_and_one_probe_ends_it() {
    let mut tries = 0;
    let server = ScriptedTransport::new(move |_| {
        tries += 1;
        if tries <= 4 { Reply::Status(503) } else { Reply::Accept }
    });
    let beacon = beacon(&server).build().unwrap();
    beacon.post("click", &1);
    sleep(secs(60)).await;
    let at: Vec<Instant> = server.seen().iter().map(|seen| seen.at).collect();
    assert_eq!(at.len(), 5);
    for (n, pair) in at.windows(2).enumerate() {
        let wait = pair[1] - pair[0];
        let full = secs(1 << n);
        assert!(wait >= full * 3 / 4 && wait <= full + ms(2), "wait {n} is {wait:?}");
    }
    let counters = beacon.counters();
    assert_eq!(counters.acked, 1);
    assert!(counters.balances());
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_by_its_deadline_with_a_server_that_never_answers() {
    let server = ScriptedTransport::new(|_| Reply::Hang);
    let beacon = beacon(&server).build().unwrap();
    beacon.post("click", &1);
    let begun = Instant::now();
    let counters = beacon.shutdown(secs(2)).await;
    assert!(begun.elapsed() <= secs(2) + ms(2), "{:?}", begun.elapsed());
    assert_eq!(counters.dropped_in_all(), 1);
    assert!(counters.balances(), "{counters:?}");
}
