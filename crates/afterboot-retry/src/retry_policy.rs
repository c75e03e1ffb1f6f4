//! Everything that a retry is told beforehand.

use std::time::Duration;

use crate::clock::Clock;
use crate::limits::Limits;
use crate::policy::BackoffPolicy;
use crate::random::JitterRng;
use crate::retry::Retry;

/// Everything that a retry is told beforehand: how long to wait, when to stop, how to spread what a server asks for.
///
/// ```
/// use afterboot_retry::{Decision, Failure, Limits, RetryPolicy};
///
/// let policy = RetryPolicy::default().limits(Limits::default().max_retries(1));
/// let mut retry = policy.start();
/// let Decision::Retry(wait) = retry.decide(Failure::transient()) else { panic!("the first retry is allowed") };
/// println!("try again in {:?}", wait.after);
/// let Decision::GiveUp(given_up) = retry.decide(Failure::transient()) else { panic!("a second is not") };
/// assert_eq!(given_up.to_string(), "gave up after 1 retry: total-retries");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How long each retry waits.
    pub backoff: BackoffPolicy,
    /// When to stop.
    pub limits: Limits,
    /// A `Retry-After` is waited in full plus a draw from zero to this, so that clients told the same do not come back
    /// together. Default: 3 s, at which a thousand clients come back at about 45 a 100 ms: no busier than under the
    /// default schedule.
    #[cfg_attr(feature = "serde", serde(rename = "retry_after_spread_ms", with = "crate::millis"))]
    pub retry_after_spread: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            backoff: BackoffPolicy::default(),
            limits: Limits::default(),
            retry_after_spread: Duration::from_secs(3),
        }
    }
}

impl RetryPolicy {
    /// How long each retry waits.
    pub fn backoff(mut self, backoff: BackoffPolicy) -> RetryPolicy {
        self.backoff = backoff;
        self
    }

    /// When to stop.
    pub fn limits(mut self, limits: Limits) -> RetryPolicy {
        self.limits = limits;
        self
    }

    /// The width of the spread on top of a `Retry-After`.
    pub fn retry_after_spread(mut self, spread: Duration) -> RetryPolicy {
        self.retry_after_spread = spread;
        self
    }

    /// Begins: the time counts from here. Machine's monotonic clock, system's randomness.
    pub fn start(&self) -> Retry {
        self.start_with(Clock::monotonic(), JitterRng::from_system())
    }

    /// Begins with a clock and a source of jitter of the caller's.
    pub fn start_with(&self, clock: Clock, rng: JitterRng) -> Retry {
        Retry::new(self.clone(), clock, rng)
    }
}

impl From<BackoffPolicy> for RetryPolicy {
    /// With the default limits.
    fn from(backoff: BackoffPolicy) -> RetryPolicy {
        RetryPolicy::default().backoff(backoff)
    }
}
