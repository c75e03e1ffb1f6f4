//! The decision: another attempt and its delay, or giving up and the reason.

use std::time::Duration;

use crate::budget::RetryBudget;
use crate::clock::Clock;
use crate::decision::{Decision, Failure, GivenUp, Wait};
use crate::limits::{ElapsedFrom, GiveUpReason};
use crate::random::JitterRng;
use crate::retry_policy::RetryPolicy;

/// The retries of one operation: two counters, a clock and a source of jitter. Never sleeps.
///
/// As an `Iterator<Item = Duration>` it yields the delay before each retry and ends when it gives up, which is what `backon`
/// and `tokio-retry2` take.
///
/// A clone starts from the same counters and draws its own jitter.
#[derive(Debug, Clone)]
#[must_use = "a retry does nothing until it is asked to decide"]
pub struct Retry {
    policy: RetryPolicy,
    clock: Clock,
    rng: JitterRng,
    budget: Option<RetryBudget>,
    /// The creation, or when a later outage began.
    created: Duration,
    /// When the attempt began whose failure is reported next.
    attempt_since: Duration,
    /// Set by `RetryLoop::timeout`.
    deadline: Option<Duration>,
    first_failure: Option<Duration>,
    last_progress: Option<Duration>,
    /// Selects the delay. Reset by progress.
    delay_retries: u32,
    /// Reset only by a new outage.
    retries: u32,
    previous: Option<Duration>,
}

impl Retry {
    pub(crate) fn new(policy: RetryPolicy, clock: Clock, rng: JitterRng) -> Retry {
        let created = clock.now();
        Retry {
            policy,
            clock,
            rng,
            budget: None,
            created,
            attempt_since: created,
            deadline: None,
            first_failure: None,
            last_progress: None,
            delay_retries: 0,
            retries: 0,
            previous: None,
        }
    }

    /// Withdraws each retry from a shared budget.
    pub fn budget(mut self, budget: RetryBudget) -> Retry {
        self.budget = Some(budget);
        self
    }

    /// Reports progress, for instance a stored chunk: the schedule restarts at its first delay. The total number of retries
    /// is not reset, and neither is the elapsed time unless it is measured from the last progress, so a dependency that
    /// flaps for hours still reaches a limit.
    pub fn on_progress(&mut self) {
        self.on_progress_at(self.clock.now());
    }

    pub(crate) fn on_progress_at(&mut self, at: Duration) {
        self.delay_retries = 0;
        self.previous = None;
        self.last_progress = Some(at);
    }

    /// Records the start of an attempt. If it runs longer than
    /// [`Limits::new_outage_after`](crate::Limits::new_outage_after), its failure begins a new outage. Without this call an
    /// attempt starts when the wait before it is over.
    pub fn on_attempt(&mut self) {
        self.attempt_since = self.clock.now();
    }

    /// Records the success of the operation: deposits its share into the budget.
    pub fn on_success(&mut self) {
        if let Some(budget) = &self.budget {
            budget.deposit();
        }
    }

    /// Records a failed attempt and decides whether to retry.
    pub fn decide(&mut self, failure: Failure) -> Decision {
        let now = self.clock.now();
        if now.saturating_sub(self.attempt_since) > self.policy.limits.new_outage_after {
            self.begin_outage(now);
        }
        self.attempt_since = now;
        self.first_failure.get_or_insert(now);
        let elapsed = self.elapsed_at(now);
        match self.next_wait(failure, elapsed, self.until_deadline(now)) {
            Err(reason) => Decision::GiveUp(self.given_up(reason)),
            Ok((after, asked)) => {
                self.attempt_since = now.saturating_add(after);
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

    fn begin_outage(&mut self, now: Duration) {
        self.created = now;
        self.first_failure = None;
        self.last_progress = None;
        self.delay_retries = 0;
        self.retries = 0;
        self.previous = None;
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
        // Last, so that nothing is withdrawn for a retry that is not made.
        if let Some(budget) = &self.budget {
            budget.withdraw().map_err(|refilled_in| GiveUpReason::Budget { refilled_in })?;
        }
        Ok((after, failure.retry_after))
    }

    /// Returns the counters of this retry together with a reason for giving up, for callers with limits of their own.
    pub fn given_up(&self, reason: GiveUpReason) -> GivenUp {
        GivenUp { reason, delay_retries: self.delay_retries, retries: self.retries, elapsed: self.elapsed() }
    }

    /// Returns the number of retries since the last progress.
    pub fn delay_retries(&self) -> u32 {
        self.delay_retries
    }

    /// Returns the number of retries in this outage.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Returns the elapsed time since the event named by [`Limits::elapsed_from`](crate::Limits::elapsed_from).
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

/// For the loop.
#[cfg(feature = "tokio")]
impl Retry {
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn end_in(&mut self, time: Duration) {
        self.deadline = Some(self.clock.now().saturating_add(time));
    }

    /// The time left for waits, and the reason once it is over. `None` for no limit.
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

    /// The time left, a running attempt included. `Duration::MAX` for no limit.
    pub(crate) fn time_left_for_attempt(&self) -> Duration {
        self.until_deadline(self.clock.now())
    }
}

impl Iterator for Retry {
    type Item = Duration;

    /// Treats every failure as transient.
    fn next(&mut self) -> Option<Duration> {
        match self.decide(Failure::transient()) {
            Decision::Retry(wait) => Some(wait.after),
            Decision::GiveUp(_) => None,
        }
    }
}
