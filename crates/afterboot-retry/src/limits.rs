//! Limits of a retry, evaluated in a fixed order, and the reason for giving up.

use std::fmt;
use std::time::Duration;

/// The limits of a retry. Every limit is inclusive: a retry beyond the count or the time is not made.
///
/// They are evaluated in this order, and the first that is reached is the reason: the predicate ([`Failure`](crate::Failure)),
/// delay retries, total retries, total time, the end of a table, what the server asked for, the next sleep, the budget.
///
/// The defaults, 500 retries and one hour, are those of Facebook's video uploader. At its pace the hour ends first,
/// after 459 retries (458 where a sleep may not end past the limit).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[must_use]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of retries since the last progress. Default: none.
    pub max_delay_retries: Option<u32>,
    /// Maximum number of retries in one outage, regardless of progress: N retries are N + 1 calls. Default: 500.
    pub max_retries: Option<u32>,
    /// Maximum elapsed time, measured by the clock from [`elapsed_from`](Limits::elapsed_from). Default: one hour.
    /// `Duration::MAX` means no limit.
    #[cfg_attr(feature = "serde", serde(rename = "max_elapsed_ms", with = "crate::millis::option"))]
    pub max_elapsed: Option<Duration>,
    /// The event from which elapsed time is measured. Default: the creation of the retry.
    pub elapsed_from: ElapsedFrom,
    /// The longest `Retry-After` that is waited for; beyond it the retry gives up. Default: one hour, the same as
    /// `max_elapsed`.
    #[cfg_attr(feature = "serde", serde(rename = "max_retry_after_ms", with = "crate::millis::option"))]
    pub max_retry_after: Option<Duration>,
    /// Whether a sleep may begin that ends after `max_elapsed`, for one last attempt. Default: no. A `Retry-After` beyond
    /// the limit is not waited for in either case.
    pub sleep_may_pass_limit: bool,
    /// An attempt that ran longer than this before it failed is considered healthy until then: its failure begins a new
    /// outage, with all counters and times as if the retry were created at that moment. An attempt that a `RetryLoop`
    /// dropped at its time limit does not. Default: one hour, longer than calls that merely hang; `Duration::MAX` for never.
    #[cfg_attr(feature = "serde", serde(rename = "new_outage_after_ms", with = "crate::millis"))]
    pub new_outage_after: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_delay_retries: None,
            max_retries: Some(500),
            max_elapsed: Some(Duration::from_secs(3600)),
            elapsed_from: ElapsedFrom::default(),
            max_retry_after: Some(Duration::from_secs(3600)),
            sleep_may_pass_limit: false,
            new_outage_after: Duration::from_secs(3600),
        }
    }
}

impl Limits {
    /// No limits: only the predicate, the end of a table or a budget ends the retry.
    pub fn unlimited() -> Limits {
        Limits {
            max_delay_retries: None,
            max_retries: None,
            max_elapsed: None,
            max_retry_after: None,
            ..Limits::default()
        }
    }

    /// Sets the maximum number of retries since the last progress.
    pub fn max_delay_retries(mut self, retries: u32) -> Limits {
        self.max_delay_retries = Some(retries);
        self
    }

    /// Sets the maximum number of retries in one outage.
    pub fn max_retries(mut self, retries: u32) -> Limits {
        self.max_retries = Some(retries);
        self
    }

    /// Sets the maximum elapsed time.
    pub fn max_elapsed(mut self, time: Duration) -> Limits {
        self.max_elapsed = Some(time);
        self
    }

    /// Sets the event from which elapsed time is measured.
    pub fn elapsed_from(mut self, from: ElapsedFrom) -> Limits {
        self.elapsed_from = from;
        self
    }

    /// Sets the longest `Retry-After` that is waited for.
    pub fn max_retry_after(mut self, time: Duration) -> Limits {
        self.max_retry_after = Some(time);
        self
    }

    /// Sets whether a sleep may begin that ends after `max_elapsed`.
    pub fn sleep_may_pass_limit(mut self, may: bool) -> Limits {
        self.sleep_may_pass_limit = may;
        self
    }

    /// Sets how long an attempt has to run for its failure to begin a new outage.
    pub fn new_outage_after(mut self, time: Duration) -> Limits {
        self.new_outage_after = time;
        self
    }

    /// Evaluates the limits that depend on the counters and the clock alone, in order.
    pub(crate) fn reached(
        &self,
        delay_retries: u32,
        retries: u32,
        elapsed: Duration,
    ) -> Option<GiveUpReason> {
        if self.max_delay_retries.is_some_and(|most| delay_retries >= most) {
            Some(GiveUpReason::DelayRetries)
        } else if self.max_retries.is_some_and(|most| retries >= most) {
            Some(GiveUpReason::TotalRetries)
        } else if self.max_elapsed.is_some_and(|most| elapsed >= most) {
            Some(GiveUpReason::TotalTime { next_sleep: None })
        } else {
            None
        }
    }

    /// Whether the server asked for a wait beyond a limit, before any spread.
    pub(crate) fn too_long_asked(&self, asked: Duration, elapsed: Duration) -> bool {
        self.max_retry_after.is_some_and(|most| asked > most) || self.ends_past(asked, elapsed)
    }

    /// Whether a sleep may not be begun because it would end past the limit.
    pub(crate) fn forbids_sleep(&self, sleep: Duration, elapsed: Duration) -> bool {
        !self.sleep_may_pass_limit && self.ends_past(sleep, elapsed)
    }

    fn ends_past(&self, sleep: Duration, elapsed: Duration) -> bool {
        self.max_elapsed.is_some_and(|most| most != Duration::MAX && elapsed.saturating_add(sleep) > most)
    }
}

/// The event from which [`Limits::max_elapsed`] is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ElapsedFrom {
    /// The creation of the retry, or the start of a later outage.
    #[default]
    Creation,
    /// The first failure: a long first attempt does not count.
    FirstFailure,
    /// The last progress, or the creation if there was none: work that progresses is bounded only by `max_retries`.
    LastProgress,
}

/// Why a retry is not made. `Display` is for people; [`name`](GiveUpReason::name) is stable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum GiveUpReason {
    /// The failure is permanent.
    Predicate,
    /// [`Limits::max_delay_retries`] was reached.
    DelayRetries,
    /// [`Limits::max_retries`] was reached.
    TotalRetries,
    /// [`Limits::max_elapsed`] was reached, or would be during the next sleep.
    TotalTime {
        /// The sleep that would have ended past the limit; `None` if the limit itself was reached.
        #[cfg_attr(feature = "serde", serde(rename = "next_sleep_ms", with = "crate::millis::option"))]
        next_sleep: Option<Duration>,
    },
    /// The schedule is a table, and it is exhausted.
    TableEnded,
    /// The server asked for a wait beyond a limit.
    RetryAfter {
        /// The wait that it asked for.
        #[cfg_attr(feature = "serde", serde(rename = "asked_ms", with = "crate::millis"))]
        asked: Duration,
    },
    /// The [`RetryBudget`](crate::RetryBudget) is empty.
    Budget {
        /// Time until it holds one retry again, if no other caller withdraws; `Duration::MAX` if it does not refill with
        /// time.
        #[cfg_attr(feature = "serde", serde(rename = "refilled_in_ms", with = "crate::millis"))]
        refilled_in: Duration,
    },
    /// `RetryLoop::timeout` was reached, or would be during the next sleep.
    Timeout {
        /// The sleep that would have ended past it; `None` if it was reached.
        #[cfg_attr(feature = "serde", serde(rename = "next_sleep_ms", with = "crate::millis::option"))]
        next_sleep: Option<Duration>,
    },
    /// The loop runs inside another retry, which does the retrying.
    Nested,
}

impl GiveUpReason {
    /// Returns a short stable name for logs and metrics, for instance `total-time`.
    pub fn name(&self) -> &'static str {
        match self {
            GiveUpReason::Predicate => "predicate",
            GiveUpReason::DelayRetries => "delay-retries",
            GiveUpReason::TotalRetries => "total-retries",
            GiveUpReason::TotalTime { .. } => "total-time",
            GiveUpReason::TableEnded => "table-ended",
            GiveUpReason::RetryAfter { .. } => "retry-after",
            GiveUpReason::Budget { .. } => "budget",
            GiveUpReason::Timeout { .. } => "timeout",
            GiveUpReason::Nested => "nested",
        }
    }
}

impl fmt::Display for GiveUpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GiveUpReason::TotalTime { next_sleep: Some(Duration::MAX) }
            | GiveUpReason::Timeout { next_sleep: Some(Duration::MAX) } => {
                write!(f, "{} (the next sleep would never end)", self.name())
            }
            GiveUpReason::TotalTime { next_sleep: Some(sleep) }
            | GiveUpReason::Timeout { next_sleep: Some(sleep) } => {
                write!(f, "{} (the next sleep, {sleep:?}, would end past the limit)", self.name())
            }
            GiveUpReason::RetryAfter { asked: Duration::MAX } => {
                f.write_str("retry-after (the server asked for an unlimited time)")
            }
            GiveUpReason::RetryAfter { asked } => {
                write!(f, "retry-after (the server asked for {asked:?}, which is beyond a limit)")
            }
            GiveUpReason::Budget { refilled_in: Duration::MAX } => {
                f.write_str("budget (does not refill with time)")
            }
            GiveUpReason::Budget { refilled_in } => {
                write!(f, "budget (the next retry is available in {refilled_in:?})")
            }
            other => f.write_str(other.name()),
        }
    }
}
