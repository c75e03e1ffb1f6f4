//! Numbers that do not change while a beacon lives.

use std::time::Duration;

use crate::wire::Priority;

/// Batches that cannot be sent go to the spool at this age.
pub(crate) const SPOOL_AGE: Duration = Duration::from_secs(10);

/// The most requests under way.
pub(crate) const MAX_IN_FLIGHT: usize = 2;

/// So many declarations a batch carries at most: about 6 KB of its body.
pub(super) const MAX_GAPS: usize = 50;

/// What a declaration adds to a body at most.
pub(super) const GAP_ROOM: usize = 160;

/// The numbers that do not change while a beacon lives.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    pub(crate) batch_events: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) replay_spread: Duration,
    /// Whether there is a spool for dead letters, working or not.
    pub(crate) keeps_letters: bool,
}

pub(crate) fn lane(priority: Priority) -> usize {
    match priority {
        Priority::Vital => 0,
        Priority::Basic => 1,
    }
}

pub(crate) const LANES: [Priority; 2] = [Priority::Vital, Priority::Basic];
