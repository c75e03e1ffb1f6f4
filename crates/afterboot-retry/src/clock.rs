//! The monotonic clock that limits are measured by, injected so that tests own it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A monotonic clock: time since an origin of its own. Cheap to clone; clones share the origin.
///
/// Limits are judged by what this clock says has passed, never by adding up the delays that were asked for: a timer
/// that fires late, on a machine that was suspended say, counts as long as it took. The wall clock plays no part, so
/// stepping it changes nothing.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::Arc;
/// use std::time::Duration;
/// use afterboot_retry::Clock;
///
/// let millis = Arc::new(AtomicU64::new(0));
/// let hand = millis.clone();
/// let clock = Clock::new(move || Duration::from_millis(millis.load(Ordering::Relaxed)));
/// hand.store(250, Ordering::Relaxed);
/// assert_eq!(clock.now(), Duration::from_millis(250));
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// A clock of the caller's. It must not run backwards; if it does, the time that passed counts as zero.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// The machine's monotonic clock. Whether it goes on while the machine is suspended is the platform's choice (it
    /// does not on Linux).
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock that decisions are given where there is no runtime"
    )]
    pub fn monotonic() -> Clock {
        let origin = std::time::Instant::now();
        Clock::new(move || origin.elapsed())
    }

    /// tokio's clock, which a test may pause. [`RetryLoop`](crate::RetryLoop) uses it.
    #[cfg(feature = "tokio")]
    pub fn tokio() -> Clock {
        let origin = tokio::time::Instant::now();
        Clock::new(move || origin.elapsed())
    }

    /// Time since the clock's origin.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
