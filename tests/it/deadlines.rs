//! An idle task's own deadline, and what is promoted into the more urgent queue.

use std::future::pending;
use std::time::Duration;

use afterboot::{GateState, Governor, Profile, Queue, Report, Task, TaskHandle, WaitReason};
use tokio::time::{sleep, timeout};

use crate::common::{Log, alive, breathe, ended, fast, ms, paced, secs, started, within};

fn logged(log: &Log, name: &'static str) -> Task<()> {
    let log = log.clone();
    Task::new(name, move || async move { log.add(name) })
}

/// Takes the only slot for this long.
fn holds(governor: &Governor, length: Duration) -> TaskHandle<()> {
    governor.govern(Task::new("holds", move || sleep(length)))
}

fn promoted(report: &Report, name: &str) -> bool {
    let task = report.task(name).unwrap_or_else(|| panic!("{name} is not in the report"));
    task.promoted
}

/// I27, I12: it passes the gate and leaves it shut.
#[tokio::test(start_paused = true)]
async fn an_idle_task_starts_at_its_own_deadline_though_the_gate_is_shut() {
    let governor = fast(1);
    let task = governor.govern(Task::new("task", || async {}).idle().no_later_than(ms(700)));
    let other = governor.govern(Task::new("other", || async {}).idle());
    within(task.wait()).await.unwrap();
    let report = governor.report().current();
    assert!(started(&report, "task") >= ms(700) && started(&report, "task") <= ms(702), "{report}");
    assert_eq!(report.task("task").unwrap().queue, Queue::Idle, "as it was declared");
    assert!(
        promoted(&report, "task") && !promoted(&report, "other") && !report.task("task").unwrap().demanded
    );
    assert!(
        matches!(governor.gate(), GateState::Shut { why: WaitReason::Window, .. }),
        "{}",
        governor.gate()
    );
    assert!(!other.is_finished());
}

/// I27, I2, I3: before all normal tasks that wait, and not before there is a slot.
#[tokio::test(start_paused = true)]
async fn past_its_deadline_it_stands_at_the_head_of_normal_and_still_takes_a_slot() {
    let governor = fast(1);
    let log = Log::default();
    holds(&governor, ms(100));
    for name in ["normal 1", "normal 2"] {
        governor.govern(logged(&log, name));
    }
    governor.govern(logged(&log, "idle").idle().no_later_than(ms(30)));
    let report = within(governor.report().finished()).await;
    assert_eq!(log.all(), ["idle", "normal 1", "normal 2"]);
    assert!(started(&report, "idle") >= ms(100), "{report}");
}

/// I27, I5.
#[tokio::test(start_paused = true)]
async fn past_its_deadline_it_still_waits_for_the_pulse() {
    let governor = paced(5, ms(0), ms(40));
    governor.govern(Task::new("first", || async {}));
    governor.govern(Task::new("idle", || async {}).idle().no_later_than(ms(10)));
    governor.govern(Task::new("second", || async {}));
    let report = within(governor.report().finished()).await;
    assert!(started(&report, "idle") >= started(&report, "first") + ms(40), "{report}");
    assert!(started(&report, "second") >= started(&report, "idle") + ms(40), "{report}");
}

/// I27, I3: by declaration, not by whose deadline passed first.
#[tokio::test(start_paused = true)]
async fn those_past_their_deadlines_start_in_the_order_of_their_declaration() {
    let governor = fast(1);
    let log = Log::default();
    holds(&governor, ms(100));
    breathe().await;
    governor.govern(logged(&log, "a").idle().no_later_than(ms(50)));
    governor.govern(logged(&log, "b").idle().no_later_than(ms(20)));
    governor.govern(logged(&log, "normal"));
    governor.govern(logged(&log, "c").idle().no_later_than(ms(0)));
    within(governor.report().finished()).await;
    assert_eq!(log.all(), ["a", "b", "c", "normal"]);
}

/// I27, I10: what it comes after is as late as it is.
#[tokio::test(start_paused = true)]
async fn its_deadline_draws_what_it_comes_after_to_the_head_too() {
    let governor = fast(1);
    let log = Log::default();
    holds(&governor, ms(100));
    governor.govern(logged(&log, "normal"));
    governor.govern(logged(&log, "not needed").idle());
    let a = governor.govern(logged(&log, "a").idle());
    let b = governor.govern(logged(&log, "b").idle().after(&a));
    governor.govern(logged(&log, "late").idle().after_settled(&b).no_later_than(ms(30)));
    let run = governor.report();
    sleep(ms(110)).await;
    assert_eq!(log.all(), ["a", "b", "late", "normal"]);
    let report = within(run.finished()).await;
    assert!(["a", "b", "late"].iter().all(|name| promoted(&report, name)), "{report}");
    assert!(!promoted(&report, "not needed") && !promoted(&report, "normal"), "{report}");
    assert!(started(&report, "not needed") >= secs(5));
}

/// I27, I10: a deadline that passes during the wait for a predecessor counts as soon as that is over.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_during_a_wait_counts_from_the_end_of_the_wait() {
    let governor = fast(2);
    let log = Log::default();
    let slow = governor.govern(Task::new("slow", || sleep(ms(100))));
    holds(&governor, ms(100));
    for _ in 0..3 {
        governor.govern(logged(&log, "normal"));
    }
    governor.govern(logged(&log, "late").idle().after(&slow).no_later_than(ms(20)));
    within(governor.report().finished()).await;
    assert_eq!(log.all()[0], "late");
}

/// I27, I12: the gate was open in time.
#[tokio::test(start_paused = true)]
async fn a_task_that_started_in_time_is_not_drawn() {
    let governor = fast(1);
    governor.open_gate();
    governor.govern(Task::new("task", || sleep(secs(2))).idle().no_later_than(secs(1)));
    let report = within(governor.report().finished()).await;
    assert!(!promoted(&report, "task"), "{report}");
    assert!(started(&report, "task") < ms(5));
}

/// I27, I8, I21: for a normal task it means nothing; before or after `idle` is the same.
#[tokio::test(start_paused = true)]
async fn a_deadline_for_a_normal_task_is_invalid_and_draws_nothing() {
    let governor = fast(1);
    let a = governor.govern(Task::new("a", || async {}).idle());
    let normal = governor.govern(Task::new("normal", || async {}).after(&a).no_later_than(ms(5)));
    let error = normal.try_get().expect("at once").unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("no_later_than"), "{error}");
    let idle = governor.govern(Task::new("idle", || async {}).no_later_than(ms(5)).idle());
    within(idle.wait()).await.unwrap();
    assert!(!a.is_finished());
}

/// I27, I19: what is over leaves no timer behind, and the longest deadline is none.
#[tokio::test(start_paused = true)]
async fn a_deadline_whose_task_is_over_wakes_nobody() {
    let governor = fast(1);
    let far = governor.govern(Task::new("far", || async {}).idle().no_later_than(Duration::MAX));
    let cancelled = governor.govern(Task::new("cancelled", pending::<()>).idle().no_later_than(secs(1)));
    let skipped =
        governor.govern(Task::new("skipped", pending::<()>).idle().when(false).no_later_than(secs(1)));
    cancelled.cancel();
    assert!(skipped.is_finished());
    within(far.wait()).await.unwrap();
    assert!(started(&governor.report().current(), "far") >= secs(5));
    breathe().await;
    assert_eq!(alive(), 0);
    timeout(secs(1_000), pending::<()>()).await.unwrap_err();
}

/// I27, I19: nobody looks whether it is quiet once the last idle task is late.
#[tokio::test(start_paused = true)]
async fn the_probe_ends_when_the_last_idle_task_is_drawn() {
    let governor = fast(1);
    holds(&governor, secs(100));
    governor.govern(Task::new("idle", || async {}).idle().no_later_than(secs(1)));
    sleep(ms(900)).await;
    assert_eq!(alive(), 2, "lane and probe");
    sleep(ms(200)).await;
    assert_eq!(alive(), 1);
    assert_eq!((governor.snapshot().normal, governor.snapshot().idle), (1, 0));
}

/// I27, I3, I10: it keeps its number, and goes no further than that.
#[tokio::test(start_paused = true)]
async fn a_predecessor_is_drawn_into_the_normal_queue_at_the_place_of_its_number() {
    let governor = fast(1);
    let log = Log::default();
    holds(&governor, ms(10));
    governor.govern(logged(&log, "normal 1"));
    let a = governor.govern(logged(&log, "a").idle());
    governor.govern(logged(&log, "normal 2"));
    let b = governor.govern(logged(&log, "b").idle().after(&a));
    governor.govern(logged(&log, "normal 3"));
    governor.govern(logged(&log, "last").after(&b));
    let report = within(governor.report().finished()).await;
    assert_eq!(log.all(), ["normal 1", "a", "normal 2", "b", "normal 3", "last"]);
    assert!(promoted(&report, "a") && promoted(&report, "b") && !promoted(&report, "last"), "{report}");
    assert_eq!(report.task("a").unwrap().queue, Queue::Idle);
    assert_eq!(report.to_string().matches("completed, promoted").count(), 2, "{report}");
    assert!(report.taken < secs(1), "{report}");
}

/// I27, I10: nor does a wrong declaration, an idle task, or one of a governor that was shut down.
#[tokio::test(start_paused = true)]
async fn a_task_that_will_not_run_draws_nothing() {
    let governor = fast(1);
    let a = governor.govern(Task::new("a", || async {}).idle());
    let failed = governor.govern(Task::new("failed", || async { Err::<(), _>("no") }));
    within(failed.wait()).await.unwrap_err();
    governor.govern(Task::new("off", || async {}).after(&a).when(false));
    governor.govern(Task::new("wrong", || async {}).after(&a).timeout(ms(0)));
    governor.govern(Task::new("in vain", || async {}).after(&a).after(&failed));
    governor.govern(Task::new("idle", || async {}).after(&a).idle());
    let report = within(governor.report().finished()).await;
    assert!(!promoted(&report, "a") && started(&report, "a") >= secs(5), "{report}");
    assert_eq!(ended(&report, "in vain").word(), "skipped");
}

/// I27, I10: one that may yet say no at its start is waited for, so what it comes after is promoted.
#[tokio::test(start_paused = true)]
async fn a_task_whose_condition_is_asked_later_draws() {
    let governor = fast(1);
    let a = governor.govern(Task::new("a", || async {}).idle());
    governor.govern(Task::new("asks", || async {}).after(&a).when_at_start(|| false));
    let report = within(governor.report().finished()).await;
    assert!(promoted(&report, "a") && report.taken < secs(1), "{report}");
}

/// I27, I15: a victim that is promoted is delayed once, and its deadline does not end the delay.
#[tokio::test(start_paused = true)]
async fn a_victim_waits_its_whole_delay_though_its_deadline_passes() {
    let profile: Profile = "concurrency=1,delay=0,pulse=0,monkey=victim,monkey_delay=60s".parse().unwrap();
    let governor = Governor::builder().profile(profile).build().unwrap();
    governor.govern(Task::new("victim", || async {}).idle().no_later_than(secs(10)));
    governor.open_gate();
    let report = within(governor.report().finished()).await;
    assert!(started(&report, "victim") >= secs(60), "{report}");
}
