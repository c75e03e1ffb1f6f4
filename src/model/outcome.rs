//! How a task ended. An outcome is data, not an error: a failed task does not stop the boot.

use std::fmt;
use std::sync::Arc;

/// How a task ended.
///
/// `Display` prints the text shown in the table of a [`Report`](crate::Report).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "kind", content = "detail"))]
#[non_exhaustive]
pub enum Outcome {
    /// The future returned its value.
    Completed,
    /// The future returned `Err`; the text is the error's `Display` output.
    Failed(Arc<str>),
    /// The closure, a poll or the destructor of the completed future panicked; the text is the panic's message. A panic
    /// in a destructor after a timeout or a cancellation is caught and logged and does not change the outcome.
    Panicked(Arc<str>),
    /// The task's own `timeout` passed.
    TimedOut {
        /// Whether its code may still be running, because a blocking closure cannot be stopped from outside.
        still_running: bool,
    },
    /// The task did not start because of its condition or a predecessor.
    Skipped(SkipReason),
    /// The task was cancelled before it ended by itself.
    Cancelled(CancelReason),
    /// The task was cancelled or shut down while its code could not be stopped: a blocking closure, or a poll in
    /// progress at the shutdown's deadline. The code may still be running.
    Abandoned,
    /// The declaration was invalid and the task was never queued; the text says what is allowed.
    Invalid(Arc<str>),
}

/// Why a task was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SkipReason {
    /// Its condition was false.
    Condition,
    /// The named predecessor did not complete.
    Predecessor(Arc<str>),
}

/// Why a task was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CancelReason {
    /// [`TaskHandle::cancel`](crate::TaskHandle::cancel) was called.
    Requested,
    /// [`Governor::shutdown`](crate::Governor::shutdown) was called.
    Shutdown,
    /// The tokio runtime was shut down.
    RuntimeGone,
}

impl Outcome {
    /// Returns whether the task returned its value.
    pub fn is_completed(&self) -> bool {
        matches!(self, Outcome::Completed)
    }

    /// Returns whether the task's code ended by itself: completed, failed or panicked.
    pub fn ran_to_its_end(&self) -> bool {
        matches!(self, Outcome::Completed | Outcome::Failed(_) | Outcome::Panicked(_))
    }

    /// Returns the kind of outcome: `completed`, `failed`, `panicked`, `timed out`, `skipped`, `cancelled`, `abandoned`
    /// or `invalid`.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed(_) => "failed",
            Outcome::Panicked(_) => "panicked",
            Outcome::TimedOut { .. } => "timed out",
            Outcome::Skipped(_) => "skipped",
            Outcome::Cancelled(_) => "cancelled",
            Outcome::Abandoned => "abandoned",
            Outcome::Invalid(_) => "invalid",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Completed => f.write_str("completed"),
            Outcome::Failed(why) => write!(f, "failed: {why}"),
            Outcome::Panicked(text) => write!(f, "panicked: {text}"),
            Outcome::TimedOut { still_running: false } => f.write_str("timed out"),
            Outcome::TimedOut { still_running: true } => f.write_str("timed out, still running"),
            Outcome::Skipped(why) => write!(f, "skipped ({why})"),
            Outcome::Cancelled(why) => write!(f, "cancelled ({why})"),
            Outcome::Abandoned => f.write_str("abandoned, still running"),
            Outcome::Invalid(why) => write!(f, "invalid: {why}"),
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Condition => f.write_str("condition"),
            SkipReason::Predecessor(name) => write!(f, "predecessor {name:?}"),
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CancelReason::Requested => "requested",
            CancelReason::Shutdown => "shutdown",
            CancelReason::RuntimeGone => "runtime gone",
        })
    }
}
