//! Tasks that come after the end of another one, however that ended.

use std::future::pending;
use std::sync::mpsc;

use afterboot::{Governor, Outcome, SkipReason, Task, TaskHandle};
use tokio::time::sleep;

use crate::common::{
    Log, alive, boom, breathe, count, ended, fast, ms, secs, silence, soon, started, within,
};

fn logged(log: &Log, name: &'static str) -> Task<()> {
    let log = log.clone();
    Task::new(name, move || async move { log.add(name) })
}

fn skipped_by(name: &str) -> Outcome {
    Outcome::Skipped(SkipReason::Predecessor(name.into()))
}

/// Every way to end but completion.
const BADLY: [&str; 6] = ["failed", "panicked", "timed out", "cancelled", "skipped", "invalid"];

fn ends_badly(governor: &Governor, how: &'static str) -> TaskHandle<()> {
    match how {
        "failed" => governor.govern(Task::new(how, || async { Err::<(), _>("no") })),
        "panicked" => governor.govern(Task::new(how, boom)),
        "timed out" => governor.govern(Task::new(how, pending::<()>).timeout(ms(5))),
        "cancelled" => {
            let task = governor.govern(Task::new(how, pending::<()>));
            let canceller = task.clone();
            tokio::spawn(async move {
                sleep(ms(5)).await;
                canceller.cancel();
            });
            task
        }
        "skipped" => governor.govern(Task::new(how, pending::<()>).when(false)),
        "invalid" => governor.govern(Task::new(how, pending::<()>).timeout(ms(0))),
        _ => unreachable!("a case"),
    }
}

/// I10: one that must complete, and one that need only end, on both sides of a flag that is off.
#[tokio::test(start_paused = true)]
async fn a_flag_off_skips_what_needs_its_value_and_not_what_only_waits_for_its_end() {
    let governor = fast(3);
    let log = Log::default();
    let a = governor.govern(logged(&log, "a").when(false));
    let b = governor.govern(logged(&log, "b").after(&a));
    let c = governor.govern(logged(&log, "c").after_settled(&a));
    let d = governor.govern(logged(&log, "d").after_settled(&b));
    governor.govern(logged(&log, "e").after(&b));
    governor.govern(logged(&log, "f").after(&c).after_settled(&b).after(&d));
    let report = within(governor.report().finished()).await;
    assert_eq!(ended(&report, "a"), Outcome::Skipped(SkipReason::Condition));
    assert_eq!(ended(&report, "b"), skipped_by("a"));
    assert_eq!(ended(&report, "e"), skipped_by("b"));
    assert_eq!(log.all(), ["c", "d", "f"]);
    assert_eq!(report.task("f").unwrap().waited_for, ["c", "b", "d"]);
}

/// I10: declared before that end and after it.
#[tokio::test(start_paused = true)]
async fn any_end_will_do_for_a_task_that_only_waits_for_it() {
    silence();
    let governor = fast(3);
    for how in BADLY {
        let first = ends_badly(&governor, how);
        let before = governor.govern(Task::value("before", || async { 1 }).after_settled(&first));
        assert_eq!(*within(before.wait()).await.unwrap(), 1, "{how}");
        assert_eq!(first.try_get().expect("it has ended").unwrap_err().outcome().unwrap().word(), how);
        let after = governor.govern(Task::value("after", || async { 2 }).after_settled(&first));
        assert_eq!(*within(after.wait()).await.unwrap(), 2, "{how}");
    }
}

/// I10: in whatever order the two words come, before that end and after it.
#[tokio::test(start_paused = true)]
async fn a_predecessor_named_twice_must_complete_where_one_of_the_words_says_so() {
    silence();
    for how in BADLY {
        for order in [[true, false, false], [false, true, false], [false, false, true], [true, true, false]] {
            let governor = fast(3);
            let first = ends_badly(&governor, how);
            let declare = |name: &'static str| {
                let task = order.into_iter().fold(Task::new(name, boom), |task, strict| {
                    if strict { task.after(&first) } else { task.after_settled(&first) }
                });
                governor.govern(task)
            };
            let before = declare("before");
            let error = within(before.wait()).await.unwrap_err();
            assert_eq!(error.outcome(), Some(&skipped_by(how)), "{how} {order:?}");
            let after = declare("after");
            assert_eq!(after.try_get().expect("at once").unwrap_err().outcome(), Some(&skipped_by(how)));
        }
    }
}

/// I6, I10: and where it does complete, its successor starts once, and not before.
#[tokio::test(start_paused = true)]
async fn a_predecessor_named_twice_that_completes_lets_its_successor_start_once() {
    let governor = fast(3);
    let first = governor.govern(Task::new("first", || sleep(ms(20))));
    governor
        .govern(Task::new("second", || async {}).after_settled(&first).after(&first).after_settled(&first));
    let report = within(governor.report().finished()).await;
    assert!(started(&report, "second") >= report.task("first").unwrap().finished.unwrap(), "{report}");
    assert_eq!(report.task("second").unwrap().attempts, 1);
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I10: it waits for all of them, whichever is last.
#[tokio::test(start_paused = true)]
async fn a_task_of_mixed_predecessors_waits_for_the_last_of_them() {
    for (good, bad) in [(10, 30), (30, 10)] {
        let governor = fast(3);
        let good = governor.govern(Task::new("good", move || sleep(ms(good))));
        let bad = governor.govern(Task::new("bad", move || async move {
            sleep(ms(bad)).await;
            Err::<(), _>("no")
        }));
        governor.govern(Task::new("last", || async {}).after(&good).after_settled(&bad));
        let report = within(governor.report().finished()).await;
        assert_eq!(count(&report, "completed"), 2);
        assert!(started(&report, "last") >= ms(30), "{report}");
    }
}

/// I10: it does not wait for an end that cannot change anything.
#[tokio::test(start_paused = true)]
async fn a_predecessor_that_failed_skips_at_once_though_another_has_not_ended() {
    let governor = fast(3);
    let for_ever = governor.govern(Task::new("for ever", pending::<()>));
    let bad = governor.govern(Task::new("bad", || async { Err::<(), _>("no") }));
    let last = governor.govern(Task::new("last", || async {}).after_settled(&for_ever).after(&bad));
    let next = governor.govern(Task::value("next", || async { 3 }).after_settled(&last));
    assert_eq!(within(last.wait()).await.unwrap_err().outcome(), Some(&skipped_by("bad")));
    assert_eq!(*within(next.wait()).await.unwrap(), 3);
    for_ever.cancel();
    assert!(within(for_ever.wait()).await.unwrap_err().is_cancelled());
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I7, I10: one panic after the other, two thousand times, and each has its successor.
#[tokio::test(start_paused = true)]
async fn a_chain_of_panics_runs_to_its_end_where_each_only_waits_for_the_last_one() {
    silence();
    let governor = fast(1);
    let mut last = governor.govern(Task::new("root", boom));
    for _ in 0..2_000 {
        last = governor.govern(Task::new("link", boom).after_settled(&last));
    }
    governor.govern(Task::new("end", || async {}).after_settled(&last));
    let report = within(governor.report().finished()).await;
    assert_eq!((count(&report, "panicked"), count(&report, "completed")), (2_001, 1));
}

/// I9, I10: a demand demands what it waits for, whatever is asked of that.
#[tokio::test(start_paused = true)]
async fn a_demand_goes_through_predecessors_that_need_only_end() {
    silence();
    let governor = fast(1);
    governor.govern(Task::new("holds the slot", pending::<()>));
    let a = governor.govern(Task::new("a", boom).idle());
    let b = governor.govern(Task::new("b", || async {}).idle().after_settled(&a));
    let c = governor.govern(Task::value("c", || async { 4 }).idle().after(&b));
    assert_eq!(*within(c.demand()).await.unwrap(), 4);
    let report = governor.report().current();
    assert!(report.taken < secs(1), "{report}");
    assert!(["a", "b", "c"].iter().all(|name| report.task(name).unwrap().demanded), "{report}");
    assert_eq!(ended(&report, "a").word(), "panicked");
}

/// I10, I14: the end that a shutdown brings lets nobody start.
#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_start_what_waits_for_the_end_of_what_it_stops() {
    silence();
    let governor = fast(3);
    let runs = governor.govern(Task::new("runs", pending::<()>));
    let ends = governor.govern(Task::new("ends", || sleep(ms(50))));
    governor.govern(Task::new("after runs", boom).after_settled(&runs));
    governor.govern(Task::new("after ends", boom).after_settled(&ends));
    breathe().await;
    let report = within(governor.shutdown(ms(100))).await;
    for name in ["runs", "after runs", "after ends"] {
        assert_eq!(ended(&report, name).word(), "cancelled", "{report}");
    }
    assert_eq!(ended(&report, "ends"), Outcome::Completed);
}

/// I11: an end that is told while the code runs on is an end too.
#[tokio::test]
async fn a_blocking_task_that_timed_out_has_settled_though_it_still_runs() {
    let governor = fast(3);
    let (release, released) = mpsc::channel::<()>();
    let blocking = governor.govern(
        Task::blocking("blocking", move || {
            let _ = released.recv();
        })
        .timeout(ms(20)),
    );
    let after = governor.govern(Task::value("after", || async { 5 }).after_settled(&blocking));
    assert_eq!(*soon(after.wait()).await.unwrap(), 5);
    assert!(governor.snapshot().running.iter().any(|task| task.name == "blocking" && task.detached));
    release.send(()).unwrap();
}

/// I8: a handle of another governor is no predecessor, whatever is asked of it.
#[tokio::test(start_paused = true)]
async fn a_handle_of_another_governor_is_refused_where_its_end_would_do_too() {
    let (mine, other) = (fast(1), fast(1));
    let foreign = other.govern(Task::new("foreign", || async {}));
    let task = mine.govern(Task::new("task", || async {}).after_settled(&foreign));
    let error = task.try_get().expect("at once").unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("another governor"), "{error}");
}
