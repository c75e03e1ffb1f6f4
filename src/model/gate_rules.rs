//! The gate's configuration.

use std::time::Duration;

/// The configuration of the idle queue's gate and of holds after its opening. Set by the methods of
/// [`Builder`](crate::Builder) of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GateRules {
    /// The length of the quiet window.
    pub quiet: Duration,
    /// The time after which the gate opens in any case, counted from the first waiting idle task.
    pub gate_timeout: Duration,
    /// The maximum number of requests in flight at which the application counts as quiet.
    pub max_in_flight: usize,
    /// Whether the quiet window starts only at [`Governor::ready`](crate::Governor::ready).
    pub await_ready: bool,
    /// Whether [`interactive_when`](crate::Builder::interactive_when) replaces the quiet window.
    pub interactive: bool,
    /// How long the application must have been quiet again for an idle start after the opening.
    pub resume_quiet: Duration,
    /// The maximum time for which a busy application holds one idle start, and for which normal tasks may occupy every
    /// slot once the gate is open.
    pub max_hold: Duration,
}

impl GateRules {
    /// Where nothing is said; the sources of the numbers stand at the builder's methods.
    pub(crate) fn defaults() -> GateRules {
        GateRules {
            quiet: Duration::from_secs(5),
            gate_timeout: Duration::from_secs(45),
            max_in_flight: 2,
            await_ready: false,
            interactive: false,
            resume_quiet: Duration::from_millis(500),
            max_hold: Duration::from_secs(5),
        }
    }
}
