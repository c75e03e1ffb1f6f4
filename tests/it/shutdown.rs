//! Shutdown, and a runtime that goes away: nobody is forgotten, no handle waits for ever.

use std::future::pending;

use afterboot::{CancelReason, GateState, Governor, Outcome, Task, TaskHandle, WaitReason};
use futures::FutureExt;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use crate::common::{Bomb, Log, alive, breathe, count, ended, fast, ms, secs, silence, soon, within};

const SHUTDOWN: Outcome = Outcome::Cancelled(CancelReason::Shutdown);
const GONE: Outcome = Outcome::Cancelled(CancelReason::RuntimeGone);

fn told<T: Send + Sync + 'static>(handle: &TaskHandle<T>) -> Outcome {
    handle
        .try_get()
        .expect("it is resolved")
        .map_or_else(|error| error.outcome().unwrap().clone(), |_| Outcome::Completed)
}

/// I14: the process ends before the gate opens.
#[tokio::test(start_paused = true)]
async fn a_shutdown_before_the_gate_opens_lists_each_task_that_never_ran_and_why() {
    let governor = Governor::builder().await_ready().build().unwrap();
    let idle = governor.govern(Task::new("idle", boom).idle());
    governor.govern(Task::new("done", || async {}));
    governor.govern(Task::new("flag off", boom).when(false).idle());
    governor.govern(Task::new("after idle", boom).after(&idle).idle());
    governor.govern(Task::new("invalid", boom).timeout(ms(0)));
    governor.govern(Task::new("asked", boom).idle()).cancel();
    sleep(secs(1)).await;
    let report = within(governor.shutdown(secs(5))).await;
    let ends: Vec<_> = report
        .tasks
        .iter()
        .map(|task| (task.name.as_str(), task.outcome.as_ref().unwrap().to_string()))
        .collect();
    let invalid = "invalid: timeout: 0; allowed: more than 0".to_owned();
    let rest = ["cancelled (shutdown)", "completed", "skipped (condition)", "cancelled (shutdown)"]
        .map(str::to_owned);
    let [shutdown, completed, condition, also_shutdown] = rest;
    assert_eq!(
        ends,
        [
            ("idle", shutdown),
            ("done", completed),
            ("flag off", condition),
            ("after idle", also_shutdown),
            ("invalid", invalid),
            ("asked", "cancelled (requested)".to_owned()),
        ]
    );
    assert!(matches!(report.gate, GateState::Shut { why: WaitReason::NotReady, .. }), "{}", report.gate);
    assert!(report.taken < ms(1_010), "nothing ran, so it did not wait for the deadline");
    assert_eq!(told(&idle), SHUTDOWN);
    sleep(ms(10)).await;
    assert_eq!(alive(), 0);
}

async fn boom() {
    panic!("it was not to start");
}

/// I14, I11
#[tokio::test(start_paused = true)]
async fn what_ends_before_the_deadline_completes_and_the_rest_is_dropped_at_it() {
    let governor = fast(3);
    let log = Log::default();
    let local = log.on_drop("local");
    let short = governor.govern(Task::value("short", || sleep(ms(400)).map(|()| 7)));
    let after = governor.govern(Task::new("after short", boom).after(&short));
    let long = governor.govern(Task::new("long", move || async move {
        let _local = local;
        sleep(secs(60)).await;
    }));
    let queued = governor.govern(Task::new("queued", || sleep(secs(60))));
    let fourth = governor.govern(Task::new("fourth", boom));
    breathe().await;
    let report = within(governor.shutdown(secs(1))).await;
    assert!(report.taken >= secs(1) && report.taken < ms(1_010), "{:?}", report.taken);
    assert_eq!(log.all(), ["local dropped"]);
    assert_eq!(told(&short), Outcome::Completed);
    for handle in [&after, &long, &queued, &fourth] {
        assert_eq!(told(handle), SHUTDOWN);
    }
    assert_eq!((count(&report, "completed"), count(&report, "cancelled")), (1, 4));
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I14
#[tokio::test(start_paused = true)]
async fn a_shutdown_resolves_as_soon_as_nothing_runs_any_more() {
    let governor = fast(2);
    governor.govern(Task::new("a", || sleep(ms(300))));
    governor.govern(Task::new("b", || sleep(ms(200))));
    breathe().await;
    let report = within(governor.shutdown(secs(60))).await;
    assert!(report.taken >= ms(300) && report.taken < ms(310), "{:?}", report.taken);
    assert_eq!(count(&report, "completed"), 2);
}

/// I14
#[tokio::test(start_paused = true)]
async fn a_shutdown_of_zero_drops_what_runs_at_once() {
    let governor = fast(2);
    let log = Log::default();
    let local = log.on_drop("local");
    governor.govern(Task::new("runs", move || async move {
        let _local = local;
        pending::<()>().await;
    }));
    governor.govern(Task::new("idle", boom).idle());
    breathe().await;
    let report = within(governor.shutdown(ms(0))).await;
    assert!(report.taken < ms(2), "{:?}", report.taken);
    assert_eq!(count(&report, "cancelled"), 2);
    assert_eq!(log.all(), ["local dropped"]);
}

/// I14: with nothing declared, and asked for again.
#[tokio::test(start_paused = true)]
async fn a_shutdown_of_nothing_and_a_second_shutdown_are_over_at_once() {
    let governor = fast(2);
    assert_eq!(within(governor.shutdown(secs(5))).await.tasks.len(), 0);
    let report = governor.shutdown(secs(5)).now_or_never().expect("at once");
    assert_eq!(report.taken, ms(0));
}

/// I8, I9, I14
#[tokio::test(start_paused = true)]
async fn after_a_shutdown_govern_and_demand_give_cancelled_with_the_reason() {
    let governor = fast(2);
    let idle = governor.govern(Task::new("idle", boom).idle());
    within(governor.shutdown(ms(0))).await;
    let later = governor.govern(Task::new("later", boom));
    assert_eq!(told(&later), SHUTDOWN);
    for handle in [&idle, &later] {
        let error = within(handle.demand()).await.unwrap_err();
        assert!(error.to_string().contains("cancelled (shutdown)"), "{error}");
    }
    assert_eq!(governor.report().current().late, 1);
    sleep(ms(10)).await;
    assert_eq!(alive(), 0);
}

/// I14: the first caller had patience, the second has none; both see the end.
#[tokio::test(start_paused = true)]
async fn a_second_shutdown_with_less_patience_ends_the_first_one_too() {
    let governor = fast(2);
    governor.govern(Task::new("runs", pending::<()>));
    breathe().await;
    let patient = tokio::spawn(governor.shutdown(secs(600)));
    breathe().await;
    let report = within(governor.shutdown(ms(100))).await;
    assert_eq!(ended(&report, "runs"), SHUTDOWN);
    let report = within(patient).await.unwrap();
    assert!(report.taken < ms(110), "{:?}", report.taken);
}

/// I14: nothing starts from the call on, polled or not.
#[tokio::test(start_paused = true)]
async fn nothing_starts_from_the_call_on_though_the_future_is_dropped_unpolled() {
    let governor = fast(1);
    let log = Log::default();
    let (runs, queued) = (log.clone(), log.clone());
    let first = governor.govern(Task::new("runs", move || async move {
        sleep(ms(50)).await;
        runs.add("runs to its end");
    }));
    let after = governor.govern(Task::new("after", boom).after(&first));
    let second = governor.govern(Task::new("queued", move || async move { queued.add("started") }));
    breathe().await;
    drop(governor.shutdown(secs(1)));
    sleep(ms(20)).await;
    drop(second.demand());
    sleep(secs(5)).await;
    assert_eq!(log.all(), ["runs to its end"]);
    // Called again, it finishes the work.
    let report = within(governor.shutdown(secs(1))).await;
    assert_eq!(count(&report, "cancelled"), 2);
    assert_eq!((told(&after), told(&second)), (SHUTDOWN, SHUTDOWN));
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I14: a shutdown cancels in pieces; none of a long queue starts between them.
#[tokio::test(start_paused = true)]
async fn nothing_starts_between_the_pieces_in_which_a_long_queue_is_cancelled() {
    let governor = fast(8);
    let log = Log::default();
    for n in 0..5_000 {
        let log = log.clone();
        governor.govern(Task::new(format!("{n}"), move || async move { log.add("started") }));
    }
    let report = within(governor.shutdown(secs(1))).await;
    assert_eq!(log.all(), Vec::<String>::new());
    assert_eq!(count(&report, "cancelled"), 5_000);
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I14: given up in the middle, and called again.
#[tokio::test(start_paused = true)]
async fn a_shutdown_given_up_while_it_waits_may_be_called_again() {
    let governor = fast(1);
    let runs = governor.govern(Task::new("runs", pending::<()>));
    governor.govern(Task::new("queued", boom));
    breathe().await;
    assert!(timeout(ms(10), governor.shutdown(secs(60))).await.is_err());
    assert!(!runs.is_finished());
    let report = within(governor.shutdown(ms(10))).await;
    assert_eq!(count(&report, "cancelled"), 2);
}

/// I14, I7: destructors that panic do not keep the others from their end.
#[tokio::test(start_paused = true)]
async fn destructors_that_panic_during_a_shutdown_lose_no_handle() {
    silence();
    let governor = fast(2);
    let mut handles = Vec::new();
    for n in 0..6 {
        let bomb = Bomb;
        handles.push(governor.govern(Task::new(format!("{n}"), move || async move {
            let _bomb = bomb;
            pending::<()>().await;
        })));
    }
    breathe().await;
    let report = within(governor.shutdown(ms(10))).await;
    assert_eq!(count(&report, "cancelled"), 6);
    assert!(handles.iter().all(|handle| told(handle) == SHUTDOWN));
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I14, I16: the task that shuts down is left out of what it waits for, and goes on to its own end.
#[tokio::test(start_paused = true)]
async fn a_task_may_shut_its_own_governor_down() {
    let governor = fast(2);
    let log = Log::default();
    let (inner, written) = (governor.clone(), log.clone());
    let other = governor.govern(Task::new("other", || sleep(secs(60))));
    let itself = governor.govern(Task::new("itself", move || async move {
        let report = inner.shutdown(ms(100)).await;
        written.add(format!("itself: {:?}", report.task("itself").unwrap().outcome));
        written.add(ended(&report, "other").to_string());
    }));
    within(itself.wait()).await.unwrap();
    assert_eq!(told(&other), SHUTDOWN);
    breathe().await;
    assert_eq!(log.all(), ["itself: None", "cancelled (shutdown)"]);
    assert_eq!(alive(), 0);
}

fn runtimes() -> [Runtime; 2] {
    [
        Builder::new_current_thread().enable_all().build().unwrap(),
        Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
    ]
}

/// I14
#[test]
fn when_the_runtime_goes_away_every_handle_resolves_and_every_future_is_dropped() {
    for runtime in runtimes() {
        let log = Log::default();
        let (governor, handles) = runtime.block_on(async {
            let governor = fast(1);
            let local = log.on_drop("local");
            let running = governor.govern(Task::new("running", move || async move {
                let _local = local;
                pending::<()>().await;
            }));
            let queued = governor.govern(Task::new("queued", boom));
            let idle = governor.govern(Task::new("idle", boom).idle());
            let after = governor.govern(Task::new("after", boom).after(&running));
            while governor.report().current().task("running").unwrap().started.is_none() {
                sleep(ms(1)).await;
            }
            (governor, [running, queued, idle, after])
        });
        runtime.shutdown_timeout(secs(30));
        assert_eq!(log.all(), ["local dropped"]);
        let elsewhere = Builder::new_current_thread().enable_all().build().unwrap();
        elsewhere.block_on(async {
            for handle in &handles {
                assert_eq!(soon(handle.wait()).await.unwrap_err().outcome().unwrap(), &GONE);
                assert_eq!(soon(handle.demand()).await.unwrap_err().outcome().unwrap(), &GONE);
            }
            let report = soon(governor.report().finished()).await;
            assert_eq!(count(&report, "cancelled"), 4);
            let later = governor.govern(Task::new("later", boom));
            assert_eq!(told(&later), GONE);
            assert_eq!(soon(governor.shutdown(secs(1))).await.tasks.len(), 4);
        });
    }
}

/// I14, I8: also where the first task comes after the runtime has gone, and from no runtime at all.
#[test]
fn a_governor_whose_runtime_has_gone_cancels_its_first_task() {
    for runtime in runtimes() {
        let governor = Governor::builder().runtime(runtime.handle().clone()).build().unwrap();
        drop(runtime);
        assert_eq!(told(&governor.govern(Task::new("first", boom))), GONE);
        assert_eq!(told(&governor.govern(Task::new("second", boom).idle())), GONE);
    }
}
