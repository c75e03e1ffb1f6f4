//! Conditions that are asked when the task is about to start.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use afterboot::{Delivery, GateState, Governor, Monkey, Outcome, Profile, SkipReason, Task, TaskReport};
use tokio::time::sleep;

use crate::common::{
    Bomb, Log, alive, boom, breathe, count, ended, fast, ms, paced, secs, silence, soon, started, within,
};

const NO: Outcome = Outcome::Skipped(SkipReason::Condition);

/// Says what it answers and that it was asked.
fn says(log: &Log, what: &'static str, answer: bool) -> impl FnOnce() -> bool + Send + 'static {
    let log = log.clone();
    move || {
        log.add(what);
        answer
    }
}

/// I8, I10: what was true at the declaration may be false in the task's tick, and the other way round.
#[tokio::test(start_paused = true)]
async fn the_condition_is_asked_in_the_tasks_tick_and_not_before() {
    let governor = paced(1, ms(50), ms(1));
    let flag = Arc::new(AtomicBool::new(true));
    let (yes, no) = (Arc::clone(&flag), Arc::clone(&flag));
    governor.govern(Task::new("was on", boom).when_at_start(move || yes.load(Ordering::Relaxed)));
    governor.govern(Task::new("is off", || async {}).when_at_start(move || !no.load(Ordering::Relaxed)));
    let run = governor.report();
    sleep(ms(40)).await;
    flag.store(false, Ordering::Relaxed);
    let report = within(run.finished()).await;
    assert_eq!(ended(&report, "was on"), NO);
    assert_eq!(ended(&report, "is off"), Outcome::Completed);
}

/// I14: none of its code has run, and the report says nothing else.
#[tokio::test(start_paused = true)]
async fn a_task_that_its_condition_skips_has_not_started() {
    let governor = fast(1);
    let log = Log::default();
    let dropped = log.on_drop("closure");
    let run = move || {
        drop(dropped);
        boom()
    };
    governor.govern(Task::new("before", || sleep(ms(10))));
    governor.govern(Task::new("skipped", run).when_at_start(says(&log, "asked", false)));
    let run = governor.report();
    let report = within(run.finished()).await;
    let TaskReport { started, attempts, polls, outcome, finished, queued, .. } =
        report.task("skipped").unwrap().clone();
    assert_eq!((started, attempts, polls, outcome), (None, 0, 0, Some(NO)));
    assert!(queued.is_some() && finished.is_some(), "{report}");
    assert_eq!(log.all(), ["asked", "closure dropped"]);
    assert_eq!(report.last_start, report.task("before").unwrap().started, "{report}");
    assert_eq!(within(run.started()).await.tasks, report.tasks);
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I10.
#[tokio::test(start_paused = true)]
async fn successors_are_skipped_unless_the_mere_end_will_do() {
    let governor = fast(3);
    let log = Log::default();
    let a = governor.govern(Task::new("a", boom).when_at_start(|| false));
    let b = governor.govern(Task::new("b", boom).after(&a).when_at_start(says(&log, "b asked", true)));
    governor.govern(Task::new("c", || async {}).after_settled(&b).when_at_start(says(&log, "c asked", true)));
    let report = within(governor.report().finished()).await;
    assert_eq!(ended(&report, "b"), Outcome::Skipped(SkipReason::Predecessor("a".into())));
    assert_eq!(ended(&report, "c"), Outcome::Completed);
    assert_eq!(log.all(), ["c asked"], "who never comes to its start is not asked");
}

/// I10: the one given last first; the first no ends it.
#[tokio::test(start_paused = true)]
async fn conditions_add_up_and_the_first_no_is_the_last_word() {
    let governor = fast(1);
    let log = Log::default();
    governor.govern(
        Task::new("two", boom)
            .when_at_start(says(&log, "never", true))
            .when_at_start(says(&log, "no", false))
            .when_at_start(says(&log, "yes", true)),
    );
    governor.govern(Task::new("off", boom).when(false).when_at_start(says(&log, "never", true)));
    governor.govern(Task::new("on", || async {}).when(true).when_at_start(says(&log, "on", true)));
    let report = within(governor.report().finished()).await;
    assert_eq!(log.all(), ["yes", "no", "on"]);
    assert_eq!((count(&report, "skipped"), count(&report, "completed")), (2, 1));
}

/// I7: a panic, and one of what the condition has captured.
#[tokio::test(start_paused = true)]
async fn a_condition_that_panics_ends_its_task_and_frees_the_slot() {
    silence();
    let governor = fast(1);
    let captured = Bomb;
    governor.govern(Task::new("panics", || async {}).when_at_start(|| panic!("boom at start")));
    governor.govern(Task::new("captured", || async {}).when_at_start(move || {
        let _captured = &captured;
        true
    }));
    let bomb = Bomb;
    let body = move || {
        let _bomb = &bomb;
        async {}
    };
    governor.govern(Task::new("body", body).when_at_start(|| false));
    governor.govern(Task::new("next", || async {}));
    let report = within(governor.report().finished()).await;
    assert_eq!(ended(&report, "panics"), Outcome::Panicked("boom at start".into()));
    assert_eq!(ended(&report, "captured"), Outcome::Panicked("boom in a destructor".into()));
    assert_eq!(ended(&report, "body"), Outcome::Panicked("boom in a destructor".into()));
    assert_eq!(ended(&report, "next"), Outcome::Completed);
}

/// I7: never asked, dropped all the same.
#[tokio::test(start_paused = true)]
async fn a_condition_that_is_never_asked_is_dropped_though_its_destructor_panics() {
    silence();
    let governor = fast(1);
    let captured = Bomb;
    let task = governor.govern(Task::new("task", pending::<()>).idle().when_at_start(move || {
        let _captured = &captured;
        true
    }));
    task.cancel();
    assert!(task.try_get().expect("at once").unwrap_err().is_cancelled());
    assert!(within(governor.govern(Task::new("next", || async {})).wait()).await.is_ok());
}

/// I15: the monkey comes first.
#[tokio::test(start_paused = true)]
async fn a_victim_is_asked_after_its_delay() {
    let profile = Profile::default().delay(ms(0)).pulse(ms(0));
    let governor = Governor::builder().profile(profile).monkey(Monkey::index(0, secs(60))).build().unwrap();
    let flag = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&flag);
    governor.govern(Task::new("victim", boom).when_at_start(move || asked.load(Ordering::Relaxed)));
    let run = governor.report();
    sleep(secs(30)).await;
    flag.store(false, Ordering::Relaxed);
    let report = within(run.finished()).await;
    assert_eq!(ended(&report, "victim"), NO);
    assert_eq!(report.monkey.as_ref().unwrap().delivery, Delivery::Delivered);
    assert!(report.taken >= secs(60), "{report}");
}

/// I12: an idle task is asked past the gate.
#[tokio::test(start_paused = true)]
async fn an_idle_task_is_asked_when_the_gate_is_open() {
    let governor = fast(1);
    let log = Log::default();
    governor.govern(Task::new("idle", || async {}).idle().when_at_start(says(&log, "asked", true)));
    let run = governor.report();
    sleep(ms(4_900)).await;
    assert_eq!(log.all(), Vec::<String>::new());
    let report = within(run.finished()).await;
    let GateState::Open { at, .. } = report.gate else { panic!("{report}") };
    assert!(started(&report, "idle") >= at);
    assert_eq!(log.all(), ["asked"]);
}

/// I9: a demand passes gate and slots, not the condition; it is asked once for all callers.
#[tokio::test(start_paused = true)]
async fn a_demand_asks_the_condition_once_and_gives_its_no() {
    let governor = fast(1);
    governor.govern(Task::new("holds the slot", pending::<()>));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let task = governor.govern(Task::new("task", boom).idle().when_at_start(move || {
        count.fetch_add(1, Ordering::Relaxed);
        false
    }));
    let callers = [task.demand(), task.demand(), task.demand()];
    for caller in callers {
        assert_eq!(within(caller).await.unwrap_err().outcome(), Some(&NO));
    }
    assert!(within(task.demand()).await.unwrap_err().is_skipped());
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

/// I14: what a condition declares is declared by its task.
#[tokio::test(start_paused = true)]
async fn what_a_condition_declares_is_in_scope() {
    let governor = fast(1);
    let inner = governor.clone();
    governor.govern(Task::new("parent", boom).when_at_start(move || {
        inner.govern(Task::new("child", || async {}));
        false
    }));
    let report = within(governor.report().finished()).await;
    assert_eq!(ended(&report, "child"), Outcome::Completed);
    assert_eq!(report.late, 0);
}

/// I8: asked on the lane, and a no never comes to the pool.
#[tokio::test]
async fn a_blocking_task_is_asked_before_it_goes_to_the_pool() {
    let governor = fast(1);
    let here = std::thread::current().id();
    let no = governor.govern(Task::blocking("no", || -> () { panic!("boom") }).when_at_start(|| false));
    assert_eq!(soon(no.wait()).await.unwrap_err().outcome(), Some(&NO));
    let yes = governor.govern(
        Task::blocking("yes", move || Ok::<_, std::io::Error>(std::thread::current().id()))
            .when_at_start(move || std::thread::current().id() == here),
    );
    assert_ne!(*soon(yes.wait()).await.unwrap(), here);
}
