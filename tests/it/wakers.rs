//! Wakers of those who wait, and what user code may call from wherever it runs.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use afterboot::{Outcome, Task};
use tokio::time::sleep;

use crate::common::{Log, alive, breathe, ended, fast, ms, secs, silence, soon, within};

/// Panics, or calls back, when it is woken.
struct Callback<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Callback<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn waker(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Callback(wake)))
}

/// Polls once with that waker; the future stays registered.
fn register<F: Future>(future: Pin<&mut F>, waker: &Waker) {
    assert!(future.poll(&mut Context::from_waker(waker)).is_pending());
}

/// I7
#[tokio::test(start_paused = true)]
async fn a_waiters_waker_that_panics_does_not_stop_the_lane() {
    silence();
    let governor = fast(1);
    let task = governor.govern(Task::new("t", || sleep(ms(5))));
    let next = governor.govern(Task::new("next", || sleep(ms(5))));
    let run = governor.report();
    let bad = waker(|| panic!("boom in a waker"));
    let (mut waits, mut finished) = (Box::pin(task.wait()), Box::pin(run.finished()));
    register(waits.as_mut(), &bad);
    register(finished.as_mut(), &bad);
    within(next.wait()).await.unwrap();
    assert!(task.is_finished());
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I7, I14: the others who wait for the same task are woken all the same.
#[tokio::test(start_paused = true)]
async fn a_waiters_waker_that_panics_does_not_keep_the_other_waiters_asleep() {
    silence();
    let governor = fast(1);
    let task = governor.govern(Task::new("t", || sleep(ms(5))));
    let bad = waker(|| panic!("boom in a waker"));
    let mut waits = Box::pin(task.wait());
    register(waits.as_mut(), &bad);
    let other = task.clone();
    let other = tokio::spawn(async move { other.wait().await.map(drop) });
    within(other).await.unwrap().unwrap();
}

/// I7, I14: the same for those who wait for the run.
#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_does_not_keep_others_from_the_end_of_the_run() {
    silence();
    let governor = fast(1);
    governor.govern(Task::new("t", || sleep(ms(5))));
    let run = governor.report();
    let bad = waker(|| panic!("boom in a waker"));
    let mut waits = Box::pin(run.finished());
    register(waits.as_mut(), &bad);
    let other = run.clone();
    let other = tokio::spawn(async move { other.finished().await });
    assert_eq!(ended(&within(other).await.unwrap(), "t"), Outcome::Completed);
}

/// I18: destructors, wakers, conversions and displays may call the governor; a lock held there would hang.
#[tokio::test]
async fn user_code_may_call_the_governor_from_anywhere() {
    struct Calls(afterboot::Governor);
    impl Drop for Calls {
        fn drop(&mut self) {
            drop(self.0.govern(Task::new("from a destructor", || async {})));
            drop(self.0.report().current().to_string());
            self.0.govern(Task::new("and cancelled", || async {}).idle()).cancel();
        }
    }
    let governor = fast(2);
    let log = Log::default();
    let calls = || Calls(governor.clone());
    let (value, closure, local, kept) = (calls(), calls(), calls(), calls());
    drop(governor.govern(Task::value("value", || async move { value })));
    governor.govern(Task::new("closure", move || async move { drop(closure) }).idle()).cancel();
    let dropped = governor.govern(Task::new("local", || async move {
        let _local = local;
        poll_fn(|_| Poll::<()>::Pending).await;
    }));
    let task = governor.govern(Task::new("task", || sleep(ms(5))));
    let (again, written) = (governor.clone(), log.clone());
    let calling = waker(move || {
        drop(again.govern(Task::new("from a waker", || async {})));
        drop(again.report().current());
        written.add("woken");
        let _ = &kept;
    });
    let mut waits = Box::pin(task.wait());
    register(waits.as_mut(), &calling);
    breathe().await;
    dropped.cancel();
    soon(task.wait()).await.unwrap();
    soon(governor.shutdown(secs(5))).await;
    assert_eq!(log.all(), ["woken"]);
}
