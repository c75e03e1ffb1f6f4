//! Somebody else has the database open, and holds it up.

use std::fs;

use afterboot_beacon::testing::ScriptedTransport;
use afterboot_beacon::{EndpointState, SpoolState};
use rusqlite::Connection;
use tokio::time::sleep;

use super::{beacon, noise, trouble};
use crate::common::{Root, balance, balanced, secs};

/// B31: somebody else writes for eight seconds. Receipts fail meanwhile, and are to be had as soon as it is over.
#[tokio::test(start_paused = true)]
async fn a_second_after_a_disk_works_again_its_receipts_are_to_be_had() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    let beacon = beacon(&server, root.options()).build().unwrap();
    beacon.post("durable", &0).durable().await.unwrap();
    let other = Connection::open(root.processes()[0].join("spool.db")).unwrap();
    for round in 0..3 {
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        for number in 0..8 {
            assert!(beacon.post("durable", &number).durable().await.is_err());
            assert!(trouble(&beacon));
            sleep(secs(1 + round)).await;
        }
        other.execute_batch("ROLLBACK").unwrap();
        sleep(secs(1)).await;
        beacon.post("durable", &"again").durable().await.unwrap();
        assert!(!trouble(&beacon));
    }
    // Nobody posts: health comes to say so all the same, and only when it is so.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(beacon.post("durable", &1).durable().await.is_err());
    sleep(secs(120)).await;
    assert!(trouble(&beacon), "nothing was asked of it, and it does not work");
    other.execute_batch("ROLLBACK").unwrap();
    sleep(secs(31)).await;
    assert!(!trouble(&beacon));
    let counters = balance(beacon.shutdown(secs(5)).await);
    assert_eq!((counters.acked, counters.posted), (29, 29), "{counters:?}");
}

/// B36: a reader that does not end keeps the log from being written back, and the log does not grow without bound.
#[tokio::test(start_paused = true)]
async fn a_log_that_somebody_else_holds_back_is_bounded() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    let options = root.options().max_bytes(512 * 1024);
    let beacon = beacon(&server, options).build().unwrap();
    beacon.post("durable", &0).durable().await.unwrap();
    let dir = root.processes()[0].clone();
    let mut other = Connection::open(dir.join("spool.db")).unwrap();
    let reading = other.transaction().unwrap();
    let rows = reading.query_row("SELECT count(*) FROM batch", [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(rows <= 1);
    let log = || fs::metadata(dir.join("spool.db-wal")).map_or(0, |meta| meta.len());
    let mut refused = None;
    for number in 0..2000 {
        if let Err(why) = beacon.post("durable", &noise(number, 30_000)).durable().await {
            refused = Some(why);
            break;
        }
        assert!(log() < 32 << 20, "the log has {} bytes", log());
    }
    let why = refused.expect("an end").to_string();
    assert!(why.contains("log") && why.contains("reader"), "{why}");
    assert!(trouble(&beacon));
    balanced(&beacon);
    drop(reading);
    sleep(secs(1)).await;
    beacon.post("durable", "again").durable().await.unwrap();
    assert!(log() < 1 << 20, "the log has {} bytes", log());
    let counters = balance(beacon.shutdown(secs(5)).await);
    assert_eq!(counters.queued, 0, "{counters:?}");
}

/// B31: a beacon that has ended says so, however it came to that.
#[test]
fn the_health_of_a_beacon_that_has_ended_says_so() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let beacon = runtime.block_on(async { beacon(&server, root.options()).build().unwrap() });
    assert_eq!(beacon.health().endpoint, EndpointState::Healthy);
    drop(runtime);
    beacon.post("click", &1);
    let health = beacon.health();
    assert_eq!((health.endpoint, health.spool), (EndpointState::Ended, SpoolState::Off));
    assert_eq!(balanced(&beacon).queued, 0);
}
