//! What if: what moves with a replay, and what cannot be replayed.

use std::time::Duration;

use afterboot::{Governor, Monkey, Task};
use tokio::time::sleep;

use crate::common::{ms, secs, within};
use crate::replay::{find, recorded, recorder, replayed_times, slow, times};

#[tokio::test(start_paused = true)]
async fn independent_tasks_that_only_wait_end_no_later_with_more_slots() {
    let governor = recorder(slow(1));
    for n in 0..12_u64 {
        governor.govern(Task::new(format!("{n}"), move || sleep(ms(20 + 13 * n % 50))));
    }
    let report = within(governor.report().finished()).await;
    let ends: Vec<_> =
        (1..=12).map(|slots| report.replay(&slow(slots)).unwrap().last_finish.unwrap()).collect();
    assert!(ends.is_sorted_by(|fewer, more| fewer >= more), "{ends:?}");
    assert!(ends[11] < ends[0] / 2, "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_a_handle_lends_its_slot_and_waits_for_that_task() {
    let governor = recorder(slow(1));
    let last = governor.govern(Task::new("last", || sleep(ms(300))).idle());
    governor.govern(Task::new("first", move || async move { last.demand().await.map(|_| ()) }));
    let report = within(governor.report().finished()).await;
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let later = report.replay(&slow(1).delay(secs(1))).unwrap();
    assert!(later.is_estimate);
    let (first, last) = (find(&later, "first"), find(&later, "last"));
    assert_eq!(first.started, Some(ms(1_000)));
    assert_eq!(last.started, Some(ms(1_000)), "it was demanded by the first");
    assert_eq!((first.finished, last.finished), (Some(ms(1_300)), Some(ms(1_300))));
}

/// I9
#[tokio::test(start_paused = true)]
async fn a_demand_comes_when_it_did() {
    let governor = recorder(slow(1).delay(ms(50)));
    governor.govern(Task::new("first", || sleep(ms(30))));
    let last = governor.govern(Task::new("last", || sleep(ms(30))).idle());
    let after = governor.govern(Task::new("after", || sleep(ms(5))).idle().after(&last));
    sleep(ms(37)).await;
    drop(after.demand());
    let report = within(governor.report().finished()).await;
    let demanded: Vec<_> = report.tasks.iter().map(|task| task.demanded_at).collect();
    assert_eq!(demanded, [None, Some(ms(37)), Some(ms(37))]);
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let sooner = report.replay(&slow(1).delay(ms(40))).unwrap();
    assert_eq!(find(&sooner, "last").started, Some(ms(37)));
}

#[tokio::test(start_paused = true)]
async fn what_a_task_declares_moves_with_it() {
    let governor = recorder(slow(2));
    let inside = governor.clone();
    governor.govern(Task::new("outer", move || async move {
        sleep(ms(30)).await;
        inside.govern(Task::new("inner", || sleep(ms(5))));
        sleep(ms(30)).await;
    }));
    let report = within(governor.report().finished()).await;
    assert_eq!(report.task("inner").unwrap().declared_in, Some(0));
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let later = report.replay(&slow(2).delay(secs(1))).unwrap();
    assert_eq!(find(&later, "inner").started, Some(ms(1_030)));
}

#[tokio::test(start_paused = true)]
async fn the_gate_opens_by_what_opened_it() {
    // By quiet: 100 ms after the first idle task, whatever the profile.
    let governor = recorder(slow(1));
    governor.govern(Task::new("idle", || sleep(ms(5))).idle());
    let report = within(governor.report().finished()).await;
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let opened = report.replay(&slow(4)).unwrap().gate_opened.unwrap();
    assert!((ms(100)..ms(110)).contains(&opened), "{opened:?}");

    // By hand: when it was.
    let governor = recorder(slow(1));
    governor.govern(Task::new("idle", || sleep(ms(5))).idle());
    sleep(ms(40)).await;
    governor.open_gate();
    let report = within(governor.report().finished()).await;
    assert_eq!(report.replay(&slow(4)).unwrap().gate_opened, Some(ms(40)));

    // By the timeout, since `ready` was never said.
    let governor = Governor::builder()
        .quiet(ms(100))
        .gate_timeout(secs(2))
        .await_ready()
        .record_segments()
        .build()
        .unwrap();
    governor.govern(Task::new("idle", || sleep(ms(5))).idle());
    let report = within(governor.report().finished()).await;
    assert_eq!(report.replay(&slow(4)).unwrap().gate_opened, Some(secs(2)));
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_those_of_the_recording() {
    let governor = recorder(slow(3));
    let fails = governor.govern(Task::new("fails", || async { Err::<(), _>("no") }));
    governor.govern(Task::new("skipped", || async {}).after(&fails));
    governor.govern(Task::new("settled", || async {}).after_settled(&fails));
    governor.govern(Task::new("off", || async {}).when(false));
    governor.govern(Task::new("off at start", || async {}).when_at_start(|| false));
    governor.govern(Task::new("late", || sleep(secs(9))).timeout(ms(50)));
    governor.govern(Task::new("wrong", || async {}).timeout(Duration::ZERO));
    governor.govern(Task::new("cancelled", || async {}).idle()).cancel();
    let report = within(governor.report().finished()).await;
    let replay = recorded(&report);
    assert_eq!(replayed_times(&replay), times(&report));
    let ran: Vec<&str> =
        replay.tasks.iter().filter(|t| t.started.is_some()).map(|t| t.name.as_str()).collect();
    assert_eq!(ran, ["fails", "settled", "late"]);
}

#[tokio::test(start_paused = true)]
async fn the_recorded_victim_is_delayed_again_and_another_monkey_picks_its_own() {
    let governor = recorder(slow(1).monkey(Monkey::random(secs(3))));
    for n in 0..5 {
        governor.govern(Task::new(format!("{n}"), || sleep(ms(5))));
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let replay = report.replay(&slow(1).monkey(Monkey::task("2", secs(7)))).unwrap();
    assert!(find(&replay, "2").started > Some(secs(7)), "{replay}");
    assert!(report.replay(&slow(1)).unwrap().last_finish < Some(secs(1)));
}

#[tokio::test(start_paused = true)]
async fn merged_polls_take_as_long_as_they_did() {
    let governor = recorder(slow(1));
    governor.govern(Task::new("many polls", || async {
        for n in 0..1_000_u64 {
            sleep(ms(n % 4)).await;
        }
    }));
    let report = within(governor.report().finished()).await;
    let (was, is) = (report.last_finish.unwrap(), recorded(&report).last_finish.unwrap());
    assert!(was.abs_diff(is) < ms(5), "{was:?}, replayed as {is:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_replayed_is_said() {
    let governor = recorder(slow(1));
    governor.govern(Task::new("waits", std::future::pending::<()>));
    let run = governor.report();
    sleep(ms(50)).await;
    let error = run.current().replay(&slow(1)).unwrap_err();
    assert!(error.is_unended(), "{error}");

    let plain = Governor::builder().build().unwrap();
    plain.govern(Task::new("runs", || async {}));
    let mut report = within(plain.report().finished()).await;
    let error = report.replay(&slow(1)).unwrap_err();
    assert!(error.is_no_segments() && error.to_string().contains("record_segments()"), "{error}");
    let error = report.replay(&slow(0)).unwrap_err();
    assert!(error.is_profile() && error.to_string().contains("concurrency: 0"), "{error}");
    report.version = 2;
    let error = report.replay(&slow(1)).unwrap_err();
    assert!(error.is_version() && error.to_string().contains("version 2"), "{error}");
    governor.shutdown(ms(0)).await;
}

/// I20
#[tokio::test(start_paused = true)]
async fn the_table_is_narrow_and_plain_whatever_the_names() {
    let governor = recorder(slow(1));
    governor.govern(Task::new("\u{202e}\x1b[2J".repeat(60), || async {}));
    governor.govern(Task::new("索引".repeat(60), || sleep(secs(1_000))));
    let report = within(governor.report().finished()).await;
    let text = report.replay(&slow(2)).unwrap().to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
    assert!(text.starts_with("estimate: 2 tasks"), "{text}");
}
