//! Handles that outlive what they belong to, and governors that nobody holds any more.

use std::future::pending;

use afterboot::{CancelReason, Governor, Outcome, Task, TaskError, TaskHandle, TaskRef};
use tokio::runtime::{self, Runtime};
use tokio::time::sleep;

use crate::common::{Log, alive, breathe, fast, ms, secs, silence, soon, within};

fn current() -> Runtime {
    runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn told<T: Send + Sync + 'static>(handle: &TaskHandle<T>) -> Outcome {
    let error = handle.try_get().expect("it has ended").err().expect("it gave no value");
    error.outcome().expect("it is no cycle").clone()
}

/// I6: what was declared needs nobody to hold the governor: both queues, the gate, order and limits.
#[tokio::test(start_paused = true)]
async fn what_is_queued_finishes_when_the_last_governor_handle_is_dropped() {
    let governor = Governor::builder().await_ready().build().unwrap();
    let log = Log::default();
    let logged = |name: &'static str| {
        let log = log.clone();
        Task::new(name, move || async move {
            sleep(ms(10)).await;
            log.add(name);
        })
    };
    let normal = governor.govern(logged("normal"));
    let after = governor.govern(logged("after").after(&normal));
    governor.govern(logged("timed out").timeout(ms(5)).after(&normal));
    let late = governor.govern(logged("late").idle().no_later_than(secs(20)));
    let idle = governor.govern(logged("idle").idle());
    let clone = governor.clone();
    drop(governor);
    breathe().await;
    drop(clone);
    within(idle.wait()).await.unwrap();
    assert!(after.is_finished() && late.is_finished());
    assert_eq!(log.all(), ["normal", "after", "late", "idle"]);
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I9: the handles of a governor that nobody holds can still demand and cancel while it works.
#[tokio::test(start_paused = true)]
async fn handles_keep_their_powers_when_the_governor_is_dropped() {
    let governor = fast(1);
    let demanded = governor.govern(Task::value("demanded", || async { 1 }).idle());
    let cancelled = governor.govern(Task::new("cancelled", pending::<()>));
    drop(governor);
    assert_eq!(*within(demanded.demand()).await.unwrap(), 1);
    cancelled.cancel();
    assert!(within(cancelled.wait()).await.unwrap_err().is_cancelled());
    sleep(ms(20)).await;
    assert_eq!(alive(), 0);
    cancelled.cancel();
    assert_eq!(*within(demanded.demand()).await.unwrap(), 1);
}

/// I6: neither handles nor values keep a run alive, nor need one.
#[test]
fn handles_and_values_outlive_runtime_and_governor() {
    let runtime = current();
    let (handle, value): (TaskHandle<String>, TaskRef<String>) = runtime.block_on(async {
        let governor = fast(1);
        let handle = governor.govern(Task::value("value", || async { String::from("kept") }));
        let value = within(handle.clone().into_future()).await.unwrap();
        (handle, value)
    });
    drop(runtime);
    assert_eq!(**handle.try_get().unwrap().as_ref().unwrap(), *value);
    handle.cancel();
    drop(handle);
    assert_eq!(
        (value.as_str(), value.to_string(), format!("{value:?}")),
        ("kept", "kept".into(), "\"kept\"".into())
    );
}

/// I14: running, queued, waiting for a predecessor, for the gate, for a deadline; with the governor and without it.
#[test]
fn every_handle_resolves_when_the_runtime_is_lost() {
    silence();
    for keep in [true, false] {
        let runtime = current();
        let governor = Governor::builder().runtime(runtime.handle().clone()).build().unwrap();
        let runs = governor.govern(Task::new("runs", pending::<()>));
        let handles = [
            runs.clone(),
            governor.govern(Task::new("after", pending::<()>).after(&runs)),
            governor.govern(Task::new("settled", pending::<()>).after_settled(&runs)),
            governor.govern(Task::new("idle", pending::<()>).idle()),
            governor.govern(Task::new("late", pending::<()>).idle().no_later_than(secs(1))),
            governor.govern(Task::new("asks", pending::<()>).idle().when_at_start(|| true)),
        ];
        let kept = keep.then(|| governor.clone());
        drop(governor);
        runtime.block_on(breathe());
        let demand = handles[3].demand();
        drop(runtime);
        for handle in &handles {
            assert_eq!(told(handle), Outcome::Cancelled(CancelReason::RuntimeGone));
        }
        assert!(current().block_on(within(demand)).unwrap_err().is_cancelled());
        if let Some(governor) = kept {
            assert!(governor.snapshot().closed && governor.snapshot().is_over());
            let late = governor.govern(Task::new("late", pending::<()>));
            assert_eq!(told(&late), Outcome::Cancelled(CancelReason::RuntimeGone));
        }
    }
}

/// I14: whoever waits on another runtime is woken.
#[tokio::test]
async fn a_wait_on_another_runtime_ends_with_the_loss_of_the_tasks_own() {
    let other = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let governor = Governor::builder().runtime(other.handle().clone()).build().unwrap();
    let task = governor.govern(Task::new("task", pending::<()>));
    let run = governor.report();
    let waiting = tokio::spawn(async move { (task.wait().await, run.finished().await) });
    sleep(ms(20)).await;
    other.shutdown_background();
    let (ended, report) = soon(waiting).await.unwrap();
    assert!(ended.unwrap_err().is_cancelled());
    assert_eq!(report.tasks.len(), 1);
}

/// I9, I14: a demand that was not served when the shutdown was called is not served after it.
#[tokio::test(start_paused = true)]
async fn a_demand_just_before_a_shutdown_starts_nothing_after_it() {
    let governor = fast(1);
    let log = Log::default();
    for _ in 0..5_000 {
        governor.govern(Task::new("filler", pending::<()>).idle());
    }
    let ran = log.clone();
    let last = governor.govern(Task::new("last", move || async move { ran.add("started") }).idle());
    breathe().await;
    let demand = last.demand();
    let shutdown = governor.shutdown(secs(1));
    breathe().await;
    within(shutdown).await;
    assert_eq!(log.all(), Vec::<String>::new());
    assert!(within(demand).await.unwrap_err().is_cancelled());
}

/// I9, I14: nor one that comes after the call, while the long queue is being cancelled.
#[tokio::test(start_paused = true)]
async fn a_demand_just_after_a_shutdown_starts_nothing() {
    let governor = fast(1);
    let log = Log::default();
    for _ in 0..5_000 {
        governor.govern(Task::new("filler", pending::<()>).idle());
    }
    let ran = log.clone();
    let last = governor.govern(Task::new("last", move || async move { ran.add("started") }).idle());
    breathe().await;
    let shutdown = governor.shutdown(secs(1));
    let demand = last.demand();
    breathe().await;
    within(shutdown).await;
    assert_eq!(log.all(), Vec::<String>::new());
    assert!(within(demand).await.unwrap_err().is_cancelled());
}

/// I6: any number of callers, clones and kinds of asking, one result.
#[tokio::test(start_paused = true)]
async fn every_way_of_asking_gives_the_same_value() {
    let governor = fast(1);
    let handle = governor.govern(Task::value("value", || async { vec![1, 2, 3] }));
    assert!(handle.try_get().is_none() && !handle.is_finished());
    let (waited, demanded) = (handle.clone(), handle.demand());
    let (a, b, c) = tokio::join!(waited.wait(), demanded, handle.clone().into_future());
    let (a, b, c, d) = (a.unwrap(), b.unwrap(), c.unwrap(), handle.try_get().unwrap().unwrap());
    assert!([&b, &c, &d].iter().all(|other| std::ptr::eq::<Vec<i32>>(&*a, &***other)));
    assert_eq!(a.iter().sum::<i32>(), 6);
}

/// I6: an error is as cheap to share as a value, and works into a boxed one.
#[tokio::test(start_paused = true)]
async fn an_error_may_be_asked_for_again_and_boxed() {
    async fn boot(handle: &TaskHandle<()>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        handle.wait().await?;
        Ok(())
    }
    let governor = fast(1);
    let handle = governor.govern(Task::new("task", || async { Err::<(), _>("no such file") }));
    let boxed = within(boot(&handle)).await.unwrap_err();
    let error = boxed.downcast_ref::<TaskError>().expect("it is one");
    assert_eq!(error.to_string(), "task \"task\" failed: no such file");
    assert_eq!(std::error::Error::source(error).unwrap().to_string(), "no such file");
    assert_eq!(handle.try_get().unwrap().unwrap_err().to_string(), error.to_string());
}
