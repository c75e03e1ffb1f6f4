//! tokio's timers.

use std::time::Duration;

/// A timer of the lane's or of the probe's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timer {
    pub(super) at: Duration,
    /// How long after that the thread woke up in the recording. Else tokio's timers are modelled: they have steps of a
    /// millisecond and round up.
    pub(super) late: Option<Duration>,
}

impl Timer {
    /// Whether it is seen when the loop comes round at `now`.
    pub(super) fn fires(self, now: Duration) -> bool {
        match self.late {
            Some(late) => self.at.saturating_add(late) <= now,
            None => self.step() <= now.as_millis(),
        }
    }

    /// When it wakes a loop that comes to rest at `now`: that sleeps for whole milliseconds, counted from the last one
    /// that has passed.
    pub(super) fn wakes_at(self, now: Duration) -> Duration {
        if let Some(late) = self.late {
            return self.at.saturating_add(late);
        }
        let steps = self.step().saturating_sub(now.as_millis());
        now.saturating_add(Duration::from_millis(u64::try_from(steps).unwrap_or(u64::MAX)))
    }

    fn step(self) -> u128 {
        self.at.saturating_add(Duration::from_nanos(999_999)).as_millis()
    }
}
