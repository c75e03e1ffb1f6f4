//! Long tasks that the application reports itself.

use std::sync::Arc;
use std::time::Duration;

use crate::shell::shared::Shared;

/// Reports long tasks to a governor. Returned by [`Governor::quiet`](crate::Governor::quiet).
#[derive(Debug, Clone)]
pub struct Quiet {
    shared: Arc<Shared>,
}

impl Quiet {
    pub(crate) fn new(shared: Arc<Shared>) -> Quiet {
        Quiet { shared }
    }

    /// Records a long task that ends now, as if the probe had detected it: it restarts the quiet window and is listed
    /// in the report. Lengths below 50 ms are ignored.
    ///
    /// For tests under a paused clock, in which no poll takes real time, and for work that blocks the user without
    /// blocking a worker.
    pub fn record(&self, name: impl AsRef<str>, length: Duration) {
        let name = name.as_ref();
        self.shared.apply(|core, now, _| core.record_long_task(name.into(), length, now));
    }
}
