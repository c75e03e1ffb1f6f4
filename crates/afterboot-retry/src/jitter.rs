//! Jitter: spreads delays, so that clients that failed together do not retry together.

use std::time::Duration;

use crate::random::JitterRng;

/// How a delay is spread. Applied after the cap, so the cap is a hard bound and draws do not accumulate at it.
///
/// The names are the field's: *full*, *equal* and *decorrelated* jitter are those of the AWS Architecture Blog
/// ("Exponential Backoff And Jitter").
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Jitter {
    /// The delay times a number drawn from `[lo, hi)`, where 0 ≤ lo ≤ hi ≤ 1 and hi > 0.
    Scale {
        /// The smallest factor.
        lo: f64,
        /// The largest factor.
        hi: f64,
    },
    /// A draw from `[first, min(max, 3 · previous))`, where `first` is the schedule's first delay and also what stands
    /// for `previous` the first time. The schedule's growth plays no part.
    Decorrelated,
    /// The delay plus or minus half of `width`: the jitter of a video uploader, kept for comparison. It does not grow with
    /// the delay, so clients that failed together retry nearly together. May exceed the cap by half of `width`; never
    /// less than zero.
    Fixed {
        /// The full width of the spread. At most the policy's `max_delay`.
        #[cfg_attr(feature = "serde", serde(rename = "width_ms", with = "crate::millis"))]
        width: Duration,
    },
}

impl Jitter {
    /// No jitter: the delay itself. Clients that failed together retry together.
    pub const NONE: Jitter = Jitter::Scale { lo: 1.0, hi: 1.0 };
    /// Full jitter: from zero to the delay.
    pub const FULL: Jitter = Jitter::Scale { lo: 0.0, hi: 1.0 };
    /// Equal jitter: from half the delay to the delay.
    pub const EQUAL: Jitter = Jitter::Scale { lo: 0.5, hi: 1.0 };

    /// Spreads a delay that is already capped. `first` is the schedule's first.
    pub(crate) fn spread(
        self,
        delay: Duration,
        first: Duration,
        previous: Option<Duration>,
        max_delay: Duration,
        rng: &mut JitterRng,
    ) -> Duration {
        match self {
            Jitter::Scale { lo, hi } => {
                let part = lo + (hi - lo) * rng.unit();
                Duration::try_from_secs_f64(delay.as_secs_f64() * part).unwrap_or(delay).min(delay)
            }
            Jitter::Decorrelated => {
                // A policy changed in flight may be handed a `previous` from before: the bounds hold all the same.
                let high = previous.unwrap_or(first).saturating_mul(3).min(max_delay).max(first);
                first.saturating_add(rng.within(high - first))
            }
            Jitter::Fixed { width } => delay.saturating_add(rng.within(width)).saturating_sub(width / 2),
        }
    }

    pub(crate) fn check(self, first: Option<Duration>, max_delay: Duration, problems: &mut Vec<String>) {
        match self {
            // NaN fails every comparison.
            Jitter::Scale { lo, hi } if !(0.0 <= lo && lo <= hi && hi <= 1.0 && hi > 0.0) => {
                problems.push(format!("jitter.scale: lo {lo}, hi {hi}; allowed: 0 <= lo <= hi <= 1 and hi > 0"));
            }
            Jitter::Decorrelated if first == Some(Duration::ZERO) => problems.push(
                "jitter.decorrelated: the first delay is 0, and so would be all; allowed: a first delay above 0"
                    .to_owned(),
            ),
            Jitter::Fixed { width } if width > max_delay => {
                problems.push(format!("jitter.fixed.width: {width:?}; allowed: up to max_delay, {max_delay:?}"));
            }
            _ => {}
        }
    }
}

impl Default for Jitter {
    /// `Scale { lo: 0.3, hi: 1.0 }`: see [`BackoffPolicy`](crate::BackoffPolicy).
    fn default() -> Jitter {
        Jitter::Scale { lo: 0.3, hi: 1.0 }
    }
}
