//! A retry budget shared by many retries: it keeps a long outage from multiplying the load.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::PolicyError;

/// A token bucket of retries that refills with time and with each success. Clones share the bucket.
///
/// Each retry withdraws one token. With an empty bucket a retry gives up with [`GiveUpReason::Budget`](crate::GiveUpReason),
/// which carries the time until the next token; first attempts are never limited. Whatever the number of callers, the
/// retries of one process stay below `capacity` in a burst and `per_second` on average, plus `per_success` for each call
/// that succeeded. Of nested loops only the outermost withdraws and deposits.
///
/// The defaults, 100 retries, 10 a second and 0.2 a success, are those of tower's `TpsBudget` (a floor of 10 retries a
/// second over 10 s, and a fifth of what succeeds).
///
/// ```
/// use std::time::Duration;
/// use afterboot_retry::{BudgetPolicy, Clock, RetryBudget};
///
/// let policy = BudgetPolicy::default().capacity(1.0).per_second(0.5).per_success(0.0);
/// let budget = RetryBudget::new(policy, Clock::new(|| Duration::ZERO))?;
/// assert_eq!(budget.withdraw(), Ok(()));
/// assert_eq!(budget.withdraw(), Err(Duration::from_secs(2)));
/// # Ok::<(), afterboot_retry::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RetryBudget {
    policy: BudgetPolicy,
    clock: Clock,
    level: Arc<Mutex<Level>>,
}

/// The size of a [`RetryBudget`] and how it refills. Start from `BudgetPolicy::default()`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[must_use]
#[non_exhaustive]
pub struct BudgetPolicy {
    /// The capacity in retries; the bucket starts full. Default: 100. Finite, 1 or more.
    pub capacity: f64,
    /// Retries added each second. Default: 10. Finite, 0 or more.
    pub per_second: f64,
    /// Retries added with each success. Default: 0.2. Finite, 0 or more.
    pub per_success: f64,
}

impl Default for BudgetPolicy {
    fn default() -> BudgetPolicy {
        BudgetPolicy { capacity: 100.0, per_second: 10.0, per_success: 0.2 }
    }
}

impl BudgetPolicy {
    /// Sets the capacity in retries.
    pub fn capacity(mut self, retries: f64) -> BudgetPolicy {
        self.capacity = retries;
        self
    }

    /// Sets how many retries are added each second.
    pub fn per_second(mut self, retries: f64) -> BudgetPolicy {
        self.per_second = retries;
        self
    }

    /// Sets how many retries are added with each success.
    pub fn per_success(mut self, retries: f64) -> BudgetPolicy {
        self.per_success = retries;
        self
    }
}

#[derive(Debug)]
struct Level {
    retries: f64,
    at: Duration,
}

impl RetryBudget {
    /// Creates a full budget.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] lists every field that is out of its bounds.
    pub fn new(policy: BudgetPolicy, clock: Clock) -> Result<RetryBudget, PolicyError> {
        let mut problems = Vec::new();
        for (field, value, least) in [
            ("capacity", policy.capacity, 1.0),
            ("per_second", policy.per_second, 0.0),
            ("per_success", policy.per_success, 0.0),
        ] {
            if !value.is_finite() || value < least {
                problems.push(format!("{field}: {value}; allowed: finite and {least} or more"));
            }
        }
        PolicyError::unless_empty(problems)?;
        let level = Arc::new(Mutex::new(Level { retries: policy.capacity, at: clock.now() }));
        Ok(RetryBudget { policy, clock, level })
    }

    /// Withdraws one retry.
    ///
    /// # Errors
    ///
    /// If the bucket holds less than one retry: the time until it holds one, provided that no other caller withdraws.
    /// `Duration::MAX` if `per_second` is 0.
    pub fn withdraw(&self) -> Result<(), Duration> {
        let mut level = self.refilled();
        if level.retries >= 1.0 {
            level.retries -= 1.0;
            return Ok(());
        }
        let seconds = (1.0 - level.retries) / self.policy.per_second;
        Err(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Records a successful call: adds `per_success` retries.
    pub fn deposit(&self) {
        let mut level = self.refilled();
        level.retries = (level.retries + self.policy.per_success).min(self.policy.capacity);
    }

    /// Returns how many retries could be withdrawn now.
    pub fn available(&self) -> u64 {
        // Saturates, and is never negative.
        self.refilled().retries as u64
    }

    fn refilled(&self) -> MutexGuard<'_, Level> {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let passed = now.saturating_sub(level.at).as_secs_f64();
        level.retries = (level.retries + passed * self.policy.per_second).min(self.policy.capacity);
        level.at = level.at.max(now);
        level
    }
}
