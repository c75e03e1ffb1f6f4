//! A disk that does not do what it should: events stay in memory, receipts say why, and the host goes on.

mod held;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::{Beacon, BeaconBuilder, NotDurable, SpoolOptions, SpoolState};
use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
#[cfg(target_os = "linux")]
use tokio::{
    runtime::Builder,
    task::yield_now,
    time::{advance, pause},
};

use crate::common::{Root, balance, balanced, files, ms, secs};
#[cfg(target_os = "linux")]
use crate::shim::Shim;

fn beacon(server: &ScriptedTransport, options: SpoolOptions) -> BeaconBuilder {
    let builder = Beacon::builder("shop").transport(server.clone()).spool(options);
    builder.runtime(Handle::current()).wall_from_tokio().seed(3)
}

fn down() -> ScriptedTransport {
    ScriptedTransport::new(|_| Reply::Broken)
}

fn trouble(beacon: &Beacon) -> bool {
    matches!(beacon.health().spool, SpoolState::Failing(_))
}

/// Every event that came, by what it says; none twice.
fn arrived(server: &ScriptedTransport) -> Vec<String> {
    let seen = server.seen();
    let mut all: Vec<String> = seen
        .iter()
        .flat_map(|seen| seen.batch.events.iter().map(|event| event.data.get().to_owned()))
        .collect();
    all.sort();
    all
}

/// Noise of this size in every event, so that compression does not save the day.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + 2 + (state >> 32) as u8 % 58)
    };
    (0..bytes).map(|_| next()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_spool_that_is_removed_is_made_anew_and_what_was_only_there_is_counted() {
    let (server, root) = (down(), Root::new());
    let beacon = beacon(&server, root.options()).build().unwrap();
    beacon.post("durable", &1).durable().await.unwrap();
    sleep(secs(15)).await;
    assert_eq!(balanced(&beacon).spooled, 1);
    fs::remove_dir_all(root.path()).unwrap();
    beacon.post("durable", &2).durable().await.unwrap();
    let counters = balanced(&beacon);
    assert_eq!((counters.dropped["corrupt"], trouble(&beacon)), (1, false), "{counters:?}");
    assert_eq!(root.processes().len(), 1);
    server.set_script(|_| Reply::Accept);
    sleep(secs(120)).await;
    assert_eq!(balanced(&beacon).acked, 1);
    assert_eq!(balance(beacon.shutdown(secs(5)).await).acked, 1);
    assert_eq!(root.processes().len(), 0);
}

/// An event that was in memory as well loses its copy only.
#[tokio::test(start_paused = true)]
async fn a_spool_that_is_removed_costs_nothing_that_is_still_in_memory() {
    let (server, root) = (down(), Root::new());
    let beacon = beacon(&server, root.options()).build().unwrap();
    for number in 0..3 {
        beacon.post("durable", &number).durable().await.unwrap();
    }
    fs::remove_dir_all(root.path()).unwrap();
    server.set_script(|_| Reply::Accept);
    sleep(secs(60)).await;
    let counters = balanced(&beacon);
    assert_eq!((counters.acked, counters.dropped_in_all()), (3, 0), "{counters:?}");
    assert_eq!(arrived(&server).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_root_that_is_no_directory_means_memory_only_until_it_is_one() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    fs::write(root.path(), "in the way").unwrap();
    let beacon = beacon(&server, root.options()).build().unwrap();
    let receipt = beacon.post("durable", &1).durable().await;
    assert!(matches!(&receipt, Err(NotDurable::Disk(why)) if why.contains("directory")), "{receipt:?}");
    assert!(trouble(&beacon));
    // Time goes on only where nobody is busy.
    sleep(secs(20)).await;
    assert_eq!(balanced(&beacon).acked, 1, "it was sent all the same");
    assert!(beacon.post("durable", &2).durable().await.is_err());

    fs::remove_file(root.path()).unwrap();
    sleep(secs(31)).await;
    assert!(!trouble(&beacon));
    beacon.post("durable", &3).durable().await.unwrap();
    sleep(secs(10)).await;
    let counters = balance(beacon.shutdown(secs(5)).await);
    assert_eq!((counters.acked, counters.dropped_in_all()), (3, 0), "{counters:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_without_a_working_disk_counts_what_it_could_not_send() {
    let (server, root) = (down(), Root::new());
    fs::write(root.path(), "in the way").unwrap();
    let beacon = beacon(&server, root.options()).build().unwrap();
    for number in 0..10 {
        beacon.post("click", &number);
    }
    assert!(beacon.post("durable", &10).durable().await.is_err());
    let begun = Instant::now();
    let counters = balance(beacon.shutdown(secs(2)).await);
    assert!(begun.elapsed() <= secs(2) + ms(10));
    assert_eq!((counters.dropped["shutdown"], counters.queued), (11, 0), "{counters:?}");
}

/// The cap is full of vital events: a basic one finds no room, and its receipt does not say otherwise.
#[tokio::test(start_paused = true)]
async fn a_full_spool_gives_no_receipt_for_what_it_could_not_keep() {
    let (server, root) = (down(), Root::new());
    let options = root.options().max_bytes(512 * 1024);
    let beacon = beacon(&server, options).batch_events(1).max_events(1000).build().unwrap();
    for number in 0..40 {
        let kept = beacon.post("vital", &noise(number, 30_000)).vital().durable().await;
        kept.unwrap();
    }
    let refused = beacon.post("basic", &noise(99, 30_000)).durable().await;
    assert!(refused.is_err(), "there is no room, and the receipt says {refused:?}");
    balanced(&beacon);
    server.set_script(|_| Reply::Accept);
    sleep(secs(120)).await;
    let counters = balanced(&beacon);
    assert_eq!(counters.acked + counters.dropped_in_all(), 41, "{counters:?}");
    beacon.post("basic", "room again").durable().await.unwrap();
    let counters = balance(beacon.shutdown(secs(5)).await);
    assert_eq!((counters.spooled, counters.queued), (0, 0), "{counters:?}");
}

/// Somebody else holds the database for longer than a call waits.
#[tokio::test(start_paused = true)]
async fn a_database_that_cannot_be_written_for_a_while_costs_no_event_and_no_count() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    let beacon = beacon(&server, root.options()).build().unwrap();
    sleep(secs(31)).await;
    server.set_script(|_| Reply::After(secs(3), Box::new(Reply::Accept)));
    beacon.post("durable", &1).durable().await.unwrap();
    sleep(secs(7)).await;
    // It is under way, and its row cannot be deleted when it is acked.
    let other = Connection::open(root.processes()[0].join("spool.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    sleep(secs(2)).await;
    let receipt = beacon.post("durable", &2).durable().await;
    assert!(matches!(&receipt, Err(NotDurable::Disk(why)) if why.contains("locked")), "{receipt:?}");
    assert!(trouble(&beacon));
    other.execute_batch("ROLLBACK").unwrap();
    sleep(secs(31)).await;
    assert!(!trouble(&beacon));
    // The backlog is looked through after the recovery: the row of the acked event must not come back.
    for number in 3..5 {
        beacon.post("durable", &number).durable().await.unwrap();
        beacon.set_user(Some("somebody"));
        sleep(secs(60)).await;
        balanced(&beacon);
    }
    assert_eq!(arrived(&server), ["1", "2", "3", "4"]);
    server.set_script(|_| Reply::Accept);
    let counters = balance(beacon.shutdown(secs(10)).await);
    assert_eq!((counters.acked, counters.spooled, counters.posted), (4, 0, 4), "{counters:?}");
    assert_eq!(root.processes().len(), 0);
}

/// B1, B6: a disk that hangs is left behind with what it has in hand. When it comes back, its file is the same one, and
/// what it wrote late is a copy that goes.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_hangs_is_left_behind_and_found_again_with_its_rows() {
    let Some(shim) = Shim::enter("disk::a_disk_that_hangs_is_left_behind_and_found_again_with_its_rows")
    else {
        return;
    };
    Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        pause();
        let server = down();
        let beacon = beacon(&server, shim.options()).build().unwrap();
        for number in 1..4 {
            beacon.post("durable", &number).durable().await.unwrap();
        }
        let hung = shim.hang("write");
        let late = beacon.post("durable", &4).durable();
        for _ in 0..70 {
            advance(ms(100)).await;
        }
        assert!(late.await.is_err());
        assert!(trouble(&beacon));
        balanced(&beacon);
        drop(hung);
        until_well(&beacon).await;
        for number in 5..8 {
            beacon.post("durable", &number).durable().await.unwrap();
        }
        assert_eq!(shim.processes().len(), 1);
        balanced(&beacon);
        server.set_script(|_| Reply::Accept);
        sleep(secs(200)).await;
        let mut all = arrived(&server);
        // Tries that failed are among them.
        all.dedup();
        assert_eq!(all, ["1", "2", "3", "4", "5", "6", "7"]);
        let counters = balance(beacon.shutdown(secs(5)).await);
        assert_eq!((counters.acked, counters.adopted, counters.dropped_in_all()), (7, 0, 0), "{counters:?}");
        assert_eq!(shim.processes().len(), 0);
    });
}

/// B1: what was under way when the disk hung is settled meanwhile, and its late row goes alone.
#[cfg(target_os = "linux")]
#[test]
fn an_ack_for_a_row_that_was_written_late_deletes_no_other_row() {
    let Some(shim) = Shim::enter("disk::an_ack_for_a_row_that_was_written_late_deletes_no_other_row") else {
        return;
    };
    Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        pause();
        let server = ScriptedTransport::new(|seen| match seen.batch.events.first() {
            Some(event) if event.seq == 0 => Reply::After(secs(60), Box::new(Reply::Accept)),
            _ => Reply::After(secs(100), Box::new(Reply::Accept)),
        });
        // What was left behind comes back later than all of this.
        let builder = beacon(&server, shim.options()).replay_spread(secs(36_000));
        let beacon = builder.request_time_limit(secs(200)).build().unwrap();
        beacon.post("durable", &1).urgent().durable().await.unwrap();
        let hung = shim.hang("write");
        let late = beacon.post("durable", &2).durable();
        for _ in 0..70 {
            advance(ms(100)).await;
        }
        assert!(late.await.is_err());
        drop(hung);
        until_well(&beacon).await;
        beacon.post("durable", &3).urgent().durable().await.unwrap();
        sleep(secs(60)).await;
        assert_eq!(balanced(&beacon).acked, 1, "{:?}", beacon.counters());
        let rows = Connection::open(shim.processes()[0].join("spool.db")).unwrap();
        let mut rows = rows.prepare("SELECT first_seq FROM batch").unwrap();
        let rows: Vec<i64> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows, [2], "its receipt says that it is on disk, and the others are done with");
        sleep(secs(200)).await;
        assert_eq!(arrived(&server), ["1", "2", "3"]);
        let counters = balance(beacon.shutdown(secs(5)).await);
        assert_eq!((counters.queued, counters.dropped_in_all()), (0, 0), "{counters:?}");
    });
}

/// The disk's thread comes back in real time, which a paused clock does not wait for.
#[cfg(target_os = "linux")]
async fn until_well(beacon: &Beacon) {
    for _ in 0..10_000 {
        if !trouble(beacon) {
            return;
        }
        std::thread::park_timeout(ms(3));
        yield_now().await;
    }
    panic!("{:?}", beacon.health());
}

/// Unmounts, whatever happens.
struct Mounted(PathBuf);

impl Mounted {
    fn tmpfs(at: &Path) -> Option<Mounted> {
        fs::create_dir(at).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Mounted(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// A full disk, where the system lets this test make one.
#[tokio::test(start_paused = true)]
async fn a_full_disk_means_memory_only_until_there_is_room() {
    let (server, root) = (down(), Root::new());
    let Some(mounted) = Mounted::tmpfs(&root.path()) else {
        #[expect(clippy::print_stdout, reason = "a test that could not be")]
        {
            println!("skipped: no tmpfs can be mounted here");
        }
        return;
    };
    let beacon = beacon(&server, root.options()).batch_events(1).build().unwrap();
    beacon.post("durable", &0).durable().await.unwrap();
    let ballast = mounted.0.join("ballast");
    // As much as there is room for.
    let _ = fs::write(&ballast, vec![0; 2 << 20]);
    let mut refused = 0;
    for number in 1..8 {
        let receipt = beacon.post("durable", &noise(number, 30_000)).durable().await;
        refused += u64::from(receipt.is_err());
    }
    assert!(refused >= 6, "{refused} of 7");
    assert!(trouble(&beacon), "{:?}", beacon.health());
    balanced(&beacon);

    fs::remove_file(&ballast).unwrap();
    sleep(secs(31)).await;
    assert!(!trouble(&beacon));
    beacon.post("durable", "room again").durable().await.unwrap();
    server.set_script(|_| Reply::Accept);
    sleep(secs(200)).await;
    let counters = balanced(&beacon);
    assert_eq!((counters.acked, counters.dropped_in_all()), (9, 0), "{counters:?}");
    balance(beacon.shutdown(secs(5)).await);
    assert!(files(&mounted.0).is_empty(), "{:?}", files(&mounted.0));
}

/// One row that nobody can read is one row: those of events under way are still deleted when they are acked.
#[tokio::test(start_paused = true)]
async fn a_damaged_row_costs_its_own_events_and_no_others() {
    let (server, root) = (down(), Root::new());
    let builder = beacon(&server, root.options()).batch_events(1).replay_spread(secs(5));
    let beacon = builder.build().unwrap();
    beacon.post("durable", &1).durable().await.unwrap();
    sleep(secs(15)).await;
    assert_eq!(balanced(&beacon).spooled, 1);
    let other = Connection::open(root.processes()[0].join("spool.db")).unwrap();
    assert_eq!(other.execute("UPDATE batch SET body = x'00'", []).unwrap(), 1);
    server.set_script(|seen| match seen.batch.events.first() {
        Some(event) if event.data.get() == "3" => Reply::After(secs(8), Box::new(Reply::Accept)),
        _ => Reply::Accept,
    });
    beacon.post("click", &2).urgent();
    beacon.notify_online();
    sleep(ms(10)).await;
    assert_eq!(balanced(&beacon).acked, 1);
    // It is in memory and on disk while the backlog is looked through.
    beacon.post("durable", &3).urgent().durable().await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(balanced(&beacon).acked, 2);
    beacon.set_user(Some("somebody"));
    sleep(secs(60)).await;
    assert_eq!(arrived(&server).last().map(String::as_str), Some("3"));
    let counters = balance(beacon.shutdown(secs(5)).await);
    assert_eq!((counters.acked, counters.dropped["corrupt"]), (2, 1), "{counters:?}");
    assert_eq!(root.processes().len(), 0);
}
