//! The two queues.

/// In which of the two queues a task waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Queue {
    /// Starts as soon as a slot and the pulse allow it.
    Normal,
    /// Starts once the gate is open: when the application is quiet, or at the timeout.
    Idle,
}
