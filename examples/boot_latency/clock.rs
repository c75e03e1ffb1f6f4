//! Real time, in one place. Everything here is measured or held on purpose, so that the ban on
//! `Instant::now` and `thread::sleep` holds in every other file.

use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "latencies and polls that hold a worker are real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Blocks this thread without using its core: a worker is held, the machine's spare cores stay out of it.
#[expect(clippy::disallowed_methods, reason = "holding the thread is the point")]
pub(crate) fn hold(duration: Duration) {
    std::thread::sleep(duration);
}

/// Blocks this thread and uses its core.
pub(crate) fn burn(duration: Duration) {
    let start = now();
    while start.elapsed() < duration {
        std::hint::spin_loop();
    }
}

/// Blocks this thread until `at`; returns at once when it has passed.
pub(crate) fn hold_until(at: Instant) {
    let left = at.saturating_duration_since(now());
    if !left.is_zero() {
        hold(left);
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
