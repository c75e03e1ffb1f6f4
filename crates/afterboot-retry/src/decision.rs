//! Input and output of a retry decision.

use std::time::Duration;

use crate::limits::GiveUpReason;

/// What is known about a failed attempt: whether it is retryable, and what the server asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Failure {
    pub(crate) retryable: bool,
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    /// A failure that may go away, of work that may safely be repeated.
    pub fn transient() -> Failure {
        Failure { retryable: true, retry_after: None }
    }

    /// A failure that a retry does not resolve, or of work that must not be repeated.
    pub fn permanent() -> Failure {
        Failure { retryable: false, retry_after: None }
    }

    /// Transient if the predicate holds, else permanent. An uploader tests whether the machine is online.
    pub fn transient_if(predicate: bool) -> Failure {
        Failure { retryable: predicate, retry_after: None }
    }

    /// Returns whether the failure is transient.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Returns the wait that the server asked for.
    pub fn asked(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Sets the wait that the server asked for, if any; see [`parse_retry_after`](crate::parse_retry_after).
    pub fn retry_after(mut self, asked: impl Into<Option<Duration>>) -> Failure {
        self.retry_after = asked.into();
        self
    }
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a decision neither waits nor gives up by itself"]
#[non_exhaustive]
pub enum Decision {
    /// Wait, then make another attempt.
    Retry(Wait),
    /// Make no further attempt.
    GiveUp(GivenUp),
}

impl Decision {
    /// Returns the wait before the next attempt, or why none is made, for a `match` without a wildcard.
    ///
    /// # Errors
    ///
    /// [`GivenUp`] if no further attempt is made.
    pub fn into_result(self) -> Result<Wait, GivenUp> {
        match self {
            Decision::Retry(wait) => Ok(wait),
            Decision::GiveUp(given_up) => Err(given_up),
        }
    }
}

/// The wait before a retry, and the number of that retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Wait {
    /// The time to wait.
    #[cfg_attr(feature = "serde", serde(rename = "after_ms", with = "crate::millis"))]
    pub after: Duration,
    /// The part of it that the server asked for; the rest is spread.
    #[cfg_attr(feature = "serde", serde(rename = "asked_ms", with = "crate::millis::option"))]
    pub asked: Option<Duration>,
    /// The number of this retry since the last progress, from 1. It selects the delay.
    pub delay_retry: u32,
    /// The number of this retry in this outage, from 1.
    pub retry: u32,
}

/// Why no further attempt is made, with the counters at that moment. [`Retry::given_up`](crate::Retry::given_up) makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GivenUp {
    /// The limit that was reached.
    pub reason: GiveUpReason,
    /// Retries since the last progress.
    pub delay_retries: u32,
    /// Retries in this outage.
    pub retries: u32,
    /// Elapsed time since the event named by [`Limits::elapsed_from`](crate::Limits::elapsed_from).
    #[cfg_attr(feature = "serde", serde(rename = "elapsed_ms", with = "crate::millis"))]
    pub elapsed: Duration,
}

impl std::fmt::Display for GivenUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.retries == 1 { "retry" } else { "retries" };
        write!(f, "gave up after {} {plural}: {}", self.retries, self.reason)
    }
}
