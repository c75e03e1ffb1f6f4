//! Moments that are too far away to be told.

use std::time::Duration;

use tokio::time::Instant;

/// What no clock can show is taken as this far away, as tokio does.
const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);

pub(crate) fn later(from: Instant, by: Duration) -> Instant {
    from.checked_add(by).unwrap_or_else(|| from + FAR)
}
