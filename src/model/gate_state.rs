//! The gate's state, worded once for code, log, report and page.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::text::Plain;

/// What opened the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OpenedBy {
    /// The application was quiet for a whole quiet window.
    Quiet,
    /// [`gate_timeout`](crate::Builder::gate_timeout) passed, counted from the first waiting idle task.
    Timeout,
    /// [`Governor::open_gate`](crate::Governor::open_gate) was called.
    Manual,
    /// The future given to [`interactive_when`](crate::Builder::interactive_when) resolved.
    Interactive,
}

/// Why idle tasks wait: what keeps the gate shut, or holds an idle start after its opening.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum WaitReason {
    /// [`Governor::ready`](crate::Governor::ready) has not been called.
    NotReady,
    /// No idle task is waiting.
    NoIdleTask,
    /// The future given to [`interactive_when`](crate::Builder::interactive_when) has not resolved.
    NotInteractive,
    /// The quiet window has started and is not over; nothing has disturbed it.
    Window,
    /// A worker was blocked for 50 ms or more.
    #[non_exhaustive]
    LongTask {
        /// When it ended or was last detected, since `build()`.
        at: Duration,
        /// How long it lasted.
        length: Duration,
        /// What it is attributed to: a governed task, an observed future or a span. Otherwise "unknown", with the
        /// worker if known.
        who: Arc<str>,
    },
    /// The whole process was stopped for 50 ms or more.
    #[non_exhaustive]
    Stopped {
        /// When it resumed, since `build()`.
        at: Duration,
        /// How long it was stopped.
        length: Duration,
    },
    /// More than `max_in_flight` requests were in flight.
    #[non_exhaustive]
    InFlight {
        /// The number of requests and their names with counts, as text.
        requests: Arc<str>,
    },
}

/// The state of the idle queue's gate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum GateState {
    /// Idle tasks may start.
    #[non_exhaustive]
    Open {
        /// What opened it.
        by: OpenedBy,
        /// When it opened, since `build()`.
        at: Duration,
        /// The last reason to wait before it opened.
        shut_by: WaitReason,
    },
    /// Idle tasks wait.
    #[non_exhaustive]
    Shut {
        /// What keeps it shut.
        why: WaitReason,
        /// The earliest time, since `build()`, at which it can open. `None` if that depends on the application.
        until: Option<Duration>,
    },
}

impl fmt::Display for OpenedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenedBy::Quiet => "quiet",
            OpenedBy::Timeout => "timeout",
            OpenedBy::Manual => "open_gate()",
            OpenedBy::Interactive => "interactive_when",
        })
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitReason::NotReady => f.write_str("ready() was not called"),
            WaitReason::NotInteractive => f.write_str("interactive_when has not resolved"),
            WaitReason::NoIdleTask => f.write_str("no idle task waits"),
            WaitReason::Window => f.write_str("the quiet window"),
            WaitReason::LongTask { at, length, who } => {
                let who = Plain(who, 40);
                write!(f, "a long task of {} ms by {who} until {:.3} s", length.as_millis(), at.as_secs_f64())
            }
            WaitReason::Stopped { at, length } => {
                write!(
                    f,
                    "the process, stopped for {} ms until {:.3} s",
                    length.as_millis(),
                    at.as_secs_f64()
                )
            }
            WaitReason::InFlight { requests } => f.write_str(requests),
        }
    }
}

impl fmt::Display for GateState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateState::Open { by, at, shut_by } => {
                write!(f, "opened by {by} at {:.3} s; last reason to wait: {shut_by}", at.as_secs_f64())?;
                match shut_by {
                    WaitReason::InFlight { .. } => f.write_str(", at that moment"),
                    _ => Ok(()),
                }
            }
            GateState::Shut { why: WaitReason::NoIdleTask, .. } => f.write_str("shut: no idle task waits"),
            GateState::Shut { why, until: Some(until) } => {
                write!(f, "shut: {why}; opens at {:.3} s at the earliest", until.as_secs_f64())
            }
            GateState::Shut { why, until: None } => write!(f, "shut: {why}"),
        }
    }
}
