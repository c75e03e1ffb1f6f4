//! Moments, passed in by the caller: the engine has no clock.

use std::time::Duration;

/// Time since the beacon was built, on tokio's clock.
pub(crate) type Moment = Duration;

/// Wall clock and monotonic clock at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Since the beacon was built, on tokio's clock.
    pub(crate) at: Moment,
    /// Unix milliseconds. A stamp: no age is computed from it, as it may be set.
    pub(crate) wall: u64,
    /// Milliseconds since the machine started.
    pub(crate) mono: u64,
}

impl Now {
    /// When what lives for this long from now on expires.
    pub(crate) fn after(self, life: Duration) -> u64 {
        self.mono.saturating_add(u64::try_from(life.as_millis()).unwrap_or(u64::MAX))
    }
}
