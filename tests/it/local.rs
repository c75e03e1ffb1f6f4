//! Tasks that are not `Send`, on one thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use afterboot::{Governor, LocalGovernor, LocalTask, Monkey, Outcome, Profile, Task};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use crate::common::{ms, secs, silence};

fn local() -> LocalGovernor {
    let profile = Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO);
    Governor::builder().profile(profile).build_local().unwrap()
}

/// I3, I10: the same core, so the same order.
#[tokio::test(start_paused = true)]
async fn local_tasks_share_state_and_keep_their_order() {
    let governor = local();
    let log: Rc<RefCell<Vec<&str>>> = Rc::default();
    let task = |name: &'static str| {
        let log = Rc::clone(&log);
        LocalTask::new(name, move || async move {
            sleep(ms(10)).await;
            log.borrow_mut().push(name);
        })
    };
    let first = governor.govern(task("first"));
    governor.govern(task("third").after(&first));
    governor.govern(task("second"));
    governor.govern(task("idle").idle());
    governor.govern(task("never").when(false));
    governor.govern(task("not at its tick").when_at_start(|| false));
    let report = governor.as_send().report().finished().await;
    assert_eq!(*log.borrow(), ["first", "second", "third", "idle"]);
    assert_eq!(report.tasks.iter().filter(|task| task.outcome == Some(Outcome::Completed)).count(), 4);
}

/// I10: a condition may look at state that is not `Send`; asked in the task's tick, the last given first, and dropped with it.
#[tokio::test(start_paused = true)]
async fn a_local_condition_may_keep_what_is_not_send() {
    let governor = local();
    let asked: Rc<RefCell<Vec<&str>>> = Rc::default();
    let asks = |what: &'static str, answer: bool| {
        let asked = Rc::clone(&asked);
        move || {
            asked.borrow_mut().push(what);
            answer
        }
    };
    let (yes, no) = (LocalTask::value("yes", || async { 7 }), LocalTask::value("no", || async { 8 }));
    let yes = governor.govern(yes.when_at_start(asks("second", true)).when_at_start(asks("first", true)));
    let no = governor.govern(no.when_at_start(asks("never", true)).when_at_start(asks("third", false)));
    let cancelled =
        governor.govern(LocalTask::new("cancelled", || async {}).when_at_start(asks("never", true)));
    assert!(asked.borrow().is_empty());
    cancelled.cancel();
    assert_eq!(*yes.await.unwrap(), 7);
    assert!(no.await.unwrap_err().is_skipped());
    assert_eq!(*asked.borrow(), ["first", "second", "third"]);
    assert_eq!(Rc::strong_count(&asked), 1);
}

/// I6: it shows itself as what it is.
#[tokio::test(start_paused = true)]
async fn a_local_value_is_shown_as_the_value() {
    let governor = local();
    let value = governor.govern(LocalTask::value("seven", || async { Rc::new(7) })).await.unwrap();
    assert_eq!(format!("{value:?}"), "7");
}

/// I6: the value may be `!Send` too, and there is one of it.
#[tokio::test(start_paused = true)]
async fn a_local_value_is_shared_by_all_handles() {
    let governor = local();
    let made = Rc::new(Cell::new(0));
    let counted = Rc::clone(&made);
    let handle = governor.govern(
        LocalTask::value("cell", move || async move {
            counted.set(counted.get() + 1);
            Rc::new(RefCell::new(1))
        })
        .idle(),
    );
    assert!(handle.try_get().is_none());
    let value = handle.demand().await.unwrap();
    *value.borrow_mut() += 1;
    assert_eq!(*handle.clone().await.unwrap().borrow(), 2);
    assert_eq!(made.get(), 1);
}

/// I7: panics, failures, cancellation and limits free the slot, and what they held is dropped on its thread.
#[tokio::test(start_paused = true)]
async fn whatever_ends_a_local_task_its_state_is_dropped_and_the_rest_goes_on() {
    silence();
    let governor = local();
    let state = Rc::new(());
    let held = || Rc::clone(&state);
    let (a, b, c, d) = (held(), held(), held(), held());
    governor.govern(LocalTask::new("panics", move || async move {
        let _a = a;
        if true {
            panic!("boom");
        }
    }));
    governor.govern(LocalTask::new("fails", move || async move {
        let _b = b;
        Err::<(), _>("no")
    }));
    let stopped = governor.govern(LocalTask::new("stopped", move || async move {
        let _c = c;
        std::future::pending::<()>().await;
    }));
    governor.govern(
        LocalTask::new("late", move || async move {
            let _d = d;
            std::future::pending::<()>().await;
        })
        .timeout(secs(1)),
    );
    let never = held();
    drop(LocalTask::<()>::new("dropped", move || async move { drop(never) }));
    sleep(ms(10)).await;
    stopped.cancel();
    let report = governor.as_send().report().finished().await;
    let ends: Vec<&str> = report.tasks.iter().map(|task| task.outcome.as_ref().unwrap().word()).collect();
    assert_eq!(ends, ["panicked", "failed", "cancelled", "timed out"]);
    assert_eq!(Rc::strong_count(&state), 1);
}

/// I14: a shutdown drops local tasks, on their thread.
#[tokio::test(start_paused = true)]
async fn a_shutdown_drops_local_tasks_too() {
    let governor = local();
    let state = Rc::new(());
    for n in 0..5 {
        let held = Rc::clone(&state);
        governor.govern(LocalTask::new(format!("{n}"), move || async move {
            let _held = held;
            std::future::pending::<()>().await;
        }));
    }
    sleep(ms(1)).await;
    let report = governor.as_send().shutdown(secs(1)).await;
    assert!(
        report.tasks.iter().all(|task| task.outcome.as_ref().is_some_and(|end| end.word() == "cancelled"))
    );
    assert_eq!(Rc::strong_count(&state), 1);
}

/// I2, I9: both kinds of task share slots, handles and waits.
#[tokio::test(start_paused = true)]
async fn ordinary_and_local_tasks_wait_for_each_other() {
    let governor = Governor::builder().profile(Profile::default().concurrency(1)).build_local().unwrap();
    let handles: Rc<RefCell<Option<afterboot::TaskHandle<u8>>>> = Rc::default();
    let wanted = Rc::clone(&handles);
    let local = governor.govern(LocalTask::new("local", move || async move {
        let sent = wanted.borrow().clone().expect("declared by now");
        Ok::<_, afterboot::TaskError>(*sent.wait().await? + 1)
    }));
    let sent = governor.as_send().govern(Task::value("sent", || async { 1_u8 }));
    *handles.borrow_mut() = Some(sent);
    assert_eq!(*local.wait().await.unwrap(), 2);
    let after = governor.as_send().govern(Task::value("after", || async { 3 }).after(&local));
    assert_eq!(*after.await.unwrap(), 3);
}

/// I15
#[tokio::test(start_paused = true)]
async fn the_monkey_delays_a_local_task() {
    let governor = Governor::builder().monkey(Monkey::task("late", secs(60))).build_local().unwrap();
    governor.govern(LocalTask::new("late", || async {}));
    let report = governor.as_send().report().finished().await;
    assert!(report.tasks[0].started.unwrap() >= secs(60));
}

/// In a `LocalSet` that the application drives, governed tasks may spawn into it.
#[test]
fn local_tasks_may_spawn_into_the_applications_local_set() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let set = Rc::new(LocalSet::new());
    let inside = Rc::clone(&set);
    let seen = runtime.block_on(set.run_until(async move {
        let governor = local().with_local_set(inside);
        let handle =
            governor.govern(LocalTask::new("spawns", || async { spawn_local(async { *Rc::new(7) }).await }));
        *handle.wait().await.unwrap()
    }));
    assert_eq!(seen, 7);
}

/// On a `LocalRuntime` they may do so without being told.
#[test]
fn local_tasks_run_on_a_local_runtime() {
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    let seen = runtime.block_on(async {
        let governor = local();
        let handle =
            governor.govern(LocalTask::new("spawns", || async { spawn_local(async { *Rc::new(7) }).await }));
        *handle.wait().await.unwrap()
    });
    assert_eq!(seen, 7);
}

/// I21
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_local_governor_on_a_multi_thread_runtime_is_refused() {
    let error = Governor::builder().build_local().unwrap_err();
    assert_eq!(
        error.to_string(),
        "runtime: MultiThread; allowed for a local governor: a current_thread or local one"
    );
}

/// I14: a runtime that is driven by another thread than the one that declared cannot reach the task; its handle says
/// so, and the state is dropped with its own thread.
#[test]
fn a_local_task_polled_on_another_thread_is_refused_and_its_state_stays_at_home() {
    silence();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let entered = runtime.enter();
    let governor = local();
    let state = Rc::new(());
    let held = Rc::clone(&state);
    let handle = governor.govern(LocalTask::new("local", move || async move { drop(held) }));
    let elsewhere = handle.as_send().clone();
    drop(entered);
    let told = std::thread::spawn(move || runtime.block_on(elsewhere.wait()).map(drop)).join().unwrap();
    assert!(told.unwrap_err().to_string().contains("another thread"));
    assert_eq!(Rc::strong_count(&state), 2, "not dropped elsewhere");
}

/// I7, I14: what a queued task has captured is dropped on its own thread, and soon, though another thread ended it.
#[tokio::test]
async fn a_local_task_that_another_thread_cancels_is_dropped_on_its_own_thread_at_the_next_turn() {
    struct Captured(Rc<Cell<bool>>);
    impl Drop for Captured {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let profile = Profile::default().delay(secs(3_600));
    let governor = Governor::builder().profile(profile).build_local().unwrap();
    let dropped = Rc::new(Cell::new(false));
    let captured = Captured(Rc::clone(&dropped));
    let queued = governor.govern(LocalTask::new("queued", move || async move { drop(captured) }));
    let elsewhere = queued.as_send();
    std::thread::scope(|scope| {
        scope.spawn(|| elsewhere.cancel());
    });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(queued.is_finished() && dropped.get());
}
