//! The run that a report speaks of, while it goes on.

use std::sync::Arc;

use crate::context;
use crate::report::Report;
use crate::scheduler::Waits;
use crate::shared::Shared;
use crate::table::Id;

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
    pub fn so_far(&self) -> Report {
        Report::of(&self.shared)
    }

    async fn wait(&self, waits: Waits) -> Report {
        let mut left_out = LeftOut { run: self, task: None };
        loop {
            // Made before the look, so that what happens between is not missed.
            let changed = self.shared.run_changed.wait();
            if left_out.task.is_none() {
                left_out.task = context::task_of(Arc::as_ptr(&self.shared));
            }
            let come = self.shared.apply(|core, _, actions| {
                if let Some(id) = left_out.task {
                    core.awaits_the_run(id, actions);
                    if waits == Waits::Finished {
                        actions.announce |= core.awaits_the_end(id);
                    }
                }
                core.has_come(waits)
            });
            if come {
                // It stays left out: for others too the run is over.
                if let Some(id) = left_out.task.take() {
                    self.shared.apply(|core, _, _| core.wait_ends(id, id));
                }
                return Report::of(&self.shared);
            }
            changed.await;
        }
    }
}

/// The task that is left out of what it waits for, until it gives up.
struct LeftOut<'a> {
    run: &'a Run,
    task: Option<Id>,
}

impl Drop for LeftOut<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.task {
            self.run.shared.apply(|core, _, _| {
                core.wait_ends(id, id);
                core.awaits_the_end_no_more(id);
            });
        }
    }
}
