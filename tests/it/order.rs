//! Predecessors, conditions, and which of the waiting tasks is next.

use std::future::pending;

use afterboot::{Outcome, SkipReason, Task, TaskHandle};
use tokio::time::sleep;

use crate::common::{
    Log, alive, boom, breathe, count, ended, fast, ms, paced, secs, silence, started, within,
};

fn logged(log: &Log, name: &'static str) -> Task<()> {
    let log = log.clone();
    Task::new(name, move || async move { log.add(name) })
}

fn skipped_by(name: &str) -> Outcome {
    Outcome::Skipped(SkipReason::Predecessor(name.into()))
}

/// I10, I7, I14
#[tokio::test(start_paused = true)]
async fn a_panic_skips_all_that_comes_after_and_the_run_finishes() {
    silence();
    let governor = fast(3);
    let a = governor.govern(Task::new("a", boom));
    let b = governor.govern(Task::new("b", || async {}).after(&a));
    let c = governor.govern(Task::new("c", || async {}).after(&b).idle());
    let run = governor.report();
    let report = within(run.finished()).await;
    assert_eq!(ended(&report, "b"), skipped_by("a"));
    assert_eq!(ended(&report, "c"), skipped_by("b"));
    assert!(report.taken < ms(10), "it did not wait for the gate");
    assert!(within(run.started()).await.last_start.is_some());
    for handle in [&b, &c] {
        assert!(within(handle.wait()).await.unwrap_err().is_skipped());
    }
    sleep(ms(10)).await;
    assert_eq!(alive(), 0);
}

/// I10: whichever way the predecessor did not complete, before and after the successor was declared.
#[tokio::test(start_paused = true)]
async fn every_end_but_completion_skips_the_successors() {
    silence();
    let governor = fast(3);
    let declare = |name: &'static str| -> TaskHandle<()> {
        match name {
            "failed" => governor.govern(Task::new(name, || async { Err::<(), _>("no") })),
            "panicked" => governor.govern(Task::new(name, boom)),
            "timed out" => governor.govern(Task::new(name, pending::<()>).timeout(ms(5))),
            "cancelled" => {
                let task = governor.govern(Task::new(name, pending::<()>));
                let canceller = task.clone();
                tokio::spawn(async move {
                    sleep(ms(5)).await;
                    canceller.cancel();
                });
                task
            }
            "skipped" => governor.govern(Task::new(name, pending::<()>).when(false)),
            "invalid" => governor.govern(Task::new(name, pending::<()>).timeout(ms(0))),
            _ => unreachable!("a case"),
        }
    };
    for name in ["failed", "panicked", "timed out", "cancelled", "skipped", "invalid"] {
        let first = declare(name);
        let before = governor.govern(Task::new("before", boom).after(&first));
        assert_eq!(within(before.wait()).await.unwrap_err().outcome().unwrap(), &skipped_by(name));
        assert_eq!(within(first.wait()).await.unwrap_err().outcome().unwrap().word(), name);
        let after = governor.govern(Task::new("after", boom).after(&first));
        assert_eq!(after.try_get().expect("at once").unwrap_err().outcome().unwrap(), &skipped_by(name));
    }
}

/// I10: walked in a loop, not in a recursion.
#[tokio::test(start_paused = true)]
async fn a_chain_of_ten_thousand_completes_in_order_and_is_skipped_as_a_whole() {
    silence();
    for fails in [false, true] {
        let governor = fast(3);
        let log = Log::default();
        let root = if fails { Task::new("root", boom) } else { logged(&log, "root") };
        let mut last = governor.govern(root);
        for n in 0..10_000 {
            let log = log.clone();
            last = governor
                .govern(Task::new("link", move || async move { log.add(n.to_string()) }).after(&last));
        }
        let report = within(governor.report().finished()).await;
        if fails {
            assert_eq!(count(&report, "skipped"), 10_000);
            assert_eq!(log.all().len(), 0);
        } else {
            assert_eq!(count(&report, "completed"), 10_001);
            assert!(log.all().iter().skip(1).enumerate().all(|(n, name)| *name == n.to_string()));
        }
        breathe().await;
        assert_eq!(alive(), 0);
    }
}

/// I10, I9
#[tokio::test(start_paused = true)]
async fn the_end_of_a_chain_of_ten_thousand_may_be_demanded_or_its_head_cancelled() {
    for demand in [true, false] {
        let governor = fast(1);
        let head = governor.govern(Task::new("head", || async {}).idle());
        let mut last = head.clone();
        for _ in 0..10_000 {
            last = governor.govern(Task::new("link", || async {}).after(&last).idle());
        }
        if demand {
            within(last.demand()).await.unwrap();
        } else {
            head.cancel();
            assert!(last.try_get().expect("at once").unwrap_err().is_skipped());
        }
    }
}

/// I10, I6: two ways lead to the last, which starts once, after both.
#[tokio::test(start_paused = true)]
async fn a_diamond_starts_its_last_task_once_after_both_sides() {
    let governor = fast(4);
    let a = governor.govern(Task::new("a", || async {}));
    let left = governor.govern(Task::new("left", || sleep(ms(10))).after(&a));
    let right = governor.govern(Task::new("right", || sleep(ms(30))).after(&a));
    governor.govern(Task::new("last", || async {}).after(&left).after(&right).after(&left));
    let report = within(governor.report().finished()).await;
    assert!(started(&report, "last") >= report.task("right").unwrap().finished.unwrap());
    assert_eq!(report.task("last").unwrap().attempts, 1);
    assert_eq!(report.task("last").unwrap().waited_for, ["left", "right", "left"]);
}

/// I10, I6: both sides fail, the last is skipped once, by the first that did not complete.
#[tokio::test(start_paused = true)]
async fn a_diamond_whose_sides_both_fail_skips_its_last_task_once() {
    silence();
    let governor = fast(4);
    let root = governor.govern(Task::new("root", boom));
    let left = governor.govern(Task::new("left", || async {}).after(&root));
    let right = governor.govern(Task::new("right", || async {}).after(&root));
    let last = governor.govern(Task::new("last", || async {}).after(&left).after(&right));
    let after = governor.govern(Task::new("after", || async {}).after(&last).after(&root));
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "skipped"), 4);
    assert!(after.is_finished());
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I10, I3
#[tokio::test(start_paused = true)]
async fn a_fan_out_of_ten_thousand_starts_in_order_of_declaration() {
    let governor = fast(1024);
    let log = Log::default();
    let root = governor.govern(Task::new("root", || sleep(ms(10))));
    for n in 0..10_000 {
        let log = log.clone();
        governor.govern(Task::new("leaf", move || async move { log.add(n.to_string()) }).after(&root));
    }
    within(governor.report().finished()).await;
    let order = log.all();
    assert_eq!(order.len(), 10_000);
    assert!(order.iter().enumerate().all(|(n, name)| *name == n.to_string()));
}

/// I10, I3: ten thousand predecessors of one.
#[tokio::test(start_paused = true)]
async fn a_fan_in_starts_after_the_last_of_its_predecessors() {
    let governor = fast(100);
    let mut last = Task::new("last", || async {});
    for n in 0..1_000 {
        last = last.after(&governor.govern(Task::new(format!("{n}"), move || sleep(ms(n % 17)))));
    }
    governor.govern(last);
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 1_001);
    let all_ended = report.tasks.iter().take(1_000).filter_map(|task| task.finished).max().unwrap();
    assert!(started(&report, "last") >= all_ended);
}

/// I10, I2: with one slot, the waiting task would hang everything.
#[tokio::test(start_paused = true)]
async fn a_waiting_task_holds_no_slot() {
    let governor = fast(1);
    let log = Log::default();
    let slow = governor.govern(Task::new("slow", || sleep(ms(50))));
    governor.govern(logged(&log, "waits").after(&slow));
    let idle = governor.govern(logged(&log, "idle").idle());
    governor.govern(logged(&log, "waits for idle").after(&idle).idle());
    governor.govern(logged(&log, "free"));
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 5);
    assert_eq!(log.all(), ["waits", "free", "idle", "waits for idle"]);
}

/// I3: it was declared before those that wait in the queue already.
#[tokio::test(start_paused = true)]
async fn a_task_that_had_to_wait_takes_the_place_its_declaration_gives_it() {
    let governor = paced(1, ms(0), ms(10));
    let log = Log::default();
    let first = governor.govern(logged(&log, "first"));
    governor.govern(logged(&log, "second").after(&first));
    for name in ["third", "fourth"] {
        governor.govern(logged(&log, name));
    }
    within(governor.report().finished()).await;
    assert_eq!(log.all(), ["first", "second", "third", "fourth"]);
}

/// I10
#[tokio::test(start_paused = true)]
async fn a_false_condition_skips_the_task_and_conditions_add_up() {
    let governor = fast(1);
    let log = Log::default();
    governor.govern(logged(&log, "both").when(true).when(true));
    governor.govern(logged(&log, "one").when(true).when(false).when(true));
    governor.govern(logged(&log, "idle off").when(false).idle());
    let report = within(governor.report().finished()).await;
    assert_eq!(log.all(), ["both"]);
    assert_eq!(ended(&report, "one"), Outcome::Skipped(SkipReason::Condition));
    assert!(report.taken < secs(1));
    assert_eq!(alive(), 0, "an idle task that is skipped needs no probe");
}

/// I10: a flag off in the middle of a chain.
#[tokio::test(start_paused = true)]
async fn a_flag_off_in_the_middle_of_a_chain_skips_the_rest_of_it() {
    let governor = fast(1);
    let log = Log::default();
    let a = governor.govern(logged(&log, "a"));
    let b = governor.govern(logged(&log, "b").after(&a).when(false));
    let c = governor.govern(logged(&log, "c").after(&b).after(&a));
    let report = within(governor.report().finished()).await;
    assert_eq!(log.all(), ["a"]);
    assert_eq!(ended(&report, "b"), Outcome::Skipped(SkipReason::Condition));
    assert_eq!(ended(&report, "c"), skipped_by("b"));
    assert!(c.is_finished());
}

/// I8, I10; that it takes no longer than in proportion, `cargo bench --bench report` shows.
#[tokio::test(start_paused = true)]
async fn a_task_may_come_after_fifty_thousand_others_and_after_some_of_them_twice() {
    let governor = fast(1_024);
    let before: Vec<_> =
        (0..50_000).map(|n| governor.govern(Task::new(format!("{n}"), || async {}))).collect();
    let mut task = Task::new("last", || async {});
    for handle in before.iter().chain(&before[..1_000]) {
        task = task.after(handle);
    }
    within(governor.govern(task).wait()).await.unwrap();
    assert!(before.iter().all(|handle| handle.is_finished()));
}
