//! The settings of a retry.

use std::time::Duration;

use crate::clock::Clock;
use crate::limits::Limits;
use crate::policy::BackoffPolicy;
use crate::random::JitterRng;
use crate::retry::Retry;

/// The settings of a retry: backoff, limits, and the spread of a `Retry-After`.
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
#[must_use]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The delay before each retry.
    pub backoff: BackoffPolicy,
    /// When to give up.
    pub limits: Limits,
    /// A `Retry-After` is waited in full plus a draw from zero to this, so that clients that received the same value do not
    /// retry together. Default: 3 s, which spreads a thousand clients to about 45 requests in 100 ms, no more than the
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
    /// Sets the delay before each retry.
    pub fn backoff(mut self, backoff: BackoffPolicy) -> RetryPolicy {
        self.backoff = backoff;
        self
    }

    /// Sets when to give up.
    pub fn limits(mut self, limits: Limits) -> RetryPolicy {
        self.limits = limits;
        self
    }

    /// Sets the width of the spread that is added to a `Retry-After`.
    pub fn retry_after_spread(mut self, spread: Duration) -> RetryPolicy {
        self.retry_after_spread = spread;
        self
    }

    /// Starts a retry on the machine's monotonic clock, with jitter seeded by the system. Elapsed time is measured from here.
    pub fn start(&self) -> Retry {
        self.start_with(Clock::monotonic(), JitterRng::from_system())
    }

    /// Starts a retry with the given clock and source of jitter.
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
