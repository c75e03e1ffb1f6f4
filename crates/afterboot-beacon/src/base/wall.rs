//! The system's wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn system_ms() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a stamp on an event, which nothing is scheduled by")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
