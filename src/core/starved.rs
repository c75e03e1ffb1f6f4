//! The record of starved normal tasks.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::base::clock::Stamp;
use crate::model::name::Name;

/// A normal task that waited for a slot for [`STARVED`], and nobody's turn came meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Starved {
    pub(crate) name: Name,
    pub(crate) number: u64,
    /// When nothing but its queue held it any more.
    pub(crate) since: Stamp,
    pub(crate) reported_at: Stamp,
    /// Numbers and names of those that held the slots.
    pub(crate) behind: Vec<(u64, Name)>,
    /// How many more did.
    pub(crate) more: usize,
}

#[derive(Debug, Default)]
pub(super) struct NormalStarvation {
    /// Since when all slots have been held while a normal task waited and none of its queue started.
    pub(super) since: Option<Stamp>,
    /// The first of them has been named.
    pub(super) reported: bool,
    /// Shared: a report copies them under the lock.
    pub(super) starved: VecDeque<Arc<Starved>>,
}

/// Since when tasks wait for slots that others keep.
#[derive(Debug, Default)]
pub(super) struct Starvation {
    /// The idle queue, behind normal tasks.
    pub(super) idle_since: Option<Stamp>,
    pub(super) normal: NormalStarvation,
}

#[derive(Debug, Default)]
pub(super) struct IdleTasks {
    /// They have not started.
    pub(super) unstarted: usize,
    /// They hold a slot.
    pub(super) running: usize,
}
