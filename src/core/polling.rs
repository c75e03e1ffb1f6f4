//! Governed polls in progress.

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

/// The lane's poll, and those that it has given up.
#[derive(Debug, Default)]
pub(super) struct Polls {
    pub(super) now: Option<Polling>,
    /// They have not returned.
    pub(super) stuck: Vec<Polling>,
}

impl Polls {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Polling> {
        self.now.iter().chain(&self.stuck)
    }

    pub(super) fn of(&self, id: Id) -> Option<&Polling> {
        self.iter().find(|polling| polling.id == id)
    }

    pub(super) fn is_stuck(&self, id: Id) -> bool {
        self.stuck.iter().any(|polling| polling.id == id)
    }
}
