//! The error of a loop that gave up.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::decision::GivenUp;

/// The operation did not succeed: why no further attempt is made, and how the last one ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryError<E> {
    given_up: GivenUp,
    last: LastAttempt<E>,
}

/// How the last attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LastAttempt<E> {
    /// It returned this error.
    Failed(E),
    /// It was dropped at its time limit, after this time.
    TimedOut(Duration),
    /// No attempt was made: the time was over while the loop waited for the gate.
    NotMade,
}

impl<E> RetryError<E> {
    pub(crate) fn new(given_up: GivenUp, last: LastAttempt<E>) -> RetryError<E> {
        RetryError { given_up, last }
    }

    /// Returns the reason and the counters.
    pub fn given_up(&self) -> &GivenUp {
        &self.given_up
    }

    /// Returns how the last attempt ended.
    pub fn last(&self) -> &LastAttempt<E> {
        &self.last
    }

    /// Returns the error of the last attempt; `None` if it was dropped or not made.
    pub fn into_error(self) -> Option<E> {
        match self.last {
            LastAttempt::Failed(error) => Some(error),
            LastAttempt::TimedOut(_) | LastAttempt::NotMade => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.last {
            LastAttempt::Failed(error) => write!(f, "{}; last error: {error}", self.given_up),
            LastAttempt::TimedOut(after) => {
                write!(f, "{}; last attempt dropped after {after:?}", self.given_up)
            }
            LastAttempt::NotMade => write!(f, "{}; no attempt was made", self.given_up),
        }
    }
}

impl<E: Error + 'static> Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.last {
            LastAttempt::Failed(error) => Some(error),
            LastAttempt::TimedOut(_) | LastAttempt::NotMade => None,
        }
    }
}
