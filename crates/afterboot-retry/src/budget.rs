//! A budget that many retries share: what keeps a long outage from multiplying the load.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::PolicyError;

/// A bucket of retries that refills with time and with success. Clones share it.
///
/// Each retry costs one. When the bucket is empty, retries are not made and say when it is refilled; first tries are
/// never held up. So whatever the number of callers, the retries of one process stay below `capacity` at once and
/// `per_second` on average, plus `per_success` for each call that worked. Of loops inside each other only the outermost
/// retries, pays and is returned a share.
///
/// The defaults, 100 retries, 10 a second and 0.2 a success, are those of tower's `TpsBudget` (a floor of 10 retries a
/// second over 10 s, and a fifth of what succeeds).
///
/// ```
/// use std::time::Duration;
/// use afterboot_retry::{BudgetPolicy, Clock, RetryBudget};
///
/// let policy = BudgetPolicy { capacity: 1.0, per_second: 0.5, per_success: 0.0 };
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

/// How large a [`RetryBudget`] is and how it refills.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct BudgetPolicy {
    /// The most retries that can be saved up; the bucket begins full. Finite, 1 or more.
    pub capacity: f64,
    /// Retries that come back each second. Finite, 0 or more.
    pub per_second: f64,
    /// Retries that come back with each success. Finite, 0 or more.
    pub per_success: f64,
}

impl Default for BudgetPolicy {
    fn default() -> BudgetPolicy {
        BudgetPolicy { capacity: 100.0, per_second: 10.0, per_success: 0.2 }
    }
}

#[derive(Debug)]
struct Level {
    retries: f64,
    at: Duration,
}

impl RetryBudget {
    /// A full budget.
    ///
    /// # Errors
    ///
    /// Names every number that is out of its bounds.
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

    /// Takes the price of one retry, or says in how long it will be there. `Duration::MAX` where time alone never
    /// brings it.
    ///
    /// # Errors
    ///
    /// The time until the bucket holds one retry, if nobody else takes from it.
    pub fn withdraw(&self) -> Result<(), Duration> {
        let mut level = self.refilled();
        if level.retries >= 1.0 {
            level.retries -= 1.0;
            return Ok(());
        }
        let seconds = (1.0 - level.retries) / self.policy.per_second;
        Err(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// A call succeeded.
    pub fn deposit(&self) {
        let mut level = self.refilled();
        level.retries = (level.retries + self.policy.per_success).min(self.policy.capacity);
    }

    /// Retries that could be made at once.
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
