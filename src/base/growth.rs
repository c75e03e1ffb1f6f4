//! Does something take time in proportion to its size? Measured at two sizes in one run, so it does not matter how fast the
//! machine is. For tests.

use std::time::{Duration, Instant};

/// About 4 where it is linear, 16 where it is quadratic.
const TOO_MUCH: f64 = 10.0;

/// How long this takes.
#[expect(clippy::disallowed_methods, reason = "how long code takes on this machine is what is measured")]
pub(crate) fn timed(run: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    run();
    begun.elapsed()
}

/// `run` gives how long it took at a size. Others use the machine too, so the shortest of several times counts, and one good
/// comparison is enough: what is quadratic has none.
///
/// # Panics
/// Four times the size takes ten times as long or longer.
#[track_caller]
pub(crate) fn assert_grows_linearly(size: usize, mut run: impl FnMut(usize) -> Duration) {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let [small, large] = [size, 4 * size].map(|size| (0..3).map(|_| run(size)).min().unwrap_or_default());
        let growth = large.as_secs_f64() / small.as_secs_f64().max(1e-9);
        if growth < TOO_MUCH {
            return;
        }
        seen.push(growth);
    }
    panic!("four times {size} takes {seen:.1?} times as long");
}
