//! The source of jitter: seeded, and never the same for two clones.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng, TryRng};

/// The source of jitter.
///
/// **A clone draws its own jitter.** Two retries that are copies of each other must not retry together, so a clone is a new
/// stream, derived from the seed and the number of streams before it. The same seed and the same order of clones give the
/// same draws, within one version of this crate.
#[derive(Debug)]
pub struct JitterRng {
    source: Source,
}

enum Source {
    Stream { rng: Box<StdRng>, family: Arc<Family> },
    Constant(f64),
}

/// What all clones of one seed share.
#[derive(Debug)]
struct Family {
    seed: u64,
    /// Streams taken so far. Atomic because `Clone` has only `&self`, and clones live on any thread.
    streams: AtomicU64,
}

impl JitterRng {
    /// Creates a source that is seeded by the operating system.
    pub fn from_system() -> JitterRng {
        JitterRng::seeded(SysRng.try_next_u64().unwrap_or_else(|_| {
            // Without entropy every process of a fleet would otherwise share one stream: what jitter is there to
            // prevent. The standard library's hash keys differ from process to process by other means.
            RandomState::new().build_hasher().finish()
        }))
    }

    /// Creates a source with a seed: the same seed gives the same draws.
    pub fn seeded(seed: u64) -> JitterRng {
        JitterRng::stream(Arc::new(Family { seed, streams: AtomicU64::new(0) }))
    }

    /// Creates a source that always draws `unit`, clamped to 0..=1 (NaN is 0), for tests of exact sequences. 0.5 is the
    /// middle of [`Jitter::Fixed`](crate::Jitter::Fixed), that is no jitter. Clones draw the same.
    pub fn constant(unit: f64) -> JitterRng {
        JitterRng { source: Source::Constant(if unit >= 0.0 { unit.min(1.0) } else { 0.0 }) }
    }

    fn stream(family: Arc<Family>) -> JitterRng {
        let number = family.streams.fetch_add(1, Ordering::Relaxed);
        let rng = Box::new(StdRng::seed_from_u64(mix(family.seed ^ mix(number))));
        JitterRng { source: Source::Stream { rng, family } }
    }

    /// Draws from [0, 1).
    pub fn unit(&mut self) -> f64 {
        match &mut self.source {
            Source::Stream { rng, .. } => rng.random(),
            Source::Constant(unit) => *unit,
        }
    }

    /// Draws from [0, width).
    pub fn within(&mut self, width: Duration) -> Duration {
        Duration::try_from_secs_f64(width.as_secs_f64() * self.unit()).unwrap_or(width).min(width)
    }
}

impl Default for JitterRng {
    /// [`JitterRng::from_system`].
    fn default() -> JitterRng {
        JitterRng::from_system()
    }
}

impl Clone for JitterRng {
    /// Returns a new stream; see the documentation of the type.
    fn clone(&self) -> JitterRng {
        match &self.source {
            Source::Stream { family, .. } => JitterRng::stream(family.clone()),
            Source::Constant(unit) => JitterRng { source: Source::Constant(*unit) },
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Stream { family, .. } => write!(f, "Stream {{ seed: {} }}", family.seed),
            Source::Constant(unit) => write!(f, "Constant({unit})"),
        }
    }
}

/// splitmix64's finaliser: neighbouring numbers give unrelated seeds.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_replays_and_clones_differ_from_it_and_from_each_other() {
        let draws = |rng: &mut JitterRng| -> Vec<u64> { (0..4).map(|_| rng.unit().to_bits()).collect() };
        let mut first = JitterRng::seeded(7);
        let (mut clone, mut other) = (first.clone(), first.clone());
        let mut grandchild = clone.clone();
        let all = [draws(&mut first), draws(&mut clone), draws(&mut other), draws(&mut grandchild)];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b), "two streams of one seed are the same");
        }
        let again = JitterRng::seeded(7);
        assert_eq!(draws(&mut again.clone()), all[1]);
    }

    #[test]
    fn a_draw_stays_within_its_width() {
        let mut rng = JitterRng::seeded(1);
        for width in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(3), Duration::MAX] {
            assert!((0..1000).all(|_| rng.within(width) <= width));
        }
        assert_eq!(JitterRng::constant(f64::NAN).unit(), 0.0);
        assert_eq!(JitterRng::constant(7.0).within(Duration::from_secs(2)), Duration::from_secs(2));
    }
}
