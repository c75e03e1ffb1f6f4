//! When to stop, in a fixed order, and the reason that goes with it.

use std::fmt;
use std::time::Duration;

/// When to stop retrying. Every limit is inclusive: a retry that would be one more, or start later, is not made.
///
/// They are asked in this order, and the first that says no is the reason: the predicate ([`Failure`](crate::Failure)),
/// delay retries, total retries, total time, the end of a table, what the server asked for, the next sleep, the budget.
///
/// The defaults, 500 retries and one hour, are those of Facebook's video uploader. At its pace the hour ends first,
/// after 459 retries (458 where a sleep may not end past the limit).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct Limits {
    /// The most retries since the last progress. Default: none.
    pub max_delay_retries: Option<u32>,
    /// The most retries in one outage, whatever progress is made: N retries are N + 1 calls. Default: 500.
    pub max_retries: Option<u32>,
    /// The most time, measured by the clock from [`elapsed_from`](Limits::elapsed_from). Default: one hour.
    /// `Duration::MAX` is as good as none.
    #[cfg_attr(feature = "serde", serde(rename = "max_elapsed_ms", with = "crate::millis::option"))]
    pub max_elapsed: Option<Duration>,
    /// Where the time begins. Default: the creation of the retry.
    pub elapsed_from: ElapsedFrom,
    /// The longest `Retry-After` that is waited for. Default: one hour, as the time in all; a server that asks for more
    /// has said that this retry is in vain.
    #[cfg_attr(feature = "serde", serde(rename = "max_retry_after_ms", with = "crate::millis::option"))]
    pub max_retry_after: Option<Duration>,
    /// Whether a sleep may begin that ends after `max_elapsed`, for one last try. Default: no, since the user waits
    /// for a try that comes too late. What a server asked for beyond the limit is not waited for in either case.
    pub sleep_may_pass_limit: bool,
    /// An attempt that lived longer than this and then failed was well before: its failure begins a new outage, with all
    /// counters and times as if the retry were created then. An attempt that a `RetryLoop` has cut short
    /// was not. Default: one hour, longer than anything that only hangs; `Duration::MAX` for never.
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
    /// No limit at all: only the predicate, a table's end or a budget ends the retry.
    pub fn unlimited() -> Limits {
        Limits {
            max_delay_retries: None,
            max_retries: None,
            max_elapsed: None,
            max_retry_after: None,
            ..Limits::default()
        }
    }

    /// At most this many retries since the last progress.
    pub fn max_delay_retries(mut self, retries: u32) -> Limits {
        self.max_delay_retries = Some(retries);
        self
    }

    /// At most this many retries in all.
    pub fn max_retries(mut self, retries: u32) -> Limits {
        self.max_retries = Some(retries);
        self
    }

    /// At most this much time.
    pub fn max_elapsed(mut self, time: Duration) -> Limits {
        self.max_elapsed = Some(time);
        self
    }

    /// Where the time begins.
    pub fn elapsed_from(mut self, from: ElapsedFrom) -> Limits {
        self.elapsed_from = from;
        self
    }

    /// The longest `Retry-After` that is waited for.
    pub fn max_retry_after(mut self, time: Duration) -> Limits {
        self.max_retry_after = Some(time);
        self
    }

    /// Whether a sleep may begin that ends after `max_elapsed`.
    pub fn sleep_may_pass_limit(mut self, may: bool) -> Limits {
        self.sleep_may_pass_limit = may;
        self
    }

    /// How long an attempt has to live for its failure to begin a new outage.
    pub fn new_outage_after(mut self, life: Duration) -> Limits {
        self.new_outage_after = life;
        self
    }

    /// The limits that need nothing but the counters and the clock, in order.
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

    /// Whether what the server asked for is beyond a limit, before any spread.
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

/// Where the time that [`Limits::max_elapsed`] limits begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ElapsedFrom {
    /// When the retry was created, or a later outage began: the user has waited since.
    #[default]
    Creation,
    /// The first failure: a long first try does not use up the time.
    FirstFailure,
    /// The last progress, or the creation where there was none: work that moves on may take for ever. What bounds it
    /// then is `max_retries`.
    LastProgress,
}

/// Why a retry is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum GiveUpReason {
    /// The failure is not of a kind that another try can mend.
    Predicate,
    /// As many retries since the last progress as allowed.
    DelayRetries,
    /// As many retries in all as allowed.
    TotalRetries,
    /// The time is over, or would be.
    TotalTime {
        /// The sleep that would have ended past the limit; `None` where the limit itself was reached.
        #[cfg_attr(feature = "serde", serde(rename = "next_sleep_ms", with = "crate::millis::option"))]
        next_sleep: Option<Duration>,
    },
    /// The schedule is a table, and it has ended.
    TableEnded,
    /// The server asked to wait beyond a limit.
    RetryAfter {
        /// What it asked for.
        #[cfg_attr(feature = "serde", serde(rename = "asked_ms", with = "crate::millis"))]
        asked: Duration,
    },
    /// The [`RetryBudget`](crate::RetryBudget) is spent.
    Budget {
        /// When it will hold the price of a retry again if nobody else takes it; `Duration::MAX` where time alone never
        /// brings it.
        #[cfg_attr(feature = "serde", serde(rename = "refilled_in_ms", with = "crate::millis"))]
        refilled_in: Duration,
    },
    /// The time of the loop (`RetryLoop::timeout`) is over, or would be.
    Timeout {
        /// The sleep that would have ended past it; `None` where it is over.
        #[cfg_attr(feature = "serde", serde(rename = "next_sleep_ms", with = "crate::millis::option"))]
        next_sleep: Option<Duration>,
    },
    /// Another retry is around this one, and will do the retrying.
    Nested,
}

impl GiveUpReason {
    /// A short stable name for logs and reports, `total-time` for instance.
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
                f.write_str("retry-after (the server asked for longer than can be told)")
            }
            GiveUpReason::RetryAfter { asked } => {
                write!(f, "retry-after (the server asked for {asked:?}, beyond a limit)")
            }
            GiveUpReason::Budget { refilled_in: Duration::MAX } => {
                f.write_str("budget (never refilled by time alone)")
            }
            GiveUpReason::Budget { refilled_in } => write!(f, "budget (refilled in {refilled_in:?})"),
            other => f.write_str(other.name()),
        }
    }
}
