//! What was broken once, each by its smallest case, and a search for more.

mod odd;
mod whole;

use std::future::{Future, IntoFuture};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::wire::{Ack, Verdict};
use afterboot_beacon::{Beacon, BeaconBuilder, Early, Response, SpoolOptions};
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
    Reply::Response(Response::new(202).with_body(body))
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

/// B6: what the disk holds of a batch that was settled in part is the whole of it, also where the first and the last
/// number are those of the rest.
#[tokio::test(start_paused = true)]
async fn the_ledger_balances_after_a_checkpoint_of_a_batch_that_was_settled_in_part() {
    for kept in [&[0][..], &[0, 2], &[2], &[1]] {
        let folder = tempfile::tempdir().unwrap();
        let server = ScriptedTransport::new(move |seen| {
            let verdict = |n| if kept.contains(&n) { Verdict::Retry } else { Verdict::Accepted };
            ack(&(0..seen.batch.events.len()).map(verdict).collect::<Vec<_>>())
        });
        let beacon = spooling(&server, folder.path()).build().unwrap();
        beacon.post("order", &1).vital();
        beacon.post("order", &2).vital();
        beacon.post("order", &3).vital().durable().await.unwrap();
        sleep(secs(1) + Duration::from_millis(100)).await;
        assert_eq!(beacon.counters().acked, 3 - kept.len() as u64);
        beacon.notify_offline();
        let counters = beacon.checkpoint(secs(1)).await;
        assert!(counters.balances(), "{counters:?}");
        server.set_script(|_| Reply::Accept);
        beacon.notify_online();
        sleep(secs(120)).await;
        let counters = beacon.counters();
        assert!(counters.balances(), "{kept:?}: {counters:?}");
        let left = (counters.acked, counters.spooled, counters.queued);
        assert_eq!(left, (3, 0, 0), "{kept:?}: {counters:?}");
    }
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

fn sent(server: &ScriptedTransport) -> Vec<String> {
    let events = server.seen().into_iter().flat_map(|seen| seen.batch.events);
    events.map(|event| event.data.get().to_owned()).collect()
}

/// B18: a request is not called back, but what it carries is not sent a second time either.
#[tokio::test(start_paused = true)]
async fn what_was_under_way_when_its_user_was_erased_is_not_sent_again() {
    let failing =
        [Reply::Broken, Reply::Status(401), Reply::Status(413), ack(&[Verdict::Retry, Verdict::Accepted])];
    for reply in failing {
        let folder = tempfile::tempdir().unwrap();
        let slow = reply.clone();
        let server = ScriptedTransport::new(move |_| Reply::After(secs(2), Box::new(slow.clone())));
        let beacon = spooling(&server, folder.path()).user("anna").build().unwrap();
        beacon.post("order", &1).vital();
        beacon.post("order", &2).vital();
        sleep(secs(2)).await;
        assert_eq!(beacon.counters().in_flight, 2);
        beacon.erase_user("anna").await.unwrap();
        server.set_script(|_| Reply::Accept);
        beacon.post("order", &3).vital();
        sleep(secs(600)).await;
        assert_eq!(sent(&server), ["1", "2", "3"], "{reply:?}");
        let counters = beacon.counters();
        assert!(counters.balances() && counters.queued + counters.spooled == 0, "{counters:?}");
    }
}

/// B18: neither what is being written at that moment nor what was just read.
#[tokio::test(start_paused = true)]
async fn what_is_with_the_disk_when_its_user_is_erased_is_not_sent() {
    for turns in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let server = ScriptedTransport::accepting();
        let beacon = spooling(&server, folder.path()).user("anna").build().unwrap();
        sleep(secs(1)).await;
        let _receipt = beacon.post("order", &1).durable();
        erased_after(turns, &beacon).await;
        sleep(secs(600)).await;
        assert_eq!(sent(&server), [""; 0], "{turns} turns");

        beacon.notify_offline();
        for number in 0..3 {
            beacon.post("order", &number);
            beacon.set_session(Some(if number % 2 == 0 { "even" } else { "odd" }));
        }
        sleep(secs(30)).await;
        assert_eq!(beacon.counters().spooled, 3);
        server.set_script(|_| Reply::Broken);
        beacon.notify_online();
        erased_after(turns, &beacon).await;
        let before = server.requests();
        server.set_script(|_| Reply::Accept);
        sleep(secs(600)).await;
        let late = server.seen().split_off(before);
        assert!(late.iter().all(|seen| seen.batch.events.is_empty()), "{turns} turns: {late:?}");
        let counters = beacon.counters();
        assert!(counters.balances() && counters.queued + counters.spooled == 0, "{counters:?}");
    }
}

async fn erased_after(turns: u32, beacon: &Beacon) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    beacon.erase_user("anna").await.unwrap();
}

/// B18: the rest of a row waits for its user, and holds up nobody who is there.
#[tokio::test(start_paused = true)]
async fn a_row_that_was_settled_in_part_does_not_hold_up_the_rows_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::accepting();
    let beacon = spooling(&server, folder.path()).build().unwrap();
    beacon.notify_offline();
    for user in ["anna", "bob"] {
        beacon.set_user(Some(user));
        beacon.post("order", &user);
        beacon.post("order", &user);
        sleep(secs(30)).await;
    }
    server.set_script(|_| Reply::After(secs(2), Box::new(ack(&[Verdict::Retry, Verdict::Accepted]))));
    beacon.set_user(Some("anna"));
    beacon.notify_online();
    sleep(secs(1)).await;
    assert_eq!((beacon.counters().in_flight, beacon.counters().spooled), (2, 2));
    sleep(secs(1) + Duration::from_millis(100)).await;
    assert_eq!((beacon.counters().queued, beacon.counters().spooled), (1, 2));
    beacon.set_user(Some("bob"));
    server.set_script(|_| Reply::Accept);
    sleep(secs(600)).await;
    let counters = beacon.counters();
    assert_eq!((counters.acked, counters.queued, counters.spooled), (3, 1, 0), "{counters:?}");
    beacon.set_user(Some("anna"));
    sleep(secs(60)).await;
    assert_eq!(beacon.counters().acked, 4);
}

/// B9: a name that no batch can carry costs its own events and nobody else's.
#[tokio::test(start_paused = true)]
async fn a_user_of_any_length_does_not_stop_the_spool() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::accepting();
    let beacon = spooling(&server, folder.path()).build().unwrap();
    for length in [60_000, 70_000, 300_000, 3_000_000] {
        beacon.set_user(Some(&"u".repeat(length)));
        beacon.post("order", &length);
        sleep(secs(1)).await;
    }
    beacon.set_user(Some("anna"));
    beacon.post("order", &"last").durable().await.unwrap();
    let counters = beacon.counters();
    assert_eq!((counters.dead, counters.dropped["too_large"]), (1, 2), "{counters:?}");
    let long = "u".repeat(3_000_000);
    assert_eq!(beacon.erase_user(&long).await.unwrap(), 0);
    beacon.notify_offline();
    beacon.set_user(Some(&long));
    let counters = beacon.shutdown(secs(5)).await;
    assert_eq!(counters.dropped_in_all(), 2, "{counters:?}");
    assert!(server.seen().iter().all(|seen| seen.inflated_len <= 65_536));
}

/// B28: numbers that are erased in the spool of a process that is gone will not come, and somebody has to say so.
#[tokio::test(start_paused = true)]
async fn what_is_erased_of_others_is_declared() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::accepting();
    let gone = spooling(&server, folder.path()).user("anna").build().unwrap();
    gone.notify_offline();
    gone.post("order", &1);
    assert_eq!(gone.shutdown(secs(1)).await.spooled, 1);
    let beacon = spooling(&server, folder.path()).build().unwrap();
    assert_eq!(beacon.erase_user("anna").await.unwrap(), 1);
    beacon.post("order", &2).urgent();
    sleep(secs(1)).await;
    let gaps: Vec<_> = server.seen().into_iter().flat_map(|seen| seen.batch.head.gaps).collect();
    assert!(
        gaps.iter().any(|gap| gap.stream == gone.stream() && gap.first == 0 && gap.why == "erased"),
        "{gaps:?}"
    );
}

static WARNED: Early = Early::new();

/// Posts what the application's log says, as the log of an application that is starting may.
struct PostsItsLog;

impl tracing::Subscriber for PostsItsLog {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        drop(WARNED.post("log", event.metadata().name()));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// B2: building a beacon does not wait for a log that posts.
#[test]
fn a_log_that_posts_early_does_not_hold_up_the_start() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        WARNED.post("dump", &"x".repeat(10_000));
        for number in 0..3 {
            WARNED.post(&"r".repeat(500_000), &number);
        }
        assert_eq!(WARNED.len(), 3, "routes need room as well");
        let beacon = tracing::subscriber::with_default(PostsItsLog, || {
            let server = ScriptedTransport::accepting();
            Beacon::builder("shop").transport(server).early(&WARNED).build().unwrap()
        });
        let counters = beacon.shutdown_blocking(secs(5));
        assert!(counters.balances() && counters.posted > 4, "{counters:?}");
        done.send(()).unwrap();
    });
    // One that waits for itself waits for ever: this is what only a broken run waits for.
    is_done.recv_timeout(secs(60)).unwrap();
}

/// Posts whenever it wakes somebody.
struct Posts(Beacon);

impl std::task::Wake for Posts {
    fn wake(self: Arc<Self>) {
        self.0.post("woken", &1);
    }
}

/// B2: whoever waits for an answer may do anything when it comes, on whichever thread that is.
#[test]
fn a_waker_may_post() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let folder = tempfile::tempdir().unwrap();
        let server = ScriptedTransport::accepting();
        let spool = SpoolOptions::new(folder.path().join("spool"));
        let beacon =
            Beacon::builder("shop").transport(server).spool(spool).batch_bytes(1024).build().unwrap();
        let waker = std::task::Waker::from(Arc::new(Posts(beacon.clone())));
        let mut context = std::task::Context::from_waker(&waker);
        let mut written = beacon.post("order", &1).durable().into_future();
        let mut flushed = Box::pin(beacon.flush(secs(60)));
        assert!(written.as_mut().poll(&mut context).is_pending());
        assert!(flushed.as_mut().poll(&mut context).is_pending());
        while beacon.counters().posted < 3 {
            std::thread::park_timeout(Duration::from_millis(3));
        }
        assert!(beacon.shutdown_blocking(secs(5)).balances());
        done.send(()).unwrap();
    });
    is_done.recv_timeout(secs(60)).unwrap();
}
