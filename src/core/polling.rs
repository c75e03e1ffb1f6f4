//! A governed poll in progress.

use crate::base::clock::Stamp;
use crate::model::id::Id;

use super::turn::Charge;

/// The governed poll that is running now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polling {
    pub(crate) id: Id,
    pub(crate) since: Stamp,
    /// The worker it runs on.
    pub(crate) worker: Option<usize>,
    /// When the poll was asked for, where that is recorded.
    pub(crate) woken: Option<Stamp>,
    pub(super) charge: Charge,
}
