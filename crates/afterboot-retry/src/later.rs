//! Moments beyond the range of the clock.

use std::time::Duration;

use tokio::time::Instant;

/// A moment that the clock cannot represent is replaced by one this far away, as in tokio.
const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);

pub(crate) fn later(from: Instant, by: Duration) -> Instant {
    from.checked_add(by).unwrap_or_else(|| from + FAR)
}
