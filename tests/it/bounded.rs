//! A service that governs tasks for months keeps a bounded number of records, and its handles do not notice.

use std::future::pending;
use std::sync::Arc;

use afterboot::{Governor, Outcome, SkipReason, Task, TaskHandle};

use crate::common::{Log, alive, breathe, count, ended, fast, silence, within};

const FINISHED: u64 = 10_000;
const LATE: u64 = 1_000;

fn off(name: &'static str) -> Task<()> {
    Task::new(name, pending::<()>).when(false)
}

/// Tasks that end at once, as many as that.
fn many(governor: &Governor, tasks: u64) {
    for _ in 0..tasks {
        governor.govern(off("filler"));
    }
}

fn told<T: Send + Sync + 'static>(handle: &TaskHandle<T>) -> Outcome {
    let error = handle.try_get().expect("it has ended").err().expect("it gave no value");
    error.outcome().expect("it is no cycle").clone()
}

/// I29, I14: the last ones in order, the rest counted.
#[tokio::test(start_paused = true)]
async fn without_a_report_the_last_ten_thousand_that_ended_are_kept_and_the_rest_is_counted() {
    let governor = fast(64);
    let handles: Vec<_> = (0..FINISHED + 50)
        .map(|n| governor.govern(Task::value(format!("{n}"), move || async move { n })))
        .collect();
    for handle in &handles {
        within(handle.wait()).await.unwrap();
    }
    assert_eq!(governor.snapshot().declared, FINISHED + 50);
    let report = governor.report().current();
    assert_eq!((report.tasks.len() as u64, report.forgotten, report.late), (FINISHED, 50, 0));
    assert!(report.tasks.iter().zip(50..).all(|(task, n)| task.number == n && task.name == n.to_string()));
    assert!(report.to_string().contains("forgotten: 50 ended, not listed"));
    assert!(handles.iter().zip(0..).all(|(handle, n)| *handle.try_get().unwrap().unwrap() == n));
}

/// I29, I14: a report that was asked for keeps all of its scope, whatever ends afterwards.
#[tokio::test(start_paused = true)]
async fn a_report_keeps_all_of_its_scope_and_of_the_late_ones_the_last_thousand() {
    let governor = fast(1);
    let all: Vec<_> =
        (0..FINISHED + 20).map(|_| governor.govern(Task::new("in scope", pending::<()>))).collect();
    let run = governor.report();
    all.iter().for_each(TaskHandle::cancel);
    within(run.finished()).await;
    governor.govern(off("first late"));
    many(&governor, LATE + 99);
    let report = run.current();
    assert_eq!(count(&report, "cancelled") as u64, FINISHED + 20);
    assert_eq!((report.late, report.late_tasks.len() as u64, report.forgotten), (LATE + 100, LATE, 100));
    assert!(report.late_tasks.iter().zip(FINISHED + 120..).all(|(task, n)| task.number == n));
}

/// I29, I14: whoever has not ended is not forgotten, however many end meanwhile.
#[tokio::test(start_paused = true)]
async fn a_task_that_has_not_ended_is_never_forgotten() {
    let governor = fast(1);
    governor.govern(Task::new("runs", pending::<()>));
    governor.govern(Task::new("waits", pending::<()>).idle());
    many(&governor, 2 * FINISHED);
    let run = governor.report();
    assert!(["runs", "waits"].iter().all(|name| run.current().task(name).is_some()));
    let late = governor.govern(Task::new("late", pending::<()>));
    many(&governor, 2 * LATE);
    let report = run.current();
    assert_eq!(report.late_tasks[0].name, "late");
    late.cancel();
    assert_eq!(report.forgotten, FINISHED + LATE);
}

/// I29, I6, I9: nothing that is said to an old handle reaches the task that has its place now.
#[tokio::test(start_paused = true)]
async fn a_handle_of_a_forgotten_task_gives_its_result_and_touches_no_other_task() {
    silence();
    let governor = fast(3);
    let good = governor.govern(Task::value("good", || async { Arc::new(7) }));
    let bad = governor.govern(Task::new("bad", || async { Err::<(), _>("no") }));
    within(bad.wait()).await.unwrap_err();
    governor.report();
    let late = governor.govern(Task::value("late", || async { 8 }));
    within(late.wait()).await.unwrap();
    many(&governor, LATE);
    // Takes the place of the one that was forgotten.
    let heirs: Vec<_> = (0..3).map(|_| governor.govern(Task::new("heir", pending::<()>).idle())).collect();
    late.cancel();
    assert_eq!(*within(late.demand()).await.unwrap(), 8);
    assert_eq!(*within(late.wait()).await.unwrap(), 8);
    breathe().await;
    assert!(heirs.iter().all(|heir| !heir.is_finished()));
    assert_eq!(governor.snapshot().running.len(), 0);
    assert_eq!((**within(good.wait()).await.unwrap(), told(&bad)), (7, Outcome::Failed("no".into())));
}

/// I29, I10: it is known how they ended, though their records are gone.
#[tokio::test(start_paused = true)]
async fn a_task_may_come_after_one_that_is_forgotten() {
    let governor = fast(3);
    governor.report();
    let good = governor.govern(Task::value("good", || async { 1 }));
    let bad = governor.govern(Task::new("bad", || async { Err::<(), _>("no") }));
    within(good.wait()).await.unwrap();
    within(bad.wait()).await.unwrap_err();
    many(&governor, LATE);
    let after_good = governor.govern(Task::value("after good", || async { 2 }).after(&good));
    let after_bad = governor.govern(Task::new("after bad", pending::<()>).after(&bad));
    let settled = governor.govern(Task::value("settled", || async { 3 }).after_settled(&bad).after(&good));
    let both = governor.govern(Task::new("both", pending::<()>).after_settled(&bad).after(&bad));
    assert_eq!(*within(after_good.wait()).await.unwrap(), 2);
    assert_eq!(*within(settled.wait()).await.unwrap(), 3);
    for skipped in [after_bad, both] {
        assert!(matches!(told(&skipped), Outcome::Skipped(SkipReason::Predecessor(_))));
    }
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I29, I14: one end that skips more tasks than are kept forgets the one that began it; its error knows its name.
#[tokio::test(start_paused = true)]
async fn an_error_names_its_task_though_its_end_made_the_record_fall_out() {
    let governor = fast(1);
    governor.report();
    let root = governor.govern(Task::new("root", || async { Err::<(), _>("no") }));
    for _ in 0..=LATE {
        governor.govern(Task::new("successor", pending::<()>).after(&root));
    }
    let error = within(root.wait()).await.unwrap_err();
    assert_eq!((error.task(), error.outcome()), ("root", Some(&Outcome::Failed("no".into()))));
}

/// I29, I14: all of a chain that is longer than what is kept are resolved.
#[tokio::test(start_paused = true)]
async fn a_chain_longer_than_what_is_kept_is_skipped_as_a_whole() {
    let governor = fast(1);
    governor.report();
    let root = governor.govern(Task::new("root", pending::<()>));
    let mut chain = vec![root.clone()];
    for _ in 0..3 * LATE {
        let last = chain.last().expect("the root");
        chain.push(governor.govern(Task::new("link", pending::<()>).after(last)));
    }
    root.cancel();
    within(root.wait()).await.unwrap_err();
    assert!(chain.iter().skip(1).all(|link| told(link).word() == "skipped"));
    let report = governor.report().current();
    assert_eq!((report.late_tasks.len() as u64, report.forgotten), (LATE, 2 * LATE + 1));
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I29, I8: a destructor runs after its task has ended and before the handle is resolved; whatever it declares meanwhile,
/// `govern` does not panic.
#[tokio::test(start_paused = true)]
async fn a_destructor_may_declare_a_successor_of_its_own_task_after_a_thousand_others() {
    struct Declares(Governor, Log, Arc<std::sync::OnceLock<TaskHandle<()>>>);
    impl Drop for Declares {
        fn drop(&mut self) {
            let Declares(governor, log, own) = self;
            many(governor, LATE);
            let own = own.get().expect("it was declared");
            let successor = governor.govern(Task::new("successor", pending::<()>).after_settled(own));
            log.add("declared");
            successor.cancel();
        }
    }
    let governor = fast(1);
    governor.report();
    let (log, own) = (Log::default(), Arc::new(std::sync::OnceLock::new()));
    let declares = Declares(governor.clone(), log.clone(), Arc::clone(&own));
    let run = move || async move {
        let _declares = declares;
        pending::<()>().await;
    };
    let task = own.get_or_init(|| governor.govern(Task::new("task", run).idle()));
    task.cancel();
    assert!(told(task).word() == "cancelled");
    assert_eq!(log.all(), ["declared"], "govern panicked");
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I29, I14: the scope that nobody sealed is finished when all of it has ended, forgotten or not.
#[tokio::test(start_paused = true)]
async fn a_report_asked_for_after_all_that_is_over_at_once() {
    let governor = fast(1);
    many(&governor, FINISHED + 1);
    governor.govern(off("last"));
    let report = within(governor.report().finished()).await;
    assert_eq!((report.forgotten, ended(&report, "last").word()), (2, "skipped"));
    assert!(governor.snapshot().is_over());
}
