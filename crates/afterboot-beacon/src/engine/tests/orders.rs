//! Who goes first, and who has to go.

use super::*;
use crate::engine::exchange::EvictedRow;
use crate::engine::ledger::DropReason;

fn posted(core: &mut Core, priority: Priority, names: impl IntoIterator<Item = String>, now: Now) {
    for name in names {
        let _ = post(core, &name, Wish { priority, ..Wish::default() }, now);
    }
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

/// B20: a vital newcomer takes the oldest basic event's place, and a vital one's only where no basic one is left.
#[test]
fn at_the_limit_vital_outlives_basic() {
    let mut core = core(20, false);
    core.offline();
    posted(&mut core, Priority::Basic, names("b", 15), at(0));
    posted(&mut core, Priority::Vital, names("v", 5), at(1));
    assert_eq!(
        post(&mut core, "late basic", Wish::default(), at(2)),
        Err(Refusal::Dropped(DropReason::QueueFull))
    );
    posted(&mut core, Priority::Vital, names("w", 17), at(3));
    core.endpoint.online(at(4).at);
    let mut left = Vec::new();
    while let Some(outgoing) = core.take(at(10_000)) {
        left.extend(datas(&outgoing));
        accept(&mut core, outgoing, at(10_000));
    }
    let expected: Vec<String> = names("v", 5).split_off(2).into_iter().chain(names("w", 17)).collect();
    assert_eq!(left, expected);
    let counters = core.ledger.counters();
    assert_eq!(counters.dropped["displaced"], 17);
    assert_eq!(counters.dropped["queue_full"], 1);
    core.audit(&[], 0);
}

/// B23: a full batch goes at once while the server is well, and waits like the rest while it is not.
#[test]
fn a_full_batch_does_not_pass_a_backoff() {
    let mut core = core(1000, false);
    posted(&mut core, Priority::Basic, names("a", 10), at(0));
    let first = core.take(at(0)).unwrap();
    fail(&mut core, first, at(0));
    posted(&mut core, Priority::Basic, names("b", 10), at(1));
    posted(&mut core, Priority::Vital, names("v", 10), at(1));
    assert!(core.take(at(700)).is_none());
    let probe = core.take(at(1000)).unwrap();
    assert!(probe.probe);
    assert!(core.take(at(1000)).is_none(), "one probe");
    assert_eq!(datas(&probe), names("v", 10));
    accept(&mut core, probe, at(1001));
    // B8: the failed batch is ahead of what came later.
    assert_eq!(datas(&core.take(at(1001)).unwrap()), names("a", 10));
    assert_eq!(datas(&core.take(at(1001)).unwrap()), names("b", 10));
    assert!(core.take(at(1001)).is_none());
}

/// B11: what left before the failure is still under way, and its outcome is not the probe's.
#[test]
fn no_probe_leaves_while_a_request_from_before_the_failure_is_under_way() {
    let mut core = core(1000, false);
    posted(&mut core, Priority::Basic, names("a", 30), at(0));
    let one = core.take(at(0)).unwrap();
    let two = core.take(at(0)).unwrap();
    fail(&mut core, two, at(0));
    assert!(core.take(at(2000)).is_none(), "the backoff is over, and one request is still under way");
    accept(&mut core, one, at(2000));
    assert!(!core.endpoint.is_open(), "it says nothing of what came after it");
    assert!(core.take(at(2000)).unwrap().probe);
    assert!(core.take(at(2000)).is_none());
}

/// B8: a batch that is under way is in nobody else's hands, and two requests are the most.
#[test]
fn a_batch_in_flight_is_not_taken_again() {
    let mut core = core(1000, false);
    posted(&mut core, Priority::Basic, names("a", 35), at(0));
    let one = core.take(at(6000)).unwrap();
    let two = core.take(at(6000)).unwrap();
    assert_eq!((datas(&one).len(), datas(&two).len()), (10, 10));
    assert!(core.take(at(6000)).is_none());
    accept(&mut core, two, at(6001));
    assert_eq!(datas(&core.take(at(6001)).unwrap()), names("a", 35)[20..30]);
    fail(&mut core, one, at(6002));
}

/// B10, B9: a batch that is too large is parted, the limit grows again by probing, and an event that is too large alone
/// becomes a dead letter while the rest goes on.
#[test]
fn a_batch_that_is_too_large_is_parted_and_the_limit_grows_again() {
    let mut core = core(1000, false);
    let data = "x".repeat(1000);
    for _ in 0..200 {
        post(&mut core, &data, Wish::default(), at(0)).unwrap();
    }
    let mut largest = Vec::new();
    let mut refused = 0;
    while let Some(outgoing) = core.take(at(10_000)) {
        let size = outgoing.batch.encoded_len(Core::overhead(&outgoing.batch.head));
        if size > 5000 {
            refused += 1;
            core.settle(outgoing, Outcome::TooLarge, at(10_000));
        } else {
            largest.push(outgoing.batch.len());
            accept(&mut core, outgoing, at(10_000));
        }
    }
    let counters = core.ledger.counters();
    assert_eq!((counters.acked, counters.dead), (200, 0));
    assert!((2..=12).contains(&refused), "refused {refused} times");
    assert_eq!(largest.iter().max(), Some(&4));
    // The server takes everything now.
    for _ in 0..400 {
        post(&mut core, &data, Wish::default(), at(10_000)).unwrap();
    }
    let mut last = 0;
    while let Some(outgoing) = core.take(at(20_000)) {
        last = last.max(outgoing.batch.len());
        accept(&mut core, outgoing, at(20_000));
    }
    assert_eq!(last, 10, "whole batches leave again");
    core.audit(&[], 0);
}

#[test]
fn a_single_event_that_the_server_finds_too_large_is_set_aside_and_the_rest_goes_on() {
    let mut core = core(1000, false);
    post(&mut core, &"x".repeat(9000), Wish::default(), at(0)).unwrap();
    posted(&mut core, Priority::Basic, names("small", 9), at(0));
    while let Some(outgoing) = core.take(at(10_000)) {
        let too_large = outgoing.batch.encoded_len(Core::overhead(&outgoing.batch.head)) > 8000;
        if too_large {
            core.settle(outgoing, Outcome::TooLarge, at(10_000));
        } else {
            accept(&mut core, outgoing, at(10_000));
        }
    }
    let counters = core.ledger.counters();
    assert_eq!((counters.acked, counters.dead), (9, 1));
    let dead = core.take_dead();
    assert_eq!((dead.len(), dead[0].reason, dead[0].status), (1, "oversize", Some(413)));
}

/// B18: what was posted before somebody else came leaves under the name it was posted under.
#[test]
fn a_new_user_seals_what_the_one_before_posted() {
    let mut core = core(1000, false);
    core.set_user(Some("anna".to_owned()), at(0));
    posted(&mut core, Priority::Basic, names("a", 3), at(0));
    core.set_user(Some("ben".to_owned()), at(1));
    posted(&mut core, Priority::Basic, names("b", 3), at(2));
    core.make_all_due(at(3));
    let mut seen = Vec::new();
    while let Some(outgoing) = core.take(at(3)) {
        seen.push((outgoing.batch.head.user.clone().unwrap(), datas(&outgoing)));
        accept(&mut core, outgoing, at(3));
    }
    assert_eq!(seen, [("anna".to_owned(), names("a", 3)), ("ben".to_owned(), names("b", 3))]);
}

/// B27: a durable post is neither replaced nor does it replace.
#[test]
fn durable_posts_are_never_merged() {
    let mut core = core(1000, true);
    post(&mut core, "one", Wish { merge: Some("k"), ..Wish::default() }, at(0)).unwrap();
    let receipt = Some(receipt());
    post(&mut core, "two", Wish { merge: Some("k"), receipt, ..Wish::default() }, at(1)).unwrap();
    post(&mut core, "three", Wish { merge: Some("k"), ..Wish::default() }, at(2)).unwrap();
    assert_eq!(core.ledger.counters().merged, 1, "three replaced one, and nothing touched two");
    let writing = core.take_for_disk(at(2));
    assert_eq!(writing.len(), 1);
    assert_eq!(writing[0].len(), 2);
}

#[test]
fn the_last_of_a_key_wins_within_ten_seconds_and_not_after() {
    let mut core = core(1000, false);
    let merge = || Wish { merge: Some("k"), ..Wish::default() };
    core.offline();
    post(&mut core, "one", merge(), at(0)).unwrap();
    post(&mut core, "two", merge(), at(9_999)).unwrap();
    post(&mut core, "three", merge(), at(19_999)).unwrap();
    post(&mut core, "four", merge(), at(30_001)).unwrap();
    core.endpoint.online(at(30_002).at);
    assert_eq!(datas(&core.take(at(40_000)).unwrap()), ["three", "four"]);
    assert_eq!(core.ledger.counters().merged, 2);
}

/// What is displaced after its number was given is declared; before that it leaves no gap.
#[test]
fn a_number_that_will_not_come_is_declared() {
    let mut core = core(12, false);
    core.offline();
    posted(&mut core, Priority::Basic, names("b", 12), at(0));
    posted(&mut core, Priority::Vital, names("v", 11), at(1));
    core.endpoint.online(at(2).at);
    let mut gaps = Vec::new();
    let mut seqs = Vec::new();
    core.make_all_due(at(9000));
    core.end_stream(at(9000));
    let mut end = None;
    while let Some(outgoing) = core.take(at(10_000)) {
        gaps.extend(outgoing.batch.head.gaps.clone());
        seqs.extend(outgoing.batch.slots().iter().map(|slot| slot.seq));
        end = end.max(outgoing.batch.head.end);
        accept(&mut core, outgoing, at(10_000));
    }
    let declared: u64 = gaps.iter().map(|gap| gap.last - gap.first + 1).sum();
    assert_eq!(Some(seqs.len() as u64 + declared), end, "{gaps:?} {seqs:?}");
    assert_eq!(declared, 10, "ten of the eleven had a number: {gaps:?}");
}

/// What joins a batch that is on disk is not on disk for that.
#[test]
fn an_event_in_memory_only_does_not_hide_behind_a_durable_one() {
    let mut core = core(1000, true);
    let receipt = Some(receipt());
    post(
        &mut core,
        "on disk",
        Wish { urgent: true, priority: Priority::Vital, receipt, ..Wish::default() },
        at(0),
    )
    .unwrap();
    let batch = core.take_for_disk(at(0)).remove(0);
    core.spooled(vec![(batch, 1)], at(1));
    post(&mut core, "in memory", Wish { urgent: true, priority: Priority::Vital, ..Wish::default() }, at(1))
        .unwrap();
    let first = core.take(at(2)).unwrap();
    fail(&mut core, first, at(3));
    let for_disk = core.take_for_disk(at(20_000));
    let on_its_way: u64 = for_disk.iter().map(|batch| batch.events()).sum();
    let counters = core.ledger.counters();
    assert_eq!((counters.spooled, on_its_way), (1, 1));
}

/// B6: the spool gives a row up at the moment at which the server takes its events.
#[test]
fn a_row_that_is_evicted_after_its_events_were_settled_is_no_loss() {
    let mut core = core(1000, true);
    let receipt = Some(receipt());
    let wish = Wish { priority: Priority::Vital, receipt, ..Wish::default() };
    let _ = post(&mut core, "durable", wish, at(0));
    let written = core.take_for_disk(at(0)).into_iter().map(|batch| (batch, 7)).collect();
    core.spooled(written, at(1));
    let outgoing = core.take(at(1000)).unwrap();
    accept(&mut core, outgoing, at(1001));
    let reason = DropReason::SpoolFull;
    core.evicted(&[EvictedRow { row: 7, stream: STREAM, first: 0, last: 0, events: 1, reason }]);
    let counters = core.ledger.counters();
    assert_eq!((counters.acked, counters.dropped_in_all(), counters.spooled), (1, 0, 0), "{counters:?}");
    assert!(counters.balances(), "{counters:?}");
}

/// B29: it is the machine's time that an event ages by: neither a wall clock that is set nor a sleep of the machine, in
/// which the driver's timers stand still, changes that.
#[test]
fn an_event_ages_by_the_machines_time_alone() {
    let mut core = core(100, false);
    let unset = Now { wall: 5_000, ..at(0) };
    posted(&mut core, Priority::Basic, names("a", 1), unset);
    core.make_all_due(unset);
    core.expire(Now { mono: DAY - 1, ..at(10) });
    assert_eq!(core.ledger.counters().queued, 1);
    // It slept for a day, and its wall clock is wrong.
    core.expire(Now { mono: DAY, wall: 0, ..at(10) });
    assert_eq!(core.ledger.counters().dropped["expired"], 1);
    core.audit(&[], 0);
}

/// B15: what another's spool was not looked at for is over in seconds, and so is the wait for it.
#[test]
fn what_could_not_be_looked_at_is_looked_at_again_in_seconds() {
    let mut core = core(100, true);
    core.schedule_replay(at(0));
    assert!(core.replay_is_due(at(60_000)));
    core.replay_user();
    core.read_back(Vec::new(), at(60_000));
    assert!(!core.replay_is_due(at(600_000)), "nothing was there");
    core.look_again(at(60_000));
    assert!(!core.replay_is_due(at(64_000)), "at once would keep it busy");
    assert!(core.replay_is_due(at(65_000)));
    assert!(core.next_disk_wake(at(60_000)) <= at(65_000).at);
}

/// B31: a reason to read the backlog that comes while the disk does not work counts once it does.
#[test]
fn a_recovery_while_the_disk_does_not_work_brings_the_backlog_back_with_the_disk() {
    let mut core = core(100, true);
    posted(&mut core, Priority::Basic, names("a", 3), at(0));
    core.offline();
    let taken = core.take_for_disk(at(20_000));
    assert_eq!(taken.len(), 1);
    core.spooled(taken.into_iter().zip([1]).collect(), at(20_000));
    core.replay_user();
    core.read_back(Vec::new(), at(20_000));
    core.spool_lost();
    core.online(at(21_000));
    core.spool_found(at(22_000));
    assert!(core.replay_is_due(at(22_000)));
}
