//! tokio's timers.

use std::time::Duration;

/// Whether a timer for `at` is seen when the loop comes round at `now`: tokio's timers have steps of a millisecond
/// and round up.
pub(super) fn fires(at: Duration, now: Duration) -> bool {
    step_after(at) <= now.as_millis()
}

fn step_after(at: Duration) -> u128 {
    at.saturating_add(Duration::from_nanos(999_999)).as_millis()
}

/// When a loop that comes to rest at `now` is woken by a timer for `at`: it sleeps for whole milliseconds, counted
/// from the last one that has passed.
pub(super) fn wakes_at(at: Duration, now: Duration) -> Duration {
    let steps = step_after(at).saturating_sub(now.as_millis());
    now.saturating_add(Duration::from_millis(u64::try_from(steps).unwrap_or(u64::MAX)))
}
