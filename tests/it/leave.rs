//! The end of a shutdown: when it is over, so is everything, and nobody waits for himself.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use afterboot::{Governor, Task};
use tokio::time::{Instant, sleep};

use crate::common::{count, fast, hold, ms, paced, secs, soon, two_workers, within};

/// I14: when the shutdown is over, so is everything: another thread may be in the middle of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_shutdown_returns_each_handle_is_resolved_and_each_captured_value_dropped() {
    struct Slow(Arc<AtomicUsize>);
    impl Drop for Slow {
        fn drop(&mut self) {
            hold(ms(20));
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for _ in 0..5 {
        let dropped = Arc::new(AtomicUsize::new(0));
        let governor = paced(1, secs(60), ms(0));
        let handles: Vec<_> = (0..10)
            .map(|n| {
                let slow = Slow(Arc::clone(&dropped));
                governor.govern(Task::new(format!("{n}"), move || async move { drop(slow) }))
            })
            .collect();
        let report = governor.shutdown(ms(0)).await;
        assert!(handles.iter().all(|handle| handle.try_get().is_some()));
        assert_eq!(dropped.load(Ordering::SeqCst), 10);
        assert_eq!(count(&report, "cancelled"), 10);
    }
}

/// I16: as with `finished()`, who awaits it is left out of it; two of them do not wait for each other.
#[tokio::test(start_paused = true)]
async fn a_task_that_awaits_the_shutdown_does_not_wait_for_itself() {
    for deadline in [secs(30), Duration::MAX] {
        let governor = fast(3);
        let begun = Instant::now();
        let leaves = |name: &'static str| {
            let inside = governor.clone();
            governor.govern(Task::value(name, move || async move {
                sleep(ms(10)).await;
                inside.shutdown(deadline).await.tasks.len()
            }))
        };
        let (a, b) = (leaves("a"), leaves("b"));
        governor.govern(Task::new("runs", || async { sleep(ms(100)).await }));
        assert_eq!(*within(a.wait()).await.unwrap(), 3);
        assert_eq!(*within(b.wait()).await.unwrap(), 3);
        assert!(begun.elapsed() < secs(1), "{:?}", begun.elapsed());
    }
}

/// I14: nor does its own deadline end it.
#[tokio::test(start_paused = true)]
async fn a_task_whose_shutdown_comes_to_its_deadline_goes_on() {
    let governor = fast(2);
    let endless = governor.govern(Task::new("endless", pending::<()>));
    let inside = governor.clone();
    let leaves = governor.govern(Task::value("leaves", move || async move {
        inside.shutdown(ms(50)).await;
        7
    }));
    assert_eq!(*within(leaves.wait()).await.unwrap(), 7);
    assert!(within(endless.wait()).await.is_err());
}

/// I14: on a plain thread, as `wait` and `finished`.
#[test]
fn a_shutdown_may_be_awaited_outside_of_a_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let governor = Governor::builder().runtime(runtime.handle().clone()).build().unwrap();
    let endless = governor.govern(Task::new("endless", pending::<()>));
    drop(endless.demand());
    // Only a task that runs is waited for.
    while governor.snapshot().running.is_empty() {
        hold(ms(1));
    }
    let report = without_a_runtime(governor.shutdown(ms(50)));
    assert_eq!(report.tasks.len(), 1);
    assert!(endless.is_finished());
}

fn without_a_runtime<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// I14: a destructor that hangs on another thread is waited for, but not for ever.
#[test]
fn a_destructor_that_hangs_does_not_keep_a_shutdown_for_ever() {
    struct Hangs(Arc<AtomicUsize>);
    impl Drop for Hangs {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            hold(secs(8));
        }
    }
    let runtime = two_workers();
    let dropping = Arc::new(AtomicUsize::new(0));
    let hangs = Hangs(Arc::clone(&dropping));
    let (elapsed, report) = runtime.block_on(async {
        let governor = paced(1, secs(60), ms(0));
        let queued = governor.govern(Task::new("queued", move || async move { drop(hangs) }));
        std::thread::spawn(move || queued.cancel());
        while dropping.load(Ordering::SeqCst) == 0 {
            sleep(ms(1)).await;
        }
        let begun = Instant::now();
        let report = soon(governor.shutdown(ms(50))).await;
        (begun.elapsed(), report)
    });
    runtime.shutdown_background();
    assert!(elapsed >= ms(900) && elapsed < secs(6), "{elapsed:?}");
    assert_eq!(count(&report, "cancelled"), 1);
}
