//! A tick: one pass of the event loop in which I/O and timers are polled.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Waits for whole ticks, whatever wakes the task meanwhile.
///
/// `tokio::task::yield_now` hands its waker to the scheduler, which wakes it after it has looked at the driver.
/// But it is ready at the next poll *whoever* asked for that, and the lane is woken by every task it holds. So
/// the lane yields with a waker of its own and goes on only when that one fires. Then it wakes itself once more: a timer
/// of a governed task, or its own, may have woken it first in that look at the driver, ahead of the application's tasks
/// that the same look woke. They would wait for another governed poll.
#[derive(Debug)]
pub(crate) struct Ticker {
    signal: Arc<Signal>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Signal {
    /// Set by the scheduler after it has looked at the driver, on any thread. An atomic, because a waker has to
    /// be `Sync`; `Release` and `Acquire` order nothing but itself, they are what `AtomicWaker` asks for.
    fired: AtomicBool,
    lane: AtomicWaker,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.fired.store(true, Ordering::Release);
        self.lane.wake();
    }
}

impl Ticker {
    pub(crate) fn new() -> Ticker {
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        Ticker { signal, waker }
    }

    /// Resolves a whole tick later.
    pub(crate) async fn tick(&mut self) {
        self.signal.fired.store(false, Ordering::Release);
        let mut asked = pin!(tokio::task::yield_now());
        let mut stage = Stage::Ask;
        poll_fn(|cx| {
            self.signal.lane.register(cx.waker());
            if stage == Stage::Ask {
                // Polled once and no more: it hands our waker over, and that is all we want of it.
                stage = Stage::Asked;
                let mut signalled = Context::from_waker(&self.waker);
                if asked.as_mut().poll(&mut signalled).is_ready() {
                    return Poll::Ready(());
                }
            }
            if stage == Stage::Asked {
                if !self.signal.fired.load(Ordering::Acquire) {
                    return Poll::Pending;
                }
                // Behind everyone who was woken. On a multi_thread runtime this also hands the driver to a parked worker:
                // a task that a timer or I/O wakes runs on the worker that holds it, and a long poll there would keep
                // everyone from it.
                stage = Stage::Behind;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Ask,
    Asked,
    Behind,
}
