//! Whatever is lost is counted, declared and told, whoever finds it. Under a paused clock.

use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::wire::Gap;
use afterboot_beacon::{
    Beacon, BeaconBuilder, BeaconEvent, BeaconEvents, DeadLetters, DropReason, Next, SpoolOptions,
};
use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::common::{Root, balance, balanced, secs};

fn beacon(server: &ScriptedTransport, options: SpoolOptions) -> BeaconBuilder {
    let builder =
        Beacon::builder("shop").transport(server.clone()).spool(options).replay_spread(Duration::ZERO);
    builder.runtime(Handle::current()).wall_from_tokio().seed(5)
}

fn down() -> ScriptedTransport {
    ScriptedTransport::new(|_| Reply::Broken)
}

/// How many were told to be dropped for this reason.
fn told_dropped(events: &mut BeaconEvents, reason: DropReason) -> u64 {
    let mut sum = 0;
    while let Some(next) = events.try_next() {
        if let Next::Event(BeaconEvent::Dropped { reason: told, events, .. }) = next
            && told == reason
        {
            sum += events;
        }
    }
    sum
}

fn told_dead(events: &mut BeaconEvents) -> Vec<(u64, &'static str, Option<u16>)> {
    let mut dead = Vec::new();
    while let Some(next) = events.try_next() {
        if let Next::Event(BeaconEvent::Dead { events, reason, status, .. }) = next {
            dead.push((events, reason, status));
        }
    }
    dead
}

fn gaps(server: &ScriptedTransport, why: &str) -> Vec<Gap> {
    let gaps = server.seen().into_iter().flat_map(|seen| seen.batch.head.gaps);
    gaps.filter(|gap| gap.why == why).collect()
}

fn numbers(gaps: &[Gap]) -> u64 {
    gaps.iter().map(|gap| gap.last - gap.first + 1).sum()
}

/// Changes the rows that lie under this root.
fn change(root: &Root, statement: &str) -> usize {
    let change = |dir: std::path::PathBuf| {
        Connection::open(dir.join("spool.db")).unwrap().execute(statement, []).unwrap_or_default()
    };
    root.processes().into_iter().map(change).sum()
}

/// Leaves these rows behind, a batch each, and says by whom they were numbered.
async fn left_behind(root: &Root, user: Option<&str>, events: usize, keep: Duration) -> String {
    let beacon = beacon(&down(), root.options()).batch_events(1).build().unwrap();
    beacon.set_user(user);
    for number in 0..events {
        beacon.post("click", &number).expiry(keep);
    }
    let stream = beacon.stream().to_string();
    let counters = balance(beacon.shutdown(secs(5)).await);
    assert_eq!(counters.spooled, events as u64, "{counters:?}");
    stream
}

const CUTS: [&str; 3] = [
    "UPDATE batch SET body = substr(body, 1, length(body) - 20) WHERE first_seq IN (1, 3)",
    "UPDATE batch SET body = CAST(substr(body, 1, 40) || x'ff' || substr(body, 42) AS BLOB) WHERE first_seq IN (1, 3)",
    "UPDATE batch SET body = x'00', bytes = 1 WHERE first_seq IN (1, 3)",
];

/// B28, B30: by whoever takes them over.
#[tokio::test(start_paused = true)]
async fn a_damaged_row_that_another_process_left_is_counted_declared_and_told() {
    for cut in CUTS {
        let (server, root) = (ScriptedTransport::accepting(), Root::new());
        let stream = left_behind(&root, None, 5, secs(3600)).await;
        assert_eq!(change(&root, cut), 2, "{cut}");
        let heir = beacon(&server, root.options()).build().unwrap();
        let mut events = heir.events();
        sleep(secs(10)).await;
        heir.post("click", "mine");
        sleep(secs(10)).await;
        let counters = balanced(&heir);
        assert_eq!((counters.adopted, counters.acked), (5, 4), "{counters:?}");
        assert_eq!(counters.dropped["corrupt"], 2, "{counters:?}");
        let declared = gaps(&server, "corrupt");
        assert_eq!(numbers(&declared), 2, "{declared:?}");
        assert!(declared.iter().all(|gap| gap.stream.to_string() == stream && [1, 3].contains(&gap.first)));
        assert_eq!(told_dropped(&mut events, DropReason::Corrupt), 2);
    }
}

/// B28, B30: and by whoever wrote them.
#[tokio::test(start_paused = true)]
async fn a_damaged_row_of_ones_own_is_counted_declared_and_told() {
    for cut in CUTS {
        let (server, root) = (down(), Root::new());
        let beacon = beacon(&server, root.options()).batch_events(1).build().unwrap();
        let mut events = beacon.events();
        for number in 0..5 {
            beacon.post("click", &number);
        }
        sleep(secs(60)).await;
        assert_eq!(balanced(&beacon).spooled, 5);
        assert_eq!(change(&root, cut), 2, "{cut}");
        server.set_script(|_| Reply::Accept);
        sleep(secs(60)).await;
        beacon.post("click", "later");
        sleep(secs(10)).await;
        let counters = balanced(&beacon);
        assert_eq!((counters.acked, counters.dropped["corrupt"]), (4, 2), "{counters:?}");
        let declared = gaps(&server, "corrupt");
        assert_eq!(numbers(&declared), 2, "{declared:?}");
        assert_eq!(told_dropped(&mut events, DropReason::Corrupt), 2);
    }
}

/// B28, B30: a whole file, too. What was sent of its numbers has arrived, so to declare them does no harm.
#[tokio::test(start_paused = true)]
async fn a_file_of_ones_own_that_is_lost_is_declared() {
    let (server, root) = (down(), Root::new());
    let beacon = beacon(&server, root.options()).batch_events(1).build().unwrap();
    for number in 0..5 {
        beacon.post("click", &number);
    }
    sleep(secs(60)).await;
    assert_eq!(balanced(&beacon).spooled, 5);
    std::fs::remove_dir_all(root.path()).unwrap();
    server.set_script(|_| Reply::Accept);
    sleep(secs(60)).await;
    beacon.post("click", "later");
    sleep(secs(10)).await;
    let counters = balanced(&beacon);
    assert_eq!((counters.acked, counters.dropped["corrupt"]), (1, 5), "{counters:?}");
    let declared = gaps(&server, "corrupt");
    assert_eq!((declared.len(), numbers(&declared)), (1, 5), "{declared:?}");
}

/// B6, B30: in a file that is corrupt, what its rows say of themselves may still be readable.
#[tokio::test(start_paused = true)]
async fn a_corrupt_file_that_another_process_left_is_counted_as_far_as_it_can_be_read() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    left_behind(&root, None, 5, secs(3600)).await;
    // No statement that picks rows works any more.
    let dirs = root.processes().into_iter();
    let spoiled = dirs.filter(|dir| {
        let spoil = "ALTER TABLE batch RENAME COLUMN user TO somebody";
        Connection::open(dir.join("spool.db")).unwrap().execute_batch(spoil).is_ok()
    });
    assert_eq!(spoiled.count(), 1);
    let heir = beacon(&server, root.options()).build().unwrap();
    let mut events = heir.events();
    sleep(secs(10)).await;
    heir.post("click", "mine");
    sleep(secs(10)).await;
    let counters = balanced(&heir);
    assert_eq!((counters.adopted, counters.acked, counters.dropped["corrupt"]), (5, 1, 5), "{counters:?}");
    assert_eq!(told_dropped(&mut events, DropReason::Corrupt), 5);
    assert_eq!(numbers(&gaps(&server, "corrupt")), 5);
}

/// B6, B30: one of which nothing can be read is told all the same.
#[tokio::test(start_paused = true)]
async fn a_file_of_another_process_that_nobody_can_read_is_told() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    left_behind(&root, None, 5, secs(3600)).await;
    for dir in root.processes() {
        std::fs::write(dir.join("spool.db"), [0x5a; 8192]).unwrap();
    }
    let heir = beacon(&server, root.options()).build().unwrap();
    let mut events = heir.events();
    sleep(secs(10)).await;
    balanced(&heir);
    assert_eq!(unreadable(&mut events), 1);
}

/// B6, B28, B30: what expired in another process's spool is counted by whoever finds it, declared and told.
#[tokio::test(start_paused = true)]
async fn what_expired_at_others_is_counted_declared_and_told_by_who_finds_it() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    let heir = beacon(&server, root.options()).user("a").build().unwrap();
    let mut events = heir.events();
    sleep(secs(1)).await;
    let stream = left_behind(&root, Some("b"), 3, secs(1800)).await;
    sleep(secs(1200)).await;
    assert_eq!((balanced(&heir).adopted, root.processes().len()), (0, 2), "they wait for their user");
    sleep(secs(1300)).await;
    heir.post("click", "mine");
    sleep(secs(10)).await;
    let counters = balanced(&heir);
    assert_eq!((counters.adopted, counters.acked), (3, 1), "{counters:?}");
    assert_eq!(counters.dropped["expired"], 3);
    let declared = gaps(&server, "expired");
    assert_eq!(numbers(&declared), 3, "{declared:?}");
    assert!(declared.iter().all(|gap| gap.stream.to_string() == stream));
    assert_eq!(told_dropped(&mut events, DropReason::Expired), 3);
}

/// B6, B30: as is what a user was erased from.
#[tokio::test(start_paused = true)]
async fn what_is_erased_at_others_is_counted_and_told() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    left_behind(&root, Some("b"), 3, secs(3600)).await;
    let heir = beacon(&server, root.options()).user("a").build().unwrap();
    let mut events = heir.events();
    sleep(secs(1)).await;
    assert_eq!(heir.erase_user("b").await.unwrap(), 3);
    heir.post("click", "mine");
    sleep(secs(10)).await;
    let counters = balanced(&heir);
    assert_eq!((counters.adopted, counters.dropped["erased"]), (3, 3), "{counters:?}");
    assert_eq!(numbers(&gaps(&server, "erased")), 3);
    assert_eq!(told_dropped(&mut events, DropReason::Erased), 3);
}

/// B6, B30: what expires, is displaced or is erased in memory is told as what is dropped at once is.
#[tokio::test(start_paused = true)]
async fn what_is_given_up_in_memory_is_told() {
    let server = down();
    let builder = Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).seed(1);
    let beacon = builder.wall_from_tokio().max_events(3).build().unwrap();
    let mut events = beacon.events();
    for number in 0..3 {
        beacon.post("click", &number).expiry(secs(60));
    }
    beacon.post("order", &1).vital().expiry(secs(60));
    assert_eq!(told_dropped(&mut events, DropReason::Displaced), 1);
    sleep(secs(100)).await;
    assert_eq!(balanced(&beacon).dropped["expired"], 3);
    assert_eq!(told_dropped(&mut events, DropReason::Expired), 3);
}

/// B9: alone it is too large, and that is told.
#[tokio::test(start_paused = true)]
async fn an_event_that_the_server_finds_too_large_is_told_as_dead() {
    let (server, root) = (ScriptedTransport::new(|_| Reply::Status(413)), Root::new());
    let beacon = beacon(&server, root.options()).build().unwrap();
    let mut events = beacon.events();
    beacon.post("large", &"x".repeat(60_000));
    sleep(secs(10)).await;
    assert_eq!(balanced(&beacon).dead, 1);
    assert_eq!(told_dead(&mut events), [(1, "oversize", Some(413))]);
    // Too large for any batch.
    beacon.post("larger", &"x".repeat(100_000));
    sleep(secs(10)).await;
    assert_eq!(balanced(&beacon).dead, 2);
    assert_eq!(told_dead(&mut events), [(1, "oversize", None)]);
    assert_eq!(beacon.dead_letters(None, 9).await.unwrap().len(), 2);
}

/// B6, B9, B30: each dead letter is told, and what their bound throws away is no dead letter any more.
#[tokio::test(start_paused = true)]
async fn dead_letters_beyond_their_bound_are_counted_apart_and_told() {
    let (server, root) = (ScriptedTransport::new(|_| Reply::Status(422)), Root::new());
    let beacon = beacon(&server, root.options().max_dead_letters(5)).batch_events(1).build().unwrap();
    let mut events = beacon.events();
    for number in 0..20 {
        beacon.post("click", &number);
        sleep(secs(10)).await;
    }
    let counters = balanced(&beacon);
    assert_eq!((counters.dead, counters.dropped["dead_full"]), (5, 15), "{counters:?}");
    assert_eq!(beacon.dead_letters(None, 99).await.unwrap().len(), 5);
    let mut told = beacon.events();
    assert!(told.try_next().is_none());
    assert_eq!(told_dropped(&mut events, DropReason::DeadFull), 15);
}

/// B6, B30: others' dead letters, which this ledger never had, are adopted and dropped in one step.
#[tokio::test(start_paused = true)]
async fn dead_letters_of_others_beyond_the_bound_are_counted_too() {
    let (server, root) = (ScriptedTransport::new(|_| Reply::Status(422)), Root::new());
    let left = beacon(&server, root.options()).batch_events(1).build().unwrap();
    for number in 0..8 {
        left.post("click", &number);
        sleep(secs(10)).await;
    }
    assert_eq!(balance(left.shutdown(secs(5)).await).dead, 8);
    let heir = beacon(&server, root.options().max_dead_letters(5)).build().unwrap();
    sleep(secs(10)).await;
    let counters = balanced(&heir);
    assert_eq!((counters.adopted, counters.dropped["dead_full"], counters.dead), (3, 3, 0), "{counters:?}");
    assert_eq!(heir.dead_letters(None, 99).await.unwrap().len(), 5);
}

/// B6, B30: their file is lost, and they with it.
#[tokio::test(start_paused = true)]
async fn dead_letters_of_a_file_that_is_lost_are_counted_as_corrupt() {
    let (server, root) = (ScriptedTransport::new(|_| Reply::Status(422)), Root::new());
    let beacon = beacon(&server, root.options()).batch_events(1).build().unwrap();
    for number in 0..3 {
        beacon.post("click", &number);
        sleep(secs(10)).await;
    }
    assert_eq!(balanced(&beacon).dead, 3);
    std::fs::remove_dir_all(root.path()).unwrap();
    beacon.post("click", "one more");
    sleep(secs(10)).await;
    let counters = balanced(&beacon);
    assert_eq!((counters.dead, counters.dropped["corrupt"]), (1, 3), "{counters:?}");
}

/// A dead letter that is sent again lives as long as its first life was, not for ever.
#[tokio::test(start_paused = true)]
async fn a_replayed_letter_lives_as_long_as_its_first_life() {
    let (server, root) = (ScriptedTransport::new(|_| Reply::Status(422)), Root::new());
    let beacon = beacon(&server, root.options()).build().unwrap();
    beacon.post("click", &1).expiry(secs(2 * 3600));
    sleep(secs(10)).await;
    let letters = beacon.dead_letters(None, 9).await.unwrap();
    server.set_script(|_| Reply::Broken);
    beacon.replay_dead_letters(&[letters[0].id()]).await.unwrap();
    sleep(secs(3600)).await;
    assert_eq!(balanced(&beacon).spooled + beacon.counters().queued + beacon.counters().in_flight, 1);
    sleep(secs(2 * 3600)).await;
    let counters = balanced(&beacon);
    assert_eq!(counters.dropped["expired"], 1, "{counters:?}");
}

/// B30: the whole way, to the server.
#[tokio::test(start_paused = true)]
async fn what_a_tool_erases_at_others_is_declared_to_the_server() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    let stream = left_behind(&root, Some("b"), 3, secs(3600)).await;
    assert_eq!(DeadLetters::open(root.path()).unwrap().erase_user("b").unwrap(), 3);
    let heir = beacon(&server, root.options()).build().unwrap();
    sleep(secs(10)).await;
    let declared = gaps(&server, "erased");
    assert_eq!(numbers(&declared), 3, "{declared:?}");
    assert!(declared.iter().all(|gap| gap.stream.to_string() == stream));
    let counters = balance(heir.shutdown(secs(5)).await);
    assert_eq!((counters.adopted, counters.spooled), (0, 0), "{counters:?}");
    assert_eq!(root.processes().len(), 0);
}

/// A life of any length is one.
#[tokio::test(start_paused = true)]
async fn an_event_may_be_kept_for_ever() {
    let (server, root) = (down(), Root::new());
    let left = beacon(&server, root.options()).build().unwrap();
    left.post("click", &1).expiry(Duration::MAX).durable().await.unwrap();
    left.post("click", &2).expiry(Duration::MAX);
    sleep(secs(100_000)).await;
    assert_eq!(balance(left.shutdown(secs(5)).await).spooled, 2);
    server.set_script(|_| Reply::Accept);
    let heir = beacon(&server, root.options()).build().unwrap();
    sleep(secs(60)).await;
    assert_eq!(balanced(&heir).acked, 2);
}

/// B30: a log without its database holds nothing that anybody can read.
#[tokio::test(start_paused = true)]
async fn a_log_whose_database_was_removed_is_told() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    left_behind(&root, None, 2, secs(3600)).await;
    for dir in root.processes() {
        std::fs::rename(dir.join("spool.db"), dir.join("spool.db-wal")).unwrap();
    }
    let heir = beacon(&server, root.options()).build().unwrap();
    let mut events = heir.events();
    sleep(secs(10)).await;
    assert_eq!(unreadable(&mut events), 1);
}

fn unreadable(events: &mut BeaconEvents) -> usize {
    let told = std::iter::from_fn(|| events.try_next());
    let nothing = |next: &Next| {
        matches!(next, Next::Event(BeaconEvent::Dropped { reason: DropReason::Corrupt, events: 0, .. }))
    };
    told.filter(nothing).count()
}
