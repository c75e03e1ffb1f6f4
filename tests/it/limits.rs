//! Timeouts and cancellation: judged between polls, the future first.

use std::future::{pending, poll_fn};
use std::task::Poll;

use afterboot::{CancelReason, Outcome, Task};
use tokio::time::{advance, sleep};

use crate::common::{Log, alive, breathe, ended, fast, hold, ms, secs, started, within};

const TIMED_OUT: Outcome = Outcome::TimedOut { still_running: false };

/// I11
#[tokio::test(start_paused = true)]
async fn a_future_that_passes_its_timeout_is_dropped_and_its_slot_is_free() {
    let governor = fast(1);
    let log = Log::default();
    let local = log.on_drop("local");
    let task = governor.govern(
        Task::new("slow", move || async move {
            let _local = local;
            pending::<()>().await;
        })
        .timeout(ms(100)),
    );
    let next = governor.govern(Task::new("next", || async {}));
    within(next.wait()).await.unwrap();
    assert_eq!(log.all(), ["local dropped"]);
    let report = within(governor.report().finished()).await;
    assert_eq!(ended(&report, "slow"), TIMED_OUT);
    assert!(task.try_get().unwrap().unwrap_err().is_timed_out());
    let ended_at = report.task("slow").unwrap().finished.unwrap();
    assert!(ended_at >= ms(100) && ended_at < ms(110), "{ended_at:?}");
    assert!(started(&report, "next") >= ended_at);
}

/// I11: counted from the start, not from the declaration.
#[tokio::test(start_paused = true)]
async fn a_timeout_counts_from_the_start() {
    let governor = fast(1);
    governor.govern(Task::new("first", || sleep(secs(10))));
    let second = governor.govern(Task::new("second", || sleep(ms(50))).timeout(ms(100)));
    let idle = governor.govern(Task::new("idle", || sleep(ms(50))).timeout(ms(100)).idle());
    within(second.wait()).await.unwrap();
    within(idle.wait()).await.unwrap();
}

/// I11: both come at the same moment, also after the clock has jumped far beyond it.
#[tokio::test(start_paused = true)]
async fn a_future_that_is_ready_at_its_last_poll_has_completed() {
    let governor = fast(2);
    let same = governor.govern(Task::new("same moment", || sleep(ms(100))).timeout(ms(100)));
    let jumped = governor.govern(Task::new("jumped", || sleep(ms(900))).timeout(ms(100)));
    let not_ready = governor.govern(Task::new("not ready", || sleep(secs(7_000))).timeout(ms(100)));
    breathe().await;
    advance(secs(3_600)).await;
    within(same.wait()).await.unwrap();
    within(jumped.wait()).await.unwrap();
    assert!(within(not_ready.wait()).await.unwrap_err().is_timed_out());
}

/// I11: nothing can interrupt a poll; at its end it is over.
#[tokio::test(start_paused = true)]
async fn a_timeout_that_passes_inside_a_poll_is_judged_when_the_poll_returns() {
    let governor = fast(1);
    let log = Log::default();
    let polled = log.clone();
    let task = governor.govern(
        Task::new("t", move || {
            poll_fn(move |cx| {
                polled.add("polled");
                hold(ms(2));
                // It would be polled for ever.
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            })
        })
        .timeout(ms(10)),
    );
    breathe().await;
    let before = log.all().len();
    assert!(before > 1);
    advance(ms(10)).await;
    assert!(within(task.wait()).await.unwrap_err().is_timed_out());
    let after = log.all().len();
    breathe().await;
    assert_eq!(log.all().len(), after, "it is not polled any more");
}

/// I11: the longest that can be said.
#[tokio::test(start_paused = true)]
async fn the_longest_timeout_is_no_limit() {
    let governor = fast(2);
    for limit in [std::time::Duration::MAX, secs(u64::MAX / 2), secs(86_400 * 365 * 600)] {
        let task = governor.govern(Task::new("t", || sleep(secs(1))).timeout(limit));
        within(task.wait()).await.unwrap();
    }
}

/// I6: unstarted, whatever it waits for.
#[tokio::test(start_paused = true)]
async fn a_cancelled_task_that_has_not_started_never_runs() {
    let governor = fast(1);
    let log = Log::default();
    let holds = governor.govern(Task::new("holds the slot", pending::<()>));
    breathe().await;
    let logged = |name: &'static str| {
        let log = log.clone();
        Task::new(name, move || async move { log.add(name) })
    };
    let queued = governor.govern(logged("queued"));
    let idle = governor.govern(logged("idle").idle());
    let waiting = governor.govern(logged("waiting").after(&queued));
    waiting.cancel();
    waiting.cancel();
    queued.cancel();
    idle.cancel();
    for handle in [&queued, &idle, &waiting] {
        let error = handle.try_get().expect("at once").unwrap_err();
        assert_eq!(error.outcome().unwrap(), &Outcome::Cancelled(CancelReason::Requested));
    }
    holds.cancel();
    within(governor.report().finished()).await;
    sleep(secs(60)).await;
    assert_eq!(log.all(), Vec::<String>::new());
    assert_eq!(alive(), 0);
}

/// I6, I11: running, it is dropped in a tick of its own; ready at that tick, it has completed.
#[tokio::test(start_paused = true)]
async fn a_cancelled_task_that_runs_is_dropped_unless_it_is_ready() {
    let governor = fast(2);
    let log = Log::default();
    let local = log.on_drop("local");
    let dropped = governor.govern(Task::new("dropped", move || async move {
        let _local = local;
        sleep(ms(100)).await;
    }));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let completes = governor.govern(Task::new("completes", || is_ready));
    breathe().await;
    dropped.cancel();
    assert_eq!(log.all(), Vec::<String>::new(), "not on the canceller's stack");
    assert!(within(dropped.wait()).await.unwrap_err().is_cancelled());
    assert_eq!(log.all(), ["local dropped"]);
    completes.cancel();
    ready.send(()).unwrap();
    within(completes.wait()).await.unwrap();
    completes.cancel();
    assert!(within(completes.wait()).await.is_ok(), "ended, nothing happens");
}

/// I6: from inside its own poll.
#[tokio::test(start_paused = true)]
async fn a_task_may_cancel_itself() {
    let governor = fast(1);
    let (send, receive) = tokio::sync::oneshot::channel::<afterboot::TaskHandle<()>>();
    let itself = governor.govern(Task::new("itself", || async move {
        receive.await.unwrap().cancel();
        pending::<()>().await;
    }));
    send.send(itself.clone()).unwrap();
    assert!(within(itself.wait()).await.unwrap_err().is_cancelled());
    let next = governor.govern(Task::new("next", || async {}));
    within(next.wait()).await.unwrap();
}
