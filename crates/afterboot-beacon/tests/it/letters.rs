//! Dead letters and erasure, by the handle of a running beacon.

use std::path::Path;
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::{Beacon, DropReason, Durability, NotDurable, SpoolOptions};
use tokio::runtime::Handle;
use tokio::time::sleep;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn beacon(server: &ScriptedTransport, folder: &Path) -> Beacon {
    Beacon::builder("shop")
        .transport(server.clone())
        .spool(SpoolOptions::new(folder.join("spool")))
        .runtime(Handle::current())
        .wall_from_tokio()
        .replay_spread(Duration::ZERO)
        .seed(1)
        .build()
        .unwrap()
}

/// B9: what the server refuses is kept, can be read, and leaves under its old number when it is replayed.
#[tokio::test(start_paused = true)]
async fn a_refused_batch_is_kept_read_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::new(|_| Reply::Status(422));
    let beacon = beacon(&server, folder.path());
    beacon.set_user(Some("anna"));
    beacon.post("order", &"one").vital();
    beacon.post("order", &"two").vital();
    sleep(secs(3)).await;
    assert_eq!((beacon.counters().dead, server.requests()), (2, 1));
    let letters = beacon.dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    let letter = &letters[0];
    assert_eq!((letter.reason(), letter.status(), letter.events()), ("refused", Some(422), 2));
    assert_eq!(letter.user(), Some("anna"));
    let kept: Vec<u64> = letter.batch().unwrap().events.iter().map(|event| event.seq).collect();

    server.set_script(|_| Reply::Accept);
    assert_eq!(beacon.replay_dead_letters(&[letter.id()]).await.unwrap(), 2);
    sleep(secs(3)).await;
    let counters = beacon.counters();
    assert_eq!((counters.dead, counters.acked), (0, 2), "{counters:?}");
    assert!(counters.balances());
    let sent: Vec<u64> = server.seen().last().unwrap().batch.events.iter().map(|event| event.seq).collect();
    assert_eq!(sent, kept);
    assert!(beacon.dead_letters(None, 10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn purged_letters_are_gone_and_stay_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::new(|_| Reply::Status(400));
    let beacon = beacon(&server, folder.path());
    for n in 0..3 {
        beacon.post("order", &n).urgent();
        sleep(secs(1)).await;
    }
    let letters = beacon.dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.len(), 3);
    let after = beacon.dead_letters(Some(letters[0].id()), 1).await.unwrap();
    assert_eq!(after[0].id(), letters[1].id());
    assert_eq!(beacon.purge_dead_letters(Some(&[letters[0].id()])).await.unwrap(), 1);
    assert_eq!(beacon.purge_dead_letters(None).await.unwrap(), 2);
    assert!(beacon.dead_letters(None, 10).await.unwrap().is_empty());
    assert_eq!(beacon.counters().dead, 3);
}

/// B18: what was to be forgotten is gone from memory and from the disk, and what others posted is not.
#[tokio::test(start_paused = true)]
async fn an_erased_user_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::new(|_| Reply::Broken);
    let beacon = beacon(&server, folder.path());
    beacon.set_user(Some("anna"));
    beacon.post("a", &"on disk").durable().await.unwrap();
    sleep(secs(60)).await;
    beacon.post("a", &"in memory");
    beacon.set_user(Some("ben"));
    beacon.post("b", &1).durable().await.unwrap();
    let before = beacon.counters();
    assert_eq!(beacon.erase_user("anna").await.unwrap(), 2, "{before:?}");
    let counters = beacon.counters();
    assert_eq!(counters.dropped["erased"], 2, "{counters:?}");
    assert!(counters.balances());
    server.set_script(|_| Reply::Accept);
    sleep(secs(120)).await;
    beacon.set_user(Some("anna"));
    sleep(secs(120)).await;
    let events: Vec<String> = server
        .seen()
        .into_iter()
        .filter(|seen| seen.batch.head.user.as_deref() == Some("anna"))
        .flat_map(|seen| seen.batch.events)
        .map(|event| event.data.get().to_owned())
        .filter(|data| data.contains("memory"))
        .collect();
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(beacon.counters().acked, 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_spool_there_are_no_letters_to_read_and_that_is_said() {
    let server = ScriptedTransport::accepting();
    let beacon = Beacon::builder("shop").transport(server).runtime(Handle::current()).build().unwrap();
    let error = beacon.dead_letters(None, 10).await.unwrap_err();
    assert!(error.is_storage() && error.to_string().contains("no spool"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_beacon_that_promises_nothing_answers_a_durable_post_at_once() {
    let server = ScriptedTransport::accepting();
    let builder = Beacon::builder("shop").transport(server).runtime(Handle::current());
    let beacon = builder.durability(Durability::Buffered).build().unwrap();
    assert_eq!(beacon.post("order", &1).durable().await, Ok(()));
    beacon.shutdown(secs(1)).await;
    assert_eq!(
        beacon.post("order", &1).durable().await,
        Err(NotDurable::Dropped(DropReason::Closed)),
        "not even in memory"
    );
}

/// B16: a shutdown with time left and a server that is well sends what this beacon has on disk as well.
#[tokio::test(start_paused = true)]
async fn a_shutdown_sends_its_own_backlog_while_time_lasts() {
    let folder = tempfile::tempdir().unwrap();
    let server = ScriptedTransport::new(|_| Reply::Broken);
    let builder =
        Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).wall_from_tokio();
    let spool = SpoolOptions::new(folder.path().join("spool"));
    let beacon = builder.spool(spool).batch_events(3).build().unwrap();
    for n in 0..200 {
        beacon.post("click", &n);
    }
    sleep(secs(60)).await;
    assert_eq!(beacon.counters().spooled, 200);
    server.set_script(|_| Reply::After(Duration::from_millis(2), Box::new(Reply::Accept)));
    beacon.notify_online();
    beacon.post("probe", &1).urgent();
    while beacon.counters().acked == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(
        beacon.counters().spooled > 100,
        "the backlog waits for a random moment: {:?}",
        beacon.counters()
    );
    let counters = beacon.shutdown(secs(10)).await;
    assert_eq!((counters.acked, counters.spooled), (201, 0), "{counters:?}");
    assert!(counters.balances());
}

/// B15: a neighbour that dies later is found too, without a restart, a recovery or another user.
#[tokio::test(start_paused = true)]
async fn what_a_neighbour_leaves_later_is_found_by_who_lives() {
    let folder = tempfile::tempdir().unwrap();
    let down = ScriptedTransport::new(|_| Reply::Broken);
    let server = ScriptedTransport::accepting();
    let living = beacon(&server, folder.path());
    sleep(secs(60)).await;
    let neighbour = beacon(&down, folder.path());
    neighbour.post("click", &1);
    let left = neighbour.shutdown(secs(5)).await;
    assert_eq!(left.spooled, 1, "{left:?}");
    sleep(secs(700)).await;
    let counters = living.counters();
    assert_eq!((counters.adopted, counters.acked), (1, 1), "{counters:?}");
}
