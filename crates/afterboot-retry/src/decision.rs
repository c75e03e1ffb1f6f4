//! What goes into a decision and what comes out of it.

use std::time::Duration;

use crate::limits::GiveUpReason;

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
