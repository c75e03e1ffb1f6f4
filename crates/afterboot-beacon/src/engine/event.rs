//! What the beacon does, as it does it.

use std::time::Duration;

use super::endpoint::HeldReason;
use super::ledger::DropReason;
use crate::wire::Priority;

/// One step of the beacon's work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BeaconEvent {
    /// A request left.
    Sent {
        /// Of the batch.
        priority: Priority,
        /// How many events it holds.
        events: usize,
        /// Compressed bytes of its body.
        bytes: usize,
        /// Which try of this batch, from 1.
        attempt: u32,
    },
    /// The server settled a batch, or a part of it.
    Acked {
        /// Taken.
        accepted: usize,
        /// Judged and refused for ever.
        rejected: usize,
        /// To be sent again.
        again: usize,
    },
    /// A request failed in a way that a retry may mend.
    Failed {
        /// The status, or none where no answer came.
        status: Option<u16>,
        /// In words.
        why: String,
        /// No request leaves for this long.
        wait: Duration,
    },
    /// The endpoint is held: a retry alone does not mend it.
    Held {
        /// What was wrong.
        why: HeldReason,
        /// Until the next try.
        wait: Duration,
    },
    /// The server takes bodies again, or for the first time after a failure.
    Recovered,
    /// The server found a body too large: it was parted.
    Split {
        /// The largest body from now on, in bytes before compression.
        limit: usize,
    },
    /// Events went to the disk.
    Spooled {
        /// How many.
        events: u64,
    },
    /// Events of a process that is gone were taken over.
    Adopted {
        /// How many.
        events: u64,
    },
    /// Events were read back from the disk, to be sent.
    Replaying {
        /// How many.
        events: u64,
    },
    /// Events were given up: on their way in, in memory, on disk or in what another process left there.
    Dropped {
        /// Why.
        reason: DropReason,
        /// How many. 0: a file that another process left cannot be read, and nobody can say how many it held.
        events: u64,
    },
    /// Events were set aside as dead letters.
    Dead {
        /// How many.
        events: u64,
        /// Why: `oversize` or `refused`.
        reason: &'static str,
        /// The status that judged them.
        status: Option<u16>,
    },
    /// The spool does not work: events stay in memory until it does.
    SpoolTrouble {
        /// In words.
        why: String,
    },
    /// The spool works again.
    SpoolBack,
    /// A route's data or name is larger than it should be; said once a route.
    Oversized {
        /// The route, cut at 128 bytes.
        route: String,
        /// Of the data, encoded.
        data_bytes: usize,
        /// Of the route's name.
        route_bytes: usize,
    },
    /// The server wants an experiment stopped.
    Kill {
        /// Its epoch.
        epoch: String,
    },
    /// The beacon has ended.
    ShutDown,
}
