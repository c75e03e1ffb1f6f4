//! The run that a report speaks of, while it goes on.

use std::sync::Arc;

use crate::context;
use crate::report::Report;
use crate::scheduler::Waits;
use crate::shared::Shared;

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
    /// A governed task that awaits this is left out of what it waits for; the report shows it as running.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost when the future is dropped.
    pub async fn finished(&self) -> Report {
        self.wait(Waits::Finished).await
    }

    /// The report as it stands now.
    pub fn so_far(&self) -> Report {
        Report::of(&self.shared)
    }

    async fn wait(&self, waits: Waits) -> Report {
        loop {
            // Made before the look, so that what happens between is not missed.
            let changed = self.shared.run_changed.wait();
            let inside = context::task_of(Arc::as_ptr(&self.shared)).filter(|_| waits == Waits::Finished);
            let come = self.shared.apply(|core, _, actions| {
                if let Some(id) = inside {
                    actions.announce |= core.awaits_the_end(id);
                }
                core.has_come(waits)
            });
            if come {
                return Report::of(&self.shared);
            }
            changed.await;
        }
    }
}
