//! Whether tasks are taken, and what is left to cancel.

use crate::model::outcome::CancelReason;

/// Whether new tasks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Open,
    Closed(CancelReason),
}

#[derive(Debug, Default)]
pub(super) struct Lifecycle {
    pub(super) phase: Phase,
    /// The last handle of the governor is dropped: no task can be declared any more.
    pub(super) deserted: bool,
    /// Up to which place a shutdown has cancelled what was queued; none where there is nothing to cancel.
    pub(super) cancelled_to: Option<usize>,
}
