//! The decision: another try, after how long, or no more, and why.

use std::time::Duration;

use crate::budget::RetryBudget;
use crate::clock::Clock;
use crate::limits::{ElapsedFrom, GiveUpReason, Limits};
use crate::policy::BackoffPolicy;
use crate::random::JitterRng;

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
        let created = clock.now();
        Retry {
            policy: self.clone(),
            clock,
            rng,
            budget: None,
            created,
            deadline: None,
            first_failure: None,
            last_progress: None,
            delay_retries: 0,
            retries: 0,
            previous: None,
        }
    }
}

impl From<BackoffPolicy> for RetryPolicy {
    /// With the default limits.
    fn from(backoff: BackoffPolicy) -> RetryPolicy {
        RetryPolicy::default().backoff(backoff)
    }
}

/// What is known of a failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    pub(crate) retryable: bool,
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    /// Another try may mend it, and doing the work twice does no harm.
    pub fn transient() -> Failure {
        Failure { retryable: true, retry_after: None }
    }

    /// Another try will not mend it, or must not be made.
    pub fn permanent() -> Failure {
        Failure { retryable: false, retry_after: None }
    }

    /// Transient where the predicate is true. An uploader's is "are we online?".
    pub fn transient_if(predicate: bool) -> Failure {
        Failure { retryable: predicate, retry_after: None }
    }

    /// Whether another try may mend it.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// What the server asked for.
    pub fn asked(&self) -> Option<Duration> {
        self.retry_after
    }

    /// What the server asked for, if it did; see [`parse_retry_after`](crate::parse_retry_after).
    pub fn retry_after(mut self, asked: impl Into<Option<Duration>>) -> Failure {
        self.retry_after = asked.into();
        self
    }
}

/// What to do after a failed try.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "nobody waits or gives up unless the caller does"]
pub enum Decision {
    /// Wait, then try again.
    Retry(Wait),
    /// No more.
    GiveUp(GivenUp),
}

/// How long to wait before which retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Wait {
    /// The time to wait.
    #[cfg_attr(feature = "serde", serde(rename = "after_ms", with = "crate::millis"))]
    pub after: Duration,
    /// What of it the server asked for; the rest is spread.
    #[cfg_attr(feature = "serde", serde(rename = "asked_ms", with = "crate::millis::option"))]
    pub asked: Option<Duration>,
    /// The number of this retry since the last progress, from 1. It picks the delay.
    pub delay_retry: u32,
    /// The number of this retry in all, from 1.
    pub retry: u32,
}

/// Why there is no further try, and what was spent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GivenUp {
    /// Which limit said no.
    pub reason: GiveUpReason,
    /// Retries since the last progress.
    pub delay_retries: u32,
    /// Retries in all.
    pub retries: u32,
    /// Time, from where [`Limits::elapsed_from`](crate::Limits::elapsed_from) says.
    #[cfg_attr(feature = "serde", serde(rename = "elapsed_ms", with = "crate::millis"))]
    pub elapsed: Duration,
}

impl std::fmt::Display for GivenUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.retries == 1 { "retry" } else { "retries" };
        write!(f, "gave up after {} {plural}: {}", self.retries, self.reason)
    }
}

/// One operation's retries: two counters, a clock and a source of jitter. Never sleeps.
///
/// As an `Iterator<Item = Duration>` it gives the delay before each retry and ends where it gives up, which is what
/// `backon` and `tokio-retry2` take.
///
/// A clone starts from the same counters and draws its own jitter.
#[derive(Debug, Clone)]
pub struct Retry {
    policy: RetryPolicy,
    clock: Clock,
    rng: JitterRng,
    budget: Option<RetryBudget>,
    created: Duration,
    /// Set by a loop that has a time of its own.
    deadline: Option<Duration>,
    first_failure: Option<Duration>,
    last_progress: Option<Duration>,
    /// Picks the delay. Reset by progress.
    delay_retries: u32,
    /// Never reset.
    retries: u32,
    previous: Option<Duration>,
}

impl Retry {
    /// Pays for each retry out of a budget that others share.
    pub fn budget(mut self, budget: RetryBudget) -> Retry {
        self.budget = Some(budget);
        self
    }

    /// The work moved on (a chunk was stored, say): the next delay is the first again. The total number of retries and,
    /// unless the time counts from the last progress, the total time go on, so a dependency that flaps for hours still
    /// ends.
    pub fn on_progress(&mut self) {
        self.on_progress_at(self.clock.now());
    }

    pub(crate) fn on_progress_at(&mut self, at: Duration) {
        self.delay_retries = 0;
        self.previous = None;
        self.last_progress = Some(at);
    }

    /// The work is done: gives the budget its share.
    pub fn on_success(&mut self) {
        if let Some(budget) = &self.budget {
            budget.deposit();
        }
    }

    /// A try failed. What now?
    pub fn decide(&mut self, failure: Failure) -> Decision {
        let now = self.clock.now();
        self.first_failure.get_or_insert(now);
        let elapsed = self.elapsed_at(now);
        match self.next_wait(failure, elapsed, self.until_deadline(now)) {
            Err(reason) => Decision::GiveUp(self.given_up(reason)),
            Ok((after, asked)) => {
                self.delay_retries = self.delay_retries.saturating_add(1);
                self.retries = self.retries.saturating_add(1);
                if asked.is_none() {
                    self.previous = Some(after);
                }
                let (delay_retry, retry) = (self.delay_retries, self.retries);
                Decision::Retry(Wait { after, asked, delay_retry, retry })
            }
        }
    }

    fn next_wait(
        &mut self,
        failure: Failure,
        elapsed: Duration,
        until_deadline: Duration,
    ) -> Result<(Duration, Option<Duration>), GiveUpReason> {
        if !failure.retryable {
            return Err(GiveUpReason::Predicate);
        }
        let limits = &self.policy.limits;
        if let Some(reason) = limits.reached(self.delay_retries, self.retries, elapsed) {
            return Err(reason);
        }
        if until_deadline.is_zero() {
            return Err(GiveUpReason::Timeout { next_sleep: None });
        }
        let n = self.delay_retries.saturating_add(1);
        let own =
            self.policy.backoff.delay(n, self.previous, &mut self.rng).ok_or(GiveUpReason::TableEnded)?;
        let after = match failure.retry_after {
            None => own,
            Some(asked) if limits.too_long_asked(asked, elapsed) => {
                return Err(GiveUpReason::RetryAfter { asked });
            }
            Some(asked) => asked.saturating_add(self.rng.within(self.policy.retry_after_spread)),
        };
        let past_limit = limits.forbids_sleep(after, elapsed);
        if past_limit || after > until_deadline {
            let next_sleep = Some(after);
            return Err(match failure.retry_after {
                Some(asked) => GiveUpReason::RetryAfter { asked },
                None if past_limit => GiveUpReason::TotalTime { next_sleep },
                None => GiveUpReason::Timeout { next_sleep },
            });
        }
        // Last, so that nothing is taken from the others for a retry that is not made.
        if let Some(budget) = &self.budget {
            budget.withdraw().map_err(|refilled_in| GiveUpReason::Budget { refilled_in })?;
        }
        Ok((after, failure.retry_after))
    }

    /// The account of this retry, had it to end now for this reason.
    pub fn given_up(&self, reason: GiveUpReason) -> GivenUp {
        GivenUp { reason, delay_retries: self.delay_retries, retries: self.retries, elapsed: self.elapsed() }
    }

    /// Retries since the last progress.
    pub fn delay_retries(&self) -> u32 {
        self.delay_retries
    }

    /// Retries in all.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Time, from where [`Limits::elapsed_from`](crate::Limits::elapsed_from) says.
    pub fn elapsed(&self) -> Duration {
        self.elapsed_at(self.clock.now())
    }

    /// `Duration::MAX` where there is none.
    fn until_deadline(&self, now: Duration) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_sub(now))
    }

    fn elapsed_at(&self, now: Duration) -> Duration {
        let from = match self.policy.limits.elapsed_from {
            ElapsedFrom::Creation => self.created,
            ElapsedFrom::FirstFailure => self.first_failure.unwrap_or(now),
            ElapsedFrom::LastProgress => self.last_progress.unwrap_or(self.created),
        };
        now.saturating_sub(from)
    }
}

/// What a loop needs to know besides.
#[cfg(feature = "tokio")]
impl Retry {
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn end_in(&mut self, time: Duration) {
        self.deadline = Some(self.clock.now().saturating_add(time));
    }

    /// The time that is left for waits, and the reason once it is over. `None` for no limit.
    pub(crate) fn time_left(&self) -> Option<(Duration, GiveUpReason)> {
        let limit =
            self.policy.limits.max_elapsed.map(|most| {
                (most.saturating_sub(self.elapsed()), GiveUpReason::TotalTime { next_sleep: None })
            });
        let deadline = self
            .deadline
            .map(|_| (self.until_deadline(self.clock.now()), GiveUpReason::Timeout { next_sleep: None }));
        limit.into_iter().chain(deadline).min_by_key(|(left, _)| *left)
    }

    /// The time that is left for everything, a running attempt included. `Duration::MAX` for no limit.
    pub(crate) fn time_left_for_attempt(&self) -> Duration {
        self.until_deadline(self.clock.now())
    }
}

impl Iterator for Retry {
    type Item = Duration;

    /// Takes every failure as transient.
    fn next(&mut self) -> Option<Duration> {
        match self.decide(Failure::transient()) {
            Decision::Retry(wait) => Some(wait.after),
            Decision::GiveUp(_) => None,
        }
    }
}
