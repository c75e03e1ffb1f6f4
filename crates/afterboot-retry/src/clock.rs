//! The monotonic clock that limits are measured by, injected so that tests own it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A monotonic clock: time since an origin of its own. Cheap to clone; clones share the origin.
///
/// Limits are evaluated with the time that passed on this clock, never with the sum of the requested delays: a timer that
/// fires late, for instance on a machine that was suspended, counts for as long as it took. Setting the wall clock has no
/// effect.
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
    /// Creates a clock from a function. It must not run backwards; if it does, the elapsed time counts as zero.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// Returns the machine's monotonic clock. Whether it advances while the machine is suspended depends on the platform
    /// (it does not on Linux).
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock that decisions are given where there is no runtime"
    )]
    pub fn monotonic() -> Clock {
        let origin = std::time::Instant::now();
        Clock::new(move || origin.elapsed())
    }

    /// Returns tokio's clock, which tests can pause. [`RetryLoop`](crate::RetryLoop) uses it.
    #[cfg(feature = "tokio")]
    pub fn tokio() -> Clock {
        let origin = tokio::time::Instant::now();
        Clock::new(move || origin.elapsed())
    }

    /// Returns the time since the clock's origin.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
