//! Moments beyond the range of the clock.

use std::time::Duration;

use tokio::time::Instant;

/// A moment that the clock cannot represent is replaced by one this far away, as in tokio.
const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);

pub(crate) fn later(from: Instant, by: Duration) -> Instant {
    from.checked_add(by).unwrap_or_else(|| from + FAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R5: no process runs that long.
    #[tokio::test(start_paused = true)]
    async fn a_moment_beyond_the_clock_is_decades_away() {
        let now = Instant::now();
        let decade = Duration::from_secs(10 * 365 * 86_400);
        assert!(later(now, Duration::MAX) > now + decade);
        assert_eq!(later(now, decade), now + decade);
    }
}
