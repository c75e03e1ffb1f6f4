//! Who waits is whoever polls, at each poll, and each wait of a task counts by itself.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use afterboot::{Task, TaskError, TaskRef};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::common::{Log, count, fast, ms, secs, started, within};
use crate::lending::Later;

type Wait = Pin<Box<dyn Future<Output = Result<TaskRef<()>, TaskError>> + Send>>;

/// Polls once, and gives the future back where it is not ready.
async fn begun<F: Future + Unpin>(mut future: F) -> F {
    poll_fn(|cx| {
        assert!(Pin::new(&mut future).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    future
}

/// I25: the future was polled first by somebody who has no slot to lend.
#[tokio::test(start_paused = true)]
async fn a_wait_that_began_outside_lends_the_slot_of_the_task_that_goes_on_with_it() {
    let governor = fast(1);
    let (give, take) = oneshot::channel::<Wait>();
    let a = governor.govern(Task::new("a", move || async move { take.await.unwrap().await.map(drop) }));
    let b = governor.govern(Task::new("b", || sleep(ms(5))));
    assert!(give.send(begun(b.into_future()).await).is_ok());
    within(a.wait()).await.unwrap();
}

/// I25, I14: nobody would ever wake it.
#[tokio::test(start_paused = true)]
async fn a_wait_for_itself_that_began_outside_is_told_as_a_cycle() {
    let governor = fast(1);
    let (give, take) = oneshot::channel::<Wait>();
    let a = governor.govern(Task::new("a", move || async move {
        assert!(take.await.unwrap().await.unwrap_err().is_cycle());
    }));
    assert!(give.send(begun(a.clone().into_future()).await).is_ok());
    within(a.wait()).await.unwrap();
}

/// I25, I2: who hands a wait on waits no longer, and whoever goes on with it does, if it is a task.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_handed_on_lends_for_whoever_has_it() {
    for to_a_task in [true, false] {
        let governor = fast(2);
        let (give, take) = oneshot::channel::<Wait>();
        let later = Later::<()>::default();
        let awaited = Arc::clone(&later);
        governor.govern(Task::new("a", move || async move {
            let wait = begun(awaited.wait().clone().into_future()).await;
            assert!(give.send(wait).is_ok());
            sleep(secs(4)).await;
        }));
        let goes_on = async move { drop(take.await.unwrap().await) };
        if to_a_task {
            governor.govern(Task::new("goes on", move || goes_on));
        } else {
            tokio::spawn(goes_on);
            governor.govern(Task::new("holds the other slot", || sleep(secs(4))));
        }
        let b = governor.govern(Task::new("b", || sleep(secs(2))).idle());
        later.set(b).unwrap();
        sleep(ms(1)).await;
        governor.govern(Task::new("c", || async {}));
        governor.open_gate();
        let report = within(governor.report().finished()).await;
        // Three run beside each other only while one of them lends.
        let first = if to_a_task { secs(0) } else { secs(4) };
        let c = started(&report, "c");
        assert!(c >= first && c < first + secs(1), "to a task: {to_a_task}, {c:?}");
        let b = started(&report, "b");
        assert!(b >= first && b < first + secs(1), "to a task: {to_a_task}, {b:?}");
    }
}

/// One future for several tasks, polled with a waker that wakes them all.
#[derive(Clone)]
struct Shared(Arc<Mutex<Option<Wait>>>, Arc<All>);

#[derive(Default)]
struct All(Mutex<Vec<Waker>>);

impl Wake for All {
    fn wake(self: Arc<Self>) {
        for waker in std::mem::take(&mut *self.0.lock().unwrap()) {
            waker.wake();
        }
    }
}

impl Future for Shared {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock().unwrap();
        let Some(wait) = &mut *inner else { return Poll::Ready(()) };
        self.1.0.lock().unwrap().push(cx.waker().clone());
        if wait.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&self.1)))).is_pending() {
            return Poll::Pending;
        }
        *inner = None;
        Arc::clone(&self.1).wake();
        Poll::Ready(())
    }
}

/// I25: all of them wait, though the future was polled last by one of them.
#[tokio::test(start_paused = true)]
async fn tasks_that_wait_in_one_shared_future_all_lend() {
    let governor = fast(1);
    let later_wait: Arc<OnceLock<Shared>> = Arc::default();
    for n in 0..3 {
        let wait = Arc::clone(&later_wait);
        governor.govern(Task::new(format!("{n}"), move || async move { wait.wait().clone().await }));
    }
    let b = governor.govern(Task::new("b", || sleep(ms(5))));
    let wait = Shared(Arc::new(Mutex::new(Some(b.into_future()))), Arc::default());
    assert!(later_wait.set(wait).is_ok());
    assert_eq!(count(&within(governor.report().finished()).await, "completed"), 4);
}

/// I25, I16: the same for the end of the run.
#[tokio::test(start_paused = true)]
async fn a_wait_for_the_run_that_began_outside_lends_and_is_left_out() {
    let governor = fast(1);
    let (give, take) = oneshot::channel();
    let a = governor.govern(Task::new("a", move || async move {
        let wait: Pin<Box<dyn Future<Output = ()> + Send>> = take.await.unwrap();
        wait.await;
    }));
    governor.govern(Task::new("b", || sleep(ms(5))));
    let run = governor.report();
    let wait: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move { drop(run.finished().await) });
    assert!(give.send(begun(wait).await).is_ok());
    within(a.wait()).await.unwrap();
}

/// I25, I16: the end of one wait for the run is not the end of another of the same task.
#[tokio::test(start_paused = true)]
async fn of_two_waits_for_the_run_the_one_that_is_left_still_lends() {
    for first_is_for_the_end in [false, true] {
        let governor = fast(1);
        let inner = governor.clone();
        let a = governor.govern(Task::new("a", move || async move {
            let run = inner.report();
            let gives_up = async {
                if first_is_for_the_end {
                    drop(timeout(ms(20), run.finished()).await);
                } else {
                    drop(timeout(ms(20), run.started()).await);
                }
            };
            tokio::join!(gives_up, run.finished());
        }));
        for n in 0..3 {
            governor.govern(Task::new(format!("{n}"), || sleep(secs(1))));
        }
        within(a.wait()).await.unwrap();
        assert_eq!(count(&within(governor.report().finished()).await, "completed"), 4);
    }
}

/// I16: what comes after two such tasks is left out for the second, though the first gives up.
#[tokio::test(start_paused = true)]
async fn what_comes_after_two_that_await_the_end_is_left_out_until_both_give_up() {
    let governor = fast(3);
    let [one, two] = [Some(ms(20)), None].map(|limit| {
        let inner = governor.clone();
        governor.govern(Task::new("awaits", move || async move {
            let run = inner.report();
            match limit {
                Some(limit) => drop(timeout(limit, run.finished()).await),
                None => drop(run.finished().await),
            }
        }))
    });
    let after = governor.govern(Task::new("after", || async {}).after(&one).after(&two));
    governor.govern(Task::new("b", || sleep(secs(1))));
    within(two.wait()).await.unwrap();
    within(after.wait()).await.unwrap();
}

/// I16: one that gave up is waited for again, with what comes after it.
#[tokio::test(start_paused = true)]
async fn who_gives_up_both_of_its_waits_for_the_end_is_waited_for_again() {
    let governor = fast(2);
    let inner = governor.clone();
    let a = governor.govern(Task::new("a", move || async move {
        let run = inner.report();
        drop(tokio::join!(timeout(ms(10), run.finished()), timeout(ms(20), run.finished())));
        sleep(secs(5)).await;
    }));
    let log = Log::default();
    let written = log.clone();
    governor.govern(Task::new("after a", move || async move { written.add("after a") }).after(&a));
    governor.govern(Task::new("b", || sleep(secs(1))));
    sleep(ms(1)).await;
    within(governor.report().finished()).await;
    assert_eq!(log.all(), ["after a"]);
}

#[cfg(feature = "retry")]
mod retried {
    use super::*;
    use afterboot::retry::{BackoffPolicy, Jitter, Limits, RetryPolicy, Schedule};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn each_second() -> RetryPolicy {
        let backoff = BackoffPolicy::builder().schedule(Schedule::Constant(secs(1))).jitter(Jitter::NONE);
        RetryPolicy::from(backoff.build().unwrap()).limits(Limits::default().max_retries(5))
    }

    /// I25, I32: a task that is tried again needs the lent slot at each attempt.
    #[tokio::test(start_paused = true)]
    async fn a_slot_is_lent_to_a_task_that_rests_between_two_attempts() {
        let governor = fast(1);
        let later = Later::<()>::default();
        let awaited = Arc::clone(&later);
        let a = governor.govern(Task::new("a", move || async move { awaited.wait().wait().await.map(drop) }));
        let calls = Arc::new(AtomicU32::new(0));
        let run = move || {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            std::future::ready(if call > 1 { Ok(()) } else { Err("not yet") })
        };
        later.set(governor.govern(Task::retryable("b", run, each_second()))).unwrap();
        within(a.wait()).await.unwrap();
    }

    /// I25, I2, I32: a wait that outlives its attempt lends nothing while the task rests, and lends in the next one.
    #[tokio::test(start_paused = true)]
    async fn a_wait_that_outlives_an_attempt_lends_only_while_an_attempt_goes_on_with_it() {
        let governor = fast(1);
        let kept: Arc<Mutex<Option<Wait>>> = Arc::default();
        let (wait, calls) = (Arc::clone(&kept), Arc::new(AtomicU32::new(0)));
        let run = move || {
            let (wait, first) = (Arc::clone(&wait), calls.fetch_add(1, Ordering::SeqCst) == 0);
            async move {
                let kept = wait.lock().unwrap().take().unwrap();
                let mut wait = Kept(Some(kept), wait);
                if first {
                    wait.poll_once().await;
                    return Err("not yet");
                }
                wait.end().await;
                Ok(())
            }
        };
        let a = governor.govern(Task::retryable("a", run, each_second()));
        governor.govern(Task::new("long", || sleep(secs(3))));
        let b = governor.govern(Task::new("b", || sleep(ms(5))));
        *kept.lock().unwrap() = Some(b.into_future());
        within(a.wait()).await.unwrap();
        let report = within(governor.report().finished()).await;
        // While A rests, LONG holds the only slot.
        assert!(started(&report, "b") >= report.task("long").unwrap().finished.unwrap());
    }

    /// Puts the wait back when the attempt is over.
    struct Kept(Option<Wait>, Arc<Mutex<Option<Wait>>>);

    impl Kept {
        async fn poll_once(&mut self) {
            let wait = begun(self.0.take().unwrap()).await;
            self.0 = Some(wait);
        }

        async fn end(mut self) {
            drop(self.0.take().unwrap().await);
        }
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = self.0.take();
        }
    }
}
