//! Blocking closures: on the pool, with a slot, and nothing can stop them. Real threads and real time.

use std::convert::Infallible;
use std::sync::mpsc;

use afterboot::{CancelReason, Outcome, Task};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::common::{Log, alive, breathe, ended, fast, ms, secs, soon, started};

/// The lane ends, but when is real time.
async fn nothing_is_left() {
    soon(async {
        while alive() > 0 {
            sleep(ms(1)).await;
        }
    })
    .await;
}

/// I11, I2: real threads; the slot stays taken until the closure returns.
#[tokio::test]
async fn a_blocking_closure_that_times_out_keeps_its_slot_until_it_returns() {
    let governor = fast(1);
    let (let_go, wait) = mpsc::channel::<()>();
    let blocking = governor
        .govern(Task::blocking("blocking", move || wait.recv().map_err(|_| "hung up")).timeout(ms(20)));
    let next = governor.govern(Task::new("next", || async {}));
    let error = soon(blocking.wait()).await.unwrap_err();
    assert_eq!(error.outcome().unwrap(), &Outcome::TimedOut { still_running: true });
    sleep(ms(50)).await;
    assert!(!next.is_finished(), "the slot is taken");
    assert_eq!(governor.report().current().task("blocking").unwrap().finished, None);
    let_go.send(()).unwrap();
    soon(next.wait()).await.unwrap();
    let report = soon(governor.report().finished()).await;
    assert_eq!(ended(&report, "blocking"), Outcome::TimedOut { still_running: true });
    assert!(started(&report, "next") >= report.task("blocking").unwrap().finished.unwrap());
}

/// I11, I10, I19: what comes after it is skipped at once, and when it has returned nothing is left.
#[tokio::test]
async fn a_blocking_closure_that_times_out_skips_its_successors_and_the_lane_still_ends() {
    let governor = fast(2);
    let (let_go, wait) = mpsc::channel::<()>();
    let blocking = governor
        .govern(Task::blocking("blocking", move || wait.recv().map_err(|_| "hung up")).timeout(ms(20)));
    let after = governor.govern(Task::new("after", || async {}).after(&blocking));
    assert!(soon(after.wait()).await.unwrap_err().is_skipped());
    let_go.send(()).unwrap();
    nothing_is_left().await;
}

/// I11
#[tokio::test]
async fn a_blocking_closure_that_returns_in_time_has_completed() {
    let governor = fast(1);
    let task = governor.govern(Task::blocking("quick", || Ok::<_, Infallible>(7)).timeout(secs(20)));
    assert_eq!(*soon(task.wait()).await.unwrap(), 7);
}

/// I11: a blocking closure cannot be stopped, and that is said.
#[tokio::test]
async fn a_cancelled_blocking_closure_that_runs_is_abandoned() {
    let governor = fast(1);
    let (let_go, wait) = mpsc::channel::<()>();
    let (begun, has_begun) = oneshot::channel();
    let task = governor.govern(Task::blocking("blocking", move || {
        begun.send(()).map_err(|()| "nobody")?;
        wait.recv().map_err(|_| "hung up")
    }));
    let next = governor.govern(Task::new("next", || async {}));
    soon(has_begun).await.unwrap();
    task.cancel();
    assert!(task.try_get().expect("at once").unwrap_err().is_abandoned());
    sleep(ms(20)).await;
    assert!(!next.is_finished(), "the slot is taken");
    let_go.send(()).unwrap();
    soon(next.wait()).await.unwrap();
}

/// I14: what it declares is in the scope that it is in itself.
#[tokio::test]
async fn what_a_blocking_closure_declares_is_in_its_scope() {
    let governor = fast(2);
    let inner = governor.clone();
    let (sealed, is_sealed) = mpsc::channel::<()>();
    governor.govern(Task::blocking("parent", move || {
        is_sealed.recv().map_err(|_| "hung up")?;
        inner.govern(Task::new("child", || async {}));
        Ok::<_, &str>(())
    }));
    let run = governor.report();
    sealed.send(()).unwrap();
    let report = soon(run.finished()).await;
    assert!(report.task("child").is_some(), "{report}");
    assert_eq!(report.late, 0);
}

/// I16: it may wait for the end of the run from its thread.
#[tokio::test]
async fn a_blocking_closure_that_awaits_the_end_of_the_run_does_not_wait_for_itself() {
    let governor = fast(2);
    let inner = governor.clone();
    let runtime = Handle::current();
    let (told, is_told) = oneshot::channel();
    governor.govern(Task::new("other", || sleep(ms(20))));
    let waits = Task::blocking("waits", move || {
        let end = runtime
            .block_on(async { tokio::time::timeout(secs(2), inner.report().finished()).await.is_ok() });
        told.send(end).map_err(|_| "nobody")
    });
    governor.govern(waits);
    assert!(soon(is_told).await.unwrap(), "it waited for itself");
}

/// I13: the boot's own requests do not keep the application from being quiet.
#[tokio::test]
async fn an_in_flight_guard_taken_inside_a_blocking_closure_counts_nothing() {
    let governor = fast(2);
    let inner = governor.clone();
    let task = governor.govern(Task::blocking("requests", move || {
        let _guard = inner.in_flight("fetch");
        Ok::<_, Infallible>(inner.snapshot().in_flight)
    }));
    assert_eq!(*soon(task.wait()).await.unwrap(), 0);
}

/// I6, I11: the pool is full, so the closure has not begun; given up, it never does.
#[test]
fn a_closure_that_still_waits_for_the_pool_never_begins_once_it_is_cancelled_or_timed_out() {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let governor = fast(3);
        let log = Log::default();
        let (let_go, wait) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let holds = governor.govern(Task::blocking("holds the pool", move || {
            begun.send(()).map_err(|()| "nobody")?;
            wait.recv().map_err(|_| "hung up")
        }));
        soon(has_begun).await.unwrap();
        let logged = |name: &'static str| {
            let log = log.clone();
            Task::blocking(name, move || log.add(name))
        };
        let cancelled = governor.govern(logged("cancelled"));
        let timed_out = governor.govern(logged("timed out").timeout(ms(20)));
        while governor.report().current().tasks.iter().any(|task| task.started.is_none()) {
            sleep(ms(1)).await;
        }
        cancelled.cancel();
        assert!(soon(cancelled.wait()).await.is_err());
        assert!(soon(timed_out.wait()).await.is_err());
        let_go.send(()).unwrap();
        soon(holds.wait()).await.unwrap();
        nothing_is_left().await;
        assert_eq!(log.all(), Vec::<String>::new());
    });
}

/// I14, I11: real threads; the closure blocks until it is let go.
#[tokio::test]
async fn a_blocking_closure_is_abandoned_at_the_deadline_and_the_lane_sees_it_out() {
    let governor = fast(2);
    let (let_go, wait) = mpsc::channel::<()>();
    let blocking = governor.govern(Task::blocking("blocking", move || wait.recv().map_err(|_| "hung up")));
    let queued = governor.govern(Task::blocking("idle", || ()).idle());
    breathe().await;
    let report = soon(governor.shutdown(ms(50))).await;
    assert_eq!(ended(&report, "blocking"), Outcome::Abandoned);
    assert_eq!(report.task("blocking").unwrap().finished, None);
    assert_eq!(blocking.wait().await.unwrap_err().outcome().unwrap(), &Outcome::Abandoned);
    assert_eq!(
        queued.wait().await.unwrap_err().outcome().unwrap(),
        &Outcome::Cancelled(CancelReason::Shutdown)
    );
    let_go.send(()).unwrap();
    nothing_is_left().await;
    assert!(governor.report().current().task("blocking").unwrap().finished.is_some());
    assert_eq!(
        blocking.wait().await.unwrap_err().outcome().unwrap(),
        &Outcome::Abandoned,
        "what has been told stays"
    );
}
