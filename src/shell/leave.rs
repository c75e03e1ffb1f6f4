//! The end of a shutdown: waits until nothing runs, at most until the deadline.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep_until};

use crate::base::catch::catch;
use crate::base::clock::Stamp;
use crate::core::{Target, Waits};
use crate::shell::context;
use crate::shell::lender::Lenders;
use crate::shell::shared::Shared;

/// Set in the number of those that are not settled once somebody leaves: before that, nobody has to be woken for each.
pub(crate) const LEAVING: usize = 1 << (usize::BITS - 1);

/// How long beyond the deadline destructors may take that have begun elsewhere: they cannot be interrupted.
const DESTRUCTORS: Duration = Duration::from_secs(1);

impl Shared {
    /// Resolves when nothing runs any more, or the deadline has ended it, and all that ended is settled; but not later than
    /// [`DESTRUCTORS`] after the deadline.
    pub(crate) async fn leave(self: &Arc<Self>, ends: Stamp) {
        let mut lenders = Lenders::new(Arc::downgrade(self), Target::Run(Waits::Finished));
        self.unsettled.fetch_or(LEAVING, Ordering::AcqRel);
        let mut changed = self.run_changed.wait();
        // The timer is the governor's: who waits need not be inside a runtime.
        let timer = |at| {
            let _entered = self.runtime.enter();
            Box::pin(sleep_until(self.clock.instant(at)))
        };
        let (mut deadline, mut limit) = (Some(timer(ends)), timer(ends.after(DESTRUCTORS)));
        poll_fn(|cx| {
            loop {
                let here = context::task_of(Arc::as_ptr(self));
                drop(lenders.polled(cx.waker()));
                let runs = {
                    let state = self.lock();
                    match here {
                        Some(_) => state.core.running_beside_those_who_leave(),
                        None => state.core.running_unresolved(),
                    }
                };
                if runs > 0
                    && let Some(timer) = &mut deadline
                    && passed(timer, cx)
                {
                    deadline = None;
                    self.apply(|core, now, actions| core.end_running_but(here, now, actions));
                }
                let ended = runs == 0 || deadline.is_none();
                if ended && (self.unsettled.load(Ordering::Acquire) == LEAVING || passed(&mut limit, cx)) {
                    lenders.arrived();
                    return Poll::Ready(());
                }
                ready!(Pin::new(&mut changed).poll(cx));
                changed = self.run_changed.wait();
            }
        })
        .await;
    }

    /// One that ended is settled: its handle is resolved, and what was left of it dropped.
    pub(crate) fn settled(&self) {
        if self.unsettled.fetch_sub(1, Ordering::AcqRel) == LEAVING + 1 {
            self.run_changed.wake_all();
        }
    }
}

/// A timer of a runtime that has gone panics; then nothing runs any more.
fn passed(timer: &mut Pin<Box<Sleep>>, cx: &mut Context<'_>) -> bool {
    catch(|| timer.as_mut().poll(cx).is_ready()).unwrap_or(true)
}
