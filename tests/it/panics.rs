//! Every place at which the code of a task can panic: the slot comes back and the rest goes on.

use std::fmt;
use std::future::{Future, pending};
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use afterboot::{CancelReason, Outcome, Task};
use tokio::time::sleep;

use crate::common::{Bomb, alive, boom, breathe, count, fast, ms, secs, silence, within};

/// With one slot: the bad task first, then one that must run; nothing may be left behind. `keep` holds the bad
/// task's handle until then; without it the value is dropped unclaimed.
async fn after_it_the_rest_goes_on<T: Send + Sync + 'static>(bad: Task<T>, keep: bool) -> Outcome {
    silence();
    let governor = fast(1);
    let handle = Some(governor.govern(bad)).filter(|_| keep);
    let next = governor.govern(Task::value("next", || async { 7 }));
    assert_eq!(*within(next.wait()).await.unwrap(), 7);
    breathe().await;
    assert_eq!(alive(), 0, "the lane has ended");
    let report = within(governor.report().finished()).await;
    if let Some(handle) = &handle {
        let told = handle.try_get().expect("it is resolved");
        let outcome =
            told.as_ref().map_or_else(|error| error.outcome().unwrap().clone(), |_| Outcome::Completed);
        assert_eq!(report.tasks[0].outcome, Some(outcome), "handle and report agree");
    }
    // A value that panics when it is dropped is the keeper's business from here on.
    std::mem::forget(handle);
    report.tasks[0].outcome.clone().expect("it has ended")
}

fn panicked(text: &str) -> Outcome {
    Outcome::Panicked(text.into())
}

/// I7
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_closure_before_the_future_exists_frees_the_slot() {
    fn closure() -> std::future::Ready<()> {
        panic!("boom in the closure")
    }
    assert_eq!(
        after_it_the_rest_goes_on(Task::new("t", closure), true).await,
        panicked("boom in the closure")
    );
}

/// I7
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_first_poll_or_in_a_later_one_frees_the_slot() {
    assert_eq!(after_it_the_rest_goes_on(Task::new("t", boom), true).await, panicked("boom"));
    let later = Task::new("t", || async {
        tokio::task::yield_now().await;
        sleep(ms(5)).await;
        boom().await;
    });
    assert_eq!(after_it_the_rest_goes_on(later, true).await, panicked("boom"));
}

/// I7
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_destructor_of_a_local_frees_the_slot() {
    let task = Task::new("t", || async {
        let _bomb = Bomb;
        sleep(ms(5)).await;
    });
    assert_eq!(after_it_the_rest_goes_on(task, true).await, panicked("boom in a destructor"));
}

/// A future that is ready at once and panics when it is dropped afterwards.
struct Brittle<T>(Option<T>, Bomb);

impl<T: Unpin> Future for Brittle<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(self.0.take().expect("polled once"))
    }
}

/// I7: also where its value would panic too.
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_destructor_of_a_completed_future_frees_the_slot() {
    let outcome = after_it_the_rest_goes_on(Task::new("t", || Brittle(Some(()), Bomb)), true).await;
    assert_eq!(outcome, panicked("boom in a destructor"));
    let outcome =
        after_it_the_rest_goes_on(Task::new("t", || Brittle(Some(Ok::<_, &str>(Bomb)), Bomb)), true).await;
    assert_eq!(outcome, panicked("boom in a destructor"));
    let failed =
        after_it_the_rest_goes_on(Task::new("t", || Brittle(Some(Err::<(), _>("no")), Bomb)), true).await;
    assert!(matches!(failed, Outcome::Failed(_) | Outcome::Panicked(_)), "{failed}");
}

/// I7: the task did complete.
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_destructor_of_a_value_that_nobody_claimed_frees_the_slot() {
    assert_eq!(
        after_it_the_rest_goes_on(Task::value("t", || async { Bomb }), false).await,
        Outcome::Completed
    );
    assert_eq!(
        after_it_the_rest_goes_on(Task::value("t", || async { Bomb }), true).await,
        Outcome::Completed
    );
}

/// I7: a payload that is no string, and worse, one that panics when it is dropped.
#[tokio::test(start_paused = true)]
async fn a_panics_payload_that_panics_itself_frees_the_slot() {
    for bomb in [false, true] {
        let payload = Task::new("t", move || async move {
            if bomb {
                panic_any(Bomb);
            }
            if !bomb {
                panic_any(7_u8);
            }
        });
        assert!(matches!(after_it_the_rest_goes_on(payload, true).await, Outcome::Panicked(_)));
    }
}

/// Panics when it is dropped, with a payload that panics when that is dropped.
struct WorseBomb;

impl Drop for WorseBomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic_any(Bomb);
        }
    }
}

/// I7: the destructor's payload is no less hostile than a poll's.
#[tokio::test(start_paused = true)]
async fn a_destructor_whose_panics_payload_panics_frees_the_slot() {
    let value = Task::value("t", || async { WorseBomb });
    assert_eq!(after_it_the_rest_goes_on(value, false).await, Outcome::Completed);
    let local = Task::new("t", || async { drop(WorseBomb) });
    assert!(matches!(after_it_the_rest_goes_on(local, true).await, Outcome::Panicked(_)));
    let dropped = Task::new("t", || async {
        let _bomb = WorseBomb;
        pending::<()>().await;
    });
    let outcome = after_it_the_rest_goes_on(dropped.timeout(ms(5)), true).await;
    assert_eq!(outcome, Outcome::TimedOut { still_running: false });
}

#[derive(Debug)]
struct Rude;

impl fmt::Display for Rude {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("boom in Display")
    }
}

impl std::error::Error for Rude {}

struct Unboxable;

impl From<Unboxable> for Box<dyn std::error::Error + Send + Sync> {
    fn from(_: Unboxable) -> Self {
        panic!("boom in a conversion")
    }
}

struct BrittleError;

impl Drop for BrittleError {
    fn drop(&mut self) {
        drop(Bomb);
    }
}

impl fmt::Debug for BrittleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrittleError")
    }
}

impl fmt::Display for BrittleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("brittle")
    }
}

impl std::error::Error for BrittleError {}

/// I7
#[tokio::test(start_paused = true)]
async fn an_error_that_panics_in_display_conversion_or_destructor_frees_the_slot() {
    let rude = after_it_the_rest_goes_on(Task::new("t", || async { Err::<(), _>(Rude) }), true).await;
    assert!(matches!(rude, Outcome::Failed(_)), "{rude}");
    let unboxable =
        after_it_the_rest_goes_on(Task::new("t", || async { Err::<(), _>(Unboxable) }), true).await;
    assert_eq!(unboxable, panicked("boom in a conversion"));
    for keep in [true, false] {
        let task = Task::new("t", || async { Err::<(), _>(BrittleError) });
        assert_eq!(after_it_the_rest_goes_on(task, keep).await, Outcome::Failed("brittle".into()));
    }
}

/// I7
#[tokio::test]
async fn a_panic_in_a_blocking_closure_frees_the_slot() {
    let closure = Task::blocking("t", || -> Result<(), Rude> { panic!("boom on the pool") });
    assert_eq!(after_it_the_rest_goes_on(closure, true).await, panicked("boom on the pool"));
    let display = after_it_the_rest_goes_on(Task::blocking("t", || Err::<(), _>(Rude)), true).await;
    assert!(matches!(display, Outcome::Failed(_)), "{display}");
    let value = Task::blocking("t", || Ok::<_, Rude>(Bomb));
    assert_eq!(after_it_the_rest_goes_on(value, false).await, Outcome::Completed);
}

/// I7, I11: whichever way the future is given up.
#[tokio::test(start_paused = true)]
async fn a_destructor_that_panics_on_timeout_cancel_or_skip_changes_nothing_but_its_own_task() {
    silence();
    let governor = fast(1);
    let holds_a_bomb = || async {
        let _bomb = Bomb;
        pending::<()>().await;
    };
    let timed_out = governor.govern(Task::new("timed out", holds_a_bomb).timeout(ms(10)));
    assert!(within(timed_out.wait()).await.unwrap_err().is_timed_out());
    let cancelled = governor.govern(Task::new("cancelled", holds_a_bomb));
    breathe().await;
    cancelled.cancel();
    assert!(within(cancelled.wait()).await.unwrap_err().is_cancelled());

    // Never started: the closure itself holds the bomb.
    let armed = || {
        let bomb = Bomb;
        move || async move { std::mem::forget(bomb) }
    };
    let unstarted = governor.govern(Task::new("unstarted", armed()).idle());
    unstarted.cancel();
    assert!(within(unstarted.wait()).await.unwrap_err().is_cancelled());
    let skipped = governor.govern(Task::new("skipped", armed()).when(false));
    assert!(within(skipped.wait()).await.unwrap_err().is_skipped());
    let after = governor.govern(Task::new("after", armed()).after(&unstarted));
    assert!(within(after.wait()).await.unwrap_err().is_skipped());
    let invalid = governor.govern(Task::new("invalid", armed()).timeout(ms(0)));
    assert!(within(invalid.wait()).await.unwrap_err().is_invalid());

    let next = governor.govern(Task::new("next", || async {}));
    within(next.wait()).await.unwrap();
    sleep(ms(10)).await;
    assert_eq!(alive(), 0);
}

/// I7, I11: what had been decided stands; a future that had ended is panicked.
#[tokio::test(start_paused = true)]
async fn a_destructor_that_panics_does_not_overrule_a_timeout_or_a_cancellation() {
    silence();
    let governor = fast(3);
    let holds_a_bomb = |time| {
        move || async move {
            let _bomb = Bomb;
            sleep(time).await;
        }
    };
    let timed_out = governor.govern(Task::new("timed out", holds_a_bomb(secs(60))).timeout(ms(10)));
    let cancelled = governor.govern(Task::new("cancelled", holds_a_bomb(secs(60))));
    let ended = governor.govern(Task::new("ended", holds_a_bomb(ms(5))).timeout(ms(10)));
    sleep(ms(1)).await;
    cancelled.cancel();
    let report = within(governor.report().finished()).await;
    let expected = [
        (timed_out, Outcome::TimedOut { still_running: false }),
        (cancelled, Outcome::Cancelled(CancelReason::Requested)),
        (ended, panicked("boom in a destructor")),
    ];
    for (handle, expected) in expected {
        let error = handle.try_get().unwrap().unwrap_err();
        assert_eq!(error.outcome(), Some(&expected));
        assert_eq!(report.task(error.task()).unwrap().outcome, Some(expected));
    }
}

/// I7
#[tokio::test(start_paused = true)]
async fn every_second_of_fifty_tasks_panics_and_the_others_complete() {
    silence();
    let governor = fast(3);
    for n in 0..50 {
        governor.govern(Task::new(format!("{n}"), move || async move {
            sleep(ms(n % 5)).await;
            assert!(n % 2 == 0, "boom");
        }));
    }
    let report = within(governor.report().finished()).await;
    assert_eq!((count(&report, "completed"), count(&report, "panicked")), (25, 25));
}

/// I7, I2
#[tokio::test(start_paused = true)]
async fn as_many_panicking_tasks_as_slots_leave_all_slots_free() {
    silence();
    let governor = fast(3);
    for n in 0..3 {
        governor.govern(Task::new(format!("bad {n}"), boom));
    }
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    for n in 0..3 {
        let barrier = Arc::clone(&barrier);
        // They meet only if all three hold a slot at once.
        governor.govern(Task::new(format!("good {n}"), move || async move {
            barrier.wait().await;
        }));
    }
    let report = within(governor.report().finished()).await;
    assert_eq!((count(&report, "panicked"), count(&report, "completed")), (3, 3));
}

/// I8, I7: the last reference to a predecessor's value goes inside `govern`.
#[tokio::test(start_paused = true)]
async fn govern_does_not_panic_where_a_predecessors_value_panics_when_it_is_dropped() {
    silence();
    let governor = fast(1);
    let first = governor.govern(Task::value("first", || async { Bomb }));
    breathe().await;
    assert!(first.is_finished());
    let task = Task::new("second", || async {}).after(&first);
    drop(first);
    let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| governor.govern(task)));
    within(second.expect("govern never panics").wait()).await.unwrap();
}
