//! When the gate opens and what holds starts after it: what the builder was given.

use std::time::Duration;

/// When the gate of the idle queue opens, and what holds idle starts afterwards; see [`Builder`](crate::Builder).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GateRules {
    /// How long the application must have been quiet.
    pub quiet: Duration,
    /// When it opens whatever happens, counted from the first idle task that waits.
    pub gate_timeout: Duration,
    /// The most requests in flight at which the application still counts as quiet.
    pub max_in_flight: usize,
    /// Whether the window begins only at [`Governor::ready`](crate::Governor::ready).
    pub await_ready: bool,
    /// Whether a future of the application's takes the window's place.
    pub interactive: bool,
    /// After the opening: how long the application must have been free of long tasks for the next idle start.
    pub resume_quiet: Duration,
    /// How long normal tasks may keep the idle queue from every slot, and a busy application one idle start.
    pub max_hold: Duration,
}
