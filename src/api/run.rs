//! A run: the tasks in the scope of a report.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use crate::core::{Target, Waits};
use crate::report::Report;
use crate::shell::lender::Lenders;
use crate::shell::shared::Shared;

/// The tasks in the scope of a report. Returned by [`Governor::report`](crate::Governor::report). Cheap to clone.
#[derive(Debug, Clone)]
pub struct Run {
    shared: Arc<Shared>,
}

impl Run {
    pub(crate) fn new(shared: Arc<Shared>) -> Run {
        Run { shared }
    }

    /// Waits until every task in scope has started, or ended without starting, and returns the report at that moment.
    /// The monkey's victim and its successors are excluded from the wait.
    ///
    /// # Cancel safety
    /// Safe: dropping the future has no effect on the run.
    pub async fn started(&self) -> Report {
        self.wait(Waits::Started).await
    }

    /// Waits until all tasks in scope have ended and returns the report. Resolves at once if they already have.
    ///
    /// A governed task that awaits this is excluded from the wait, with its successors; the report shows it as running.
    /// It lends its slot while it waits.
    ///
    /// The report of a large run is made in pieces, with a tick of the event loop between them: a million tasks take about a
    /// second, in which neither the loop nor the governor's lock is kept.
    ///
    /// # Cancel safety
    /// Safe: dropping the future has no effect on the run.
    pub async fn finished(&self) -> Report {
        self.wait(Waits::Finished).await
    }

    /// Returns the report as of now, without waiting: about a microsecond a task. Other threads get the governor's lock in
    /// between; what happens meanwhile is left out.
    pub fn current(&self) -> Report {
        Report::at_once(&self.shared)
    }

    async fn wait(&self, waits: Waits) -> Report {
        let mut lenders = Lenders::new(Arc::downgrade(&self.shared), Target::Run(waits));
        // Made before the look, so that what happens between is not missed.
        let mut changed = self.shared.run_changed.wait();
        poll_fn(|cx| {
            loop {
                // No wait for the run closes a cycle: who waits for its end is left out of it.
                drop(lenders.polled(cx.waker()));
                if self.shared.lock().core.has_come(waits) {
                    // Who waited stays left out: for others too the run is over.
                    lenders.arrived();
                    return Poll::Ready(());
                }
                ready!(Pin::new(&mut changed).poll(cx));
                changed = self.shared.run_changed.wait();
            }
        })
        .await;
        Report::in_ticks(&self.shared).await
    }
}
