//! The two queues.

/// The queue a task waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Queue {
    /// Tasks start as soon as a slot is free and the pulse allows it.
    Normal,
    /// Tasks start once the gate is open: when the application is quiet, or after `gate_timeout`.
    Idle,
}

impl Queue {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Queue::Normal => "normal",
            Queue::Idle => "idle",
        }
    }
}
