//! What was broken once.

use std::path::Path;
use std::time::Duration;

use afterboot_beacon::testing::ScriptedTransport;
use afterboot_beacon::{Beacon, BeaconBuilder, SpoolOptions};
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
