//! The ledger: where every event is. Balanced by construction: events enter as posted or adopted and are then only moved.

use std::collections::BTreeMap;

use crate::wire::Counters;

/// Why the beacon dropped an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue was full, and no event of lower priority could make room.
    QueueFull,
    /// It made room for a vital event.
    Displaced,
    /// Its expiry passed.
    Expired,
    /// The spool reached its size limit.
    SpoolFull,
    /// The shutdown's deadline passed before it was sent or spooled.
    Shutdown,
    /// It was posted after the shutdown.
    Closed,
    /// Its data could not be encoded, or its `Serialize` panicked.
    Unencodable,
    /// It is larger than a dead letter may be.
    TooLarge,
    /// Its user was erased.
    Erased,
    /// Its row or file in the spool was damaged.
    Corrupt,
    /// It was the oldest dead letter, and their limit was reached.
    DeadFull,
    /// The queue of early posts was full.
    EarlyFull,
}

impl DropReason {
    /// Returns its name in [`Counters::dropped`] and in a declared gap.
    pub fn as_str(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Displaced => "displaced",
            DropReason::Expired => "expired",
            DropReason::SpoolFull => "spool_full",
            DropReason::Shutdown => "shutdown",
            DropReason::Closed => "closed",
            DropReason::Unencodable => "unencodable",
            DropReason::TooLarge => "too_large",
            DropReason::Erased => "erased",
            DropReason::Corrupt => "corrupt",
            DropReason::DeadFull => "dead_full",
            DropReason::EarlyFull => "early_full",
        }
    }
}

/// A place where an event can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Queued,
    InFlight,
    Spooled,
    Acked,
    Rejected,
    Merged,
    Dead,
    Dropped(DropReason),
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    posted: u64,
    adopted: u64,
    acked: u64,
    rejected: u64,
    merged: u64,
    dead: u64,
    spooled: u64,
    queued: u64,
    in_flight: u64,
    dropped: BTreeMap<DropReason, u64>,
}

impl Ledger {
    /// The application posted.
    pub(crate) fn posted(&mut self, to: Place, events: u64) {
        // A reason for nothing is no reason.
        if events == 0 {
            return;
        }
        self.posted += events;
        *self.at(to) += events;
    }

    /// An older process's events, which are ours from now on.
    #[cfg(any(feature = "spool", test))]
    pub(crate) fn adopted(&mut self, to: Place, events: u64) {
        self.adopted += events;
        *self.at(to) += events;
    }

    pub(crate) fn shift(&mut self, from: Place, to: Place, events: u64) {
        if events == 0 {
            return;
        }
        let left = self.at(from);
        debug_assert!(*left >= events, "{events} leave {from:?}, which has {left}");
        *left = left.saturating_sub(events);
        *self.at(to) += events;
    }

    pub(crate) fn at(&mut self, place: Place) -> &mut u64 {
        match place {
            Place::Queued => &mut self.queued,
            Place::InFlight => &mut self.in_flight,
            Place::Spooled => &mut self.spooled,
            Place::Acked => &mut self.acked,
            Place::Rejected => &mut self.rejected,
            Place::Merged => &mut self.merged,
            Place::Dead => &mut self.dead,
            Place::Dropped(reason) => self.dropped.entry(reason).or_default(),
        }
    }

    pub(crate) fn has_posted(&self) -> bool {
        self.posted > 0
    }

    pub(crate) fn spooled(&self) -> u64 {
        self.spooled
    }

    /// Events that are to arrive yet.
    pub(crate) fn undelivered(&self) -> u64 {
        self.queued + self.in_flight + self.spooled
    }

    /// In memory, with a request or not.
    pub(crate) fn in_memory(&self) -> u64 {
        self.queued + self.in_flight
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            posted: self.posted,
            adopted: self.adopted,
            acked: self.acked,
            rejected: self.rejected,
            dropped: self.dropped.iter().map(|(why, events)| (why.as_str().to_owned(), *events)).collect(),
            merged: self.merged,
            dead: self.dead,
            spooled: self.spooled,
            queued: self.queued,
            in_flight: self.in_flight,
        }
    }
}
