//! How old a row is. The machine's time since its start says so where the row is of this start; the wall clock, which may
//! have been set since, only for what is left of an earlier one, and only where it makes sense.

use std::sync::Arc;

use super::rows::{NewRow, Until};

/// 2023-01-01: no event is older than this crate. A clock that was never set says so, or names the day the system was
/// built.
pub(super) const OLDEST_AT: u64 = 1_672_531_200_000;

/// So far behind the stamp of a row a clock may be and still be believed.
pub(super) const LEEWAY_MS: u64 = 3_600_000;

/// One moment, by the clocks that ages are computed from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stamp {
    /// Unix milliseconds.
    pub(crate) wall: u64,
    /// Milliseconds since the machine started.
    pub(crate) mono: u64,
    /// Which start of the machine.
    pub(crate) boot: Arc<str>,
}

impl Stamp {
    /// Returns whether this wall clock can date what an earlier start of the machine left.
    pub(super) fn is_set(&self) -> bool {
        self.wall >= OLDEST_AT
    }

    /// When a row expires, by the machine's time since this start. Where neither clock can say how old it is, it lives
    /// once more as long as it was to live: to be late is better than to be gone.
    pub(super) fn until(&self, row: &NewRow, known: Option<&Until>) -> u64 {
        if let Some(until) = known
            && *until.boot == *self.boot
        {
            return until.mono;
        }
        let stamps = OLDEST_AT..=self.wall.saturating_add(LEEWAY_MS);
        let left = if self.is_set() && stamps.contains(&row.newest_at) {
            row.expires_at.saturating_sub(self.wall)
        } else {
            row.life()
        };
        self.mono.saturating_add(left)
    }
}
