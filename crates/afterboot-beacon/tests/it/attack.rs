//! What was broken once, each by its smallest case, and a search for more.

mod whole;

use std::path::Path;
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::wire::{Ack, Verdict};
use afterboot_beacon::{Beacon, BeaconBuilder, Response, SpoolOptions};
use tokio::runtime::Handle;
use tokio::time::sleep;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn beacon(server: &ScriptedTransport) -> BeaconBuilder {
    Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).wall_from_tokio().seed(1)
}

fn spooling(server: &ScriptedTransport, folder: &Path) -> BeaconBuilder {
    beacon(server).spool(SpoolOptions::new(folder.join("spool"))).replay_spread(Duration::ZERO)
}

fn ack(verdicts: &[Verdict]) -> Reply {
    let body = serde_json::to_vec(&Ack::from_verdicts(verdicts)).unwrap();
    Reply::Answer(Response { status: 202, body, ..Response::default() })
}

/// B1: room is made by what is on disk as well going there, whatever its priority.
#[tokio::test(start_paused = true)]
async fn an_event_with_a_receipt_is_not_displaced() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::accepting();
    let beacon = spooling(&server, folder.path()).max_events(5).build().unwrap();
    beacon.post("order", &"durable").vital().durable().await.unwrap();
    for number in 0..5 {
        beacon.post("order", &number).vital();
    }
    sleep(secs(60)).await;
    let counters = beacon.counters();
    assert_eq!((counters.acked, counters.dropped_in_all()), (6, 0), "{counters:?}");
}

/// B6: what the disk holds of a batch that was settled in part is the whole of it, so it waits in memory.
#[tokio::test(start_paused = true)]
async fn the_ledger_balances_after_a_checkpoint_of_a_batch_that_was_settled_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::new(|seen| {
        let mut verdicts = vec![Verdict::Accepted; seen.batch.events.len()];
        verdicts[0] = Verdict::Retry;
        ack(&verdicts)
    });
    let beacon = spooling(&server, folder.path()).build().unwrap();
    beacon.post("order", &1).vital();
    beacon.post("order", &2).vital().durable().await.unwrap();
    sleep(secs(1) + Duration::from_millis(100)).await;
    assert_eq!(beacon.counters().acked, 1);
    beacon.notify_offline();
    let counters = beacon.checkpoint(secs(1)).await;
    assert!(counters.balances(), "{counters:?}");
    server.set_script(|_| Reply::Accept);
    beacon.notify_online();
    sleep(secs(120)).await;
    let counters = beacon.counters();
    assert!(counters.balances(), "{counters:?}");
    assert_eq!((counters.acked, counters.spooled, counters.queued), (2, 0, 0), "{counters:?}");
}

/// B6, B28: a batch that was emptied for room has no numbers that a row could be known by, so it never goes to the disk.
#[tokio::test(start_paused = true)]
async fn batches_that_were_emptied_take_no_other_batch_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::accepting();
    let beacon =
        spooling(&server, folder.path()).max_events(2).batch_events(1).batch_bytes(1024).build().unwrap();
    beacon.post("order", &"x".repeat(2000));
    beacon.notify_offline();
    for number in 0..50 {
        beacon.post("order", &number).vital();
    }
    sleep(secs(30)).await;
    let letters = beacon.dead_letters(None, 10).await.unwrap();
    assert_eq!(beacon.replay_dead_letters(&[letters[0].id()]).await.unwrap(), 1);
    beacon.notify_online();
    sleep(secs(60)).await;
    let counters = beacon.counters();
    assert_eq!((counters.acked, counters.spooled, counters.dead), (3, 0, 0), "{counters:?}");
}
