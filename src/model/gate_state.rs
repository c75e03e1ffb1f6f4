//! How the gate stands, in the words of code, log, report and page alike.

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
    /// The application was quiet for a whole window.
    Quiet,
    /// The timeout passed, counted from the first idle task that waited.
    Timeout,
    /// [`Governor::open_gate`](crate::Governor::open_gate) was called.
    Manual,
    /// The future given to [`interactive_when`](crate::Builder::interactive_when) resolved.
    Interactive,
}

/// What holds the gate shut, or held it last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum WaitReason {
    /// [`Governor::ready`](crate::Governor::ready) has not been called.
    NotReady,
    /// No idle task waits.
    NoIdleTask,
    /// The future given to [`interactive_when`](crate::Builder::interactive_when) has not resolved.
    NotInteractive,
    /// The window has begun and nothing disturbed it.
    Window,
    /// A worker's loop did not come round for 50 ms or more.
    #[non_exhaustive]
    LongTask {
        /// When it ended or was last seen, since `build()`.
        at: Duration,
        /// How long it lasted.
        length: Duration,
        /// Who did it: a governed task, an observed future, a span; else "unknown", with the worker where that is known.
        who: Arc<str>,
    },
    /// The whole process did not run for 50 ms or more.
    #[non_exhaustive]
    Stopped {
        /// When it ran again, since `build()`.
        at: Duration,
        /// How long it was stopped.
        length: Duration,
    },
    /// More than `max_in_flight` guards were held.
    #[non_exhaustive]
    InFlight {
        /// Which, with their counts.
        requests: Arc<str>,
    },
}

/// How the gate stands.
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
        /// When, since `build()`.
        at: Duration,
        /// What held it last.
        shut_by: WaitReason,
    },
    /// Idle tasks wait.
    #[non_exhaustive]
    Shut {
        /// What holds it.
        why: WaitReason,
        /// The earliest moment, since `build()`, at which it can open if nothing else happens.
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
                write!(f, "opened by {by} at {:.3} s; shut until then: {shut_by}", at.as_secs_f64())?;
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
