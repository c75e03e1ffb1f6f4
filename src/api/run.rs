//! The run that a report speaks of, while it goes on.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use crate::core::{Target, Waits};
use crate::report::Report;
use crate::shell::lender::Lenders;
use crate::shell::shared::Shared;

/// The tasks in the scope of a report; [`Governor::report`](crate::Governor::report) gives it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Run {
    shared: Arc<Shared>,
}

impl Run {
    pub(crate) fn new(shared: Arc<Shared>) -> Run {
        Run { shared }
    }

    /// Resolves when the last task in scope has started or will never start, with the report as it stands
    /// then. The monkey's victim and what comes after it are not waited for.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost when the future is dropped.
    pub async fn started(&self) -> Report {
        self.wait(Waits::Started).await
    }

    /// Resolves when all tasks in scope have ended, with the report. At once if they have.
    ///
    /// A governed task that awaits this is left out of what it waits for, with what comes after it; the report shows it
    /// as running. Its slot is lent meanwhile.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost when the future is dropped.
    pub async fn finished(&self) -> Report {
        self.wait(Waits::Finished).await
    }

    /// The report as it stands now.
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
