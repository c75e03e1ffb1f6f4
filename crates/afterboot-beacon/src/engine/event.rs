//! The beacon's own events, which a receiver subscribes to.

use std::time::Duration;

use super::endpoint::HeldReason;
use super::ledger::DropReason;
use crate::wire::Priority;

/// A step of the beacon's work, as [`BeaconEvents`](crate::BeaconEvents) delivers it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BeaconEvent {
    /// A request was sent.
    #[non_exhaustive]
    Sent {
        /// The priority of the batch.
        priority: Priority,
        /// The number of events in the batch.
        events: usize,
        /// The size of the compressed body.
        bytes: usize,
        /// Which attempt to send this batch it is, from 1.
        attempt: u32,
    },
    /// The server settled a batch, or a part of it.
    #[non_exhaustive]
    Acked {
        /// Events that the server accepted.
        accepted: usize,
        /// Events that the server rejected for good.
        rejected: usize,
        /// Events that the server wants to be sent again.
        retried: usize,
    },
    /// A request failed in a way that a retry may mend.
    #[non_exhaustive]
    Failed {
        /// The HTTP status, or `None` where no response came.
        status: Option<u16>,
        /// The cause, as text.
        reason: String,
        /// The time until the next request.
        retry_in: Duration,
    },
    /// The endpoint is held: a retry alone does not mend it.
    #[non_exhaustive]
    Held {
        /// The cause.
        reason: HeldReason,
        /// The time until the next request.
        retry_in: Duration,
    },
    /// The endpoint takes batches again after a failure.
    Recovered,
    /// The server found a body too large, and the batch was split.
    #[non_exhaustive]
    Split {
        /// The largest body from now on, in bytes before compression.
        limit: usize,
    },
    /// Events were written to the spool.
    #[non_exhaustive]
    Spooled {
        /// The number of events.
        events: u64,
    },
    /// Events of a process that is gone were taken over.
    #[non_exhaustive]
    Adopted {
        /// The number of events.
        events: u64,
    },
    /// Events were read back from the spool, to be sent.
    #[non_exhaustive]
    Replaying {
        /// The number of events.
        events: u64,
    },
    /// Events were dropped: before a batch held them, in memory, in the spool, or in the spool of another process.
    #[non_exhaustive]
    Dropped {
        /// The cause.
        reason: DropReason,
        /// The number of events. 0 where another process's file cannot be read: its number of events is not known.
        events: u64,
    },
    /// Events became dead letters.
    #[non_exhaustive]
    Dead {
        /// The number of events.
        events: u64,
        /// The cause: `oversize` or `refused`.
        reason: &'static str,
        /// The HTTP status of the response that refused them, where there was one.
        status: Option<u16>,
    },
    /// The spool stopped working. Events stay in memory until [`SpoolRecovered`](BeaconEvent::SpoolRecovered).
    #[non_exhaustive]
    SpoolFailed {
        /// The cause, as text.
        reason: String,
    },
    /// The spool works again.
    SpoolRecovered,
    /// A route's data exceeds 8 KiB or its name 128 bytes. Reported once a route.
    #[non_exhaustive]
    Oversized {
        /// The route, cut at 128 bytes.
        route: String,
        /// The size of the encoded event.
        data_bytes: usize,
        /// The size of the route's name.
        route_bytes: usize,
    },
    /// The server asks for an experiment to be stopped.
    #[non_exhaustive]
    Kill {
        /// The epoch of the experiment.
        epoch: String,
    },
    /// The beacon has shut down. The last event.
    ShutDown,
}
