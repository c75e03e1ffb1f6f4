use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A snapshot of the ledger: the number of events in each place.
///
/// Cumulative since the beacon was built, except the last three, which count the events that are in that place now. The
/// ledger always [`balances`](Counters::balances). A copy is sent with each request, so that a server knows what was lost with
/// a process that did not come back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counters {
    /// Posted by the application, including those that were dropped at once.
    pub posted: u64,
    /// Taken over from the spool of a process that is gone, or found to be lost there.
    pub adopted: u64,
    /// Accepted by the server.
    pub acked: u64,
    /// Rejected by the server for good.
    pub rejected: u64,
    /// Dropped by the beacon, by reason: see [`DropReason`](crate::DropReason).
    pub dropped: BTreeMap<String, u64>,
    /// Replaced by a later event with the same merge key.
    pub merged: u64,
    /// Dead letters. One that is replayed, or whose content is lost, is subtracted again.
    pub dead: u64,
    /// On disk only.
    pub spooled: u64,
    /// In memory.
    pub queued: u64,
    /// In a request that has no response yet.
    pub in_flight: u64,
}

impl Counters {
    /// Returns the number of events dropped for any reason.
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns whether every event is counted in one place:
    /// posted + adopted = acked + rejected + dropped + merged + dead + spooled + queued + in flight.
    pub fn balances(&self) -> bool {
        // In 128 bits, because these numbers may have come from anyone.
        let known =
            [self.acked, self.rejected, self.merged, self.dead, self.spooled, self.queued, self.in_flight];
        let sum: u128 = known.iter().chain(self.dropped.values()).copied().map(u128::from).sum();
        u128::from(self.posted) + u128::from(self.adopted) == sum
    }
}
