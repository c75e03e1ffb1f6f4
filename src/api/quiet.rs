//! The application's own word on what froze it.

use std::sync::Arc;
use std::time::Duration;

use crate::shell::shared::Shared;

/// The quiet window of one governor; [`Governor::quiet`](crate::Governor::quiet) gives it.
#[derive(Debug, Clone)]
pub struct Quiet {
    shared: Arc<Shared>,
}

impl Quiet {
    pub(crate) fn new(shared: Arc<Shared>) -> Quiet {
        Quiet { shared }
    }

    /// Records a long task that ends now, as if the probe had seen it: it restarts the window and stands in the
    /// report. Shorter ones than 50 ms are not long tasks and are ignored.
    ///
    /// For tests under a paused clock, in which nothing takes real time, and for work that freezes a user
    /// without keeping a worker's loop.
    pub fn record(&self, name: impl AsRef<str>, length: Duration) {
        let name = name.as_ref();
        self.shared.apply(|core, now, _| core.record_long_task(name.into(), length, now));
    }
}
