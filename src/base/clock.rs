//! The two clocks: tokio's, on which everything is scheduled, and the machine's, for polls that burn CPU.

use std::num::NonZeroU64;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

/// A moment on the governor's clock: nanoseconds of tokio time since `build()`.
///
/// One nanosecond is added inside, so that `Option<Stamp>` takes eight bytes: a task's record holds four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stamp(NonZeroU64);

impl Stamp {
    /// Saturates: a moment 584 years away is "never" for a boot.
    pub(crate) fn from_duration(since_build: Duration) -> Stamp {
        let nanos = u64::try_from(since_build.as_nanos()).unwrap_or(u64::MAX);
        Stamp(NonZeroU64::MIN.saturating_add(nanos))
    }

    pub(crate) fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0.get() - 1)
    }

    pub(crate) fn after(self, rest: Duration) -> Stamp {
        Stamp::from_duration(self.as_duration().saturating_add(rest))
    }

    /// No sooner than `build()`.
    pub(crate) fn before(self, span: Duration) -> Stamp {
        Stamp::from_duration(self.as_duration().saturating_sub(span))
    }

    /// Zero where `earlier` is later.
    pub(crate) fn since(self, earlier: Stamp) -> Duration {
        self.as_duration().saturating_sub(earlier.as_duration())
    }
}

impl std::fmt::Debug for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_duration())
    }
}

/// tokio's clock, read as stamps since `build()`: that of the governor's runtime, wherever it is read. A thread outside
/// would read the machine's clock, one inside another runtime that one's, and either may be paused.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    origin: Instant,
    runtime: Handle,
}

impl Clock {
    pub(crate) fn start(runtime: Handle) -> Clock {
        Clock { origin: now_of(&runtime), runtime }
    }

    pub(crate) fn now(&self) -> Stamp {
        self.stamp(now_of(&self.runtime))
    }

    /// The same for those who are polled by the governor's own runtime, and need not ask where they are.
    pub(crate) fn now_inside(&self) -> Stamp {
        self.stamp(Instant::now())
    }

    /// A moment on the machine's clock; none while tokio's does not run with it, as in a test with a paused clock.
    pub(crate) fn real(&self, at: std::time::Instant) -> Option<Stamp> {
        const APART: Duration = Duration::from_millis(5);
        let before = Stopwatch::start().0;
        let here = (self.origin + self.now().as_duration()).into_std();
        let after = Stopwatch::start().0;
        (before <= here + APART && here <= after + APART).then(|| self.stamp(Instant::from_std(at)))
    }

    /// A moment before `build()` is taken as that.
    pub(crate) fn stamp(&self, at: Instant) -> Stamp {
        Stamp::from_duration(at.saturating_duration_since(self.origin))
    }

    /// A stamp too far away for the platform's clock is taken as thirty years, as tokio does.
    pub(crate) fn instant(&self, at: Stamp) -> Instant {
        const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
        self.origin.checked_add(at.as_duration()).unwrap_or_else(|| self.origin + FAR)
    }
}

fn now_of(runtime: &Handle) -> Instant {
    match Handle::try_current() {
        Ok(here) if here.id() == runtime.id() => Instant::now(),
        // A thread that comes to its end cannot enter any more.
        Err(error) if error.is_thread_local_destroyed() => Instant::now(),
        Ok(_) | Err(_) => {
            let _entered = runtime.enter();
            Instant::now()
        }
    }
}

/// The machine's own clock. Only for what paused time must not touch: how long one poll held its worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "the length of one poll is real time, also under a paused clock"
    )]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(std::time::Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_gives_back_the_duration_it_was_made_of() {
        for nanos in [0, 1, 999, 1_000_000_007, u64::MAX - 1] {
            let since_build = Duration::from_nanos(nanos);
            assert_eq!(Stamp::from_duration(since_build).as_duration(), since_build);
        }
        assert_eq!(Stamp::from_duration(Duration::ZERO).as_duration(), Duration::ZERO);
    }

    #[test]
    fn adding_saturates_and_subtracting_stops_at_zero() {
        let end = Stamp::from_duration(Duration::MAX);
        assert_eq!(end.after(Duration::MAX), end);
        assert_eq!(Stamp::from_duration(Duration::ZERO).since(end), Duration::ZERO);
        assert_eq!(std::mem::size_of::<Option<Stamp>>(), 8);
    }
}
