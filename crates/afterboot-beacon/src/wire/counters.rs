use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What became of every event so far, in one snapshot.
///
/// Cumulative since the beacon was built, but for the last three, which say where the rest is now. The ledger always
/// balances: [`balances`](Counters::balances). A copy travels with each request, so that a server can tell what was lost
/// with a process that never came back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counters {
    /// Posted by the application, those included that were dropped at once.
    pub posted: u64,
    /// Taken over from the spool of a process that is gone, or found to be lost there.
    pub adopted: u64,
    /// The server has them.
    pub acked: u64,
    /// The server judged them and will never take them.
    pub rejected: u64,
    /// Given up by this side, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Replaced by a later one of the same key before they were sealed.
    pub merged: u64,
    /// Set aside as dead letters. One that is replayed, or whose content is lost, is taken off again.
    pub dead: u64,
    /// Now on disk only.
    pub spooled: u64,
    /// Now in memory.
    pub queued: u64,
    /// Now with a request that has no answer yet.
    pub in_flight: u64,
}

impl Counters {
    /// Dropped for any reason.
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Does every event have its place?
    /// posted + adopted = acked + rejected + dropped + merged + dead + spooled + queued + in flight.
    pub fn balances(&self) -> bool {
        // In 128 bits, because these numbers may have come from anyone.
        let known =
            [self.acked, self.rejected, self.merged, self.dead, self.spooled, self.queued, self.in_flight];
        let sum: u128 = known.iter().chain(self.dropped.values()).copied().map(u128::from).sum();
        u128::from(self.posted) + u128::from(self.adopted) == sum
    }
}
