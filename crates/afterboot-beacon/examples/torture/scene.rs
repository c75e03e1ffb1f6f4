//! What a run is like: the server's mode, how much is posted, and what must have become of it.

use std::time::Duration;

use crate::collector::Mode;

/// What the server does all the time, or by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Torture {
    Ok,
    Unavailable,
    Busy,
    Small,
    Partial,
    Hung,
    Refuse,
    Flap,
    Slow,
    Captive,
}

impl Torture {
    pub(crate) const ALL: [Torture; 10] = [
        Torture::Ok,
        Torture::Unavailable,
        Torture::Busy,
        Torture::Small,
        Torture::Partial,
        Torture::Hung,
        Torture::Refuse,
        Torture::Flap,
        Torture::Slow,
        Torture::Captive,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Torture::Ok => "ok",
            Torture::Unavailable => "503",
            Torture::Busy => "429",
            Torture::Small => "413",
            Torture::Partial => "partial",
            Torture::Hung => "hung",
            Torture::Refuse => "refuse",
            Torture::Flap => "flap",
            Torture::Slow => "slow",
            Torture::Captive => "captive",
        }
    }

    /// What the server begins with.
    pub(crate) fn server(self) -> Mode {
        match self {
            Torture::Ok | Torture::Flap => Mode::Ok,
            Torture::Unavailable => Mode::Unavailable,
            Torture::Busy => Mode::Busy,
            Torture::Small => Mode::Small(Mode::SMALL),
            Torture::Partial => Mode::Partial,
            Torture::Hung => Mode::Hung,
            Torture::Refuse => Mode::Refuse,
            // Two at a time, so that 1000 batches take 10 s.
            Torture::Slow => Mode::Slow(Duration::from_millis(20)),
            Torture::Captive => Mode::Captive,
        }
    }

    pub(crate) fn takes_events(self) -> bool {
        match self {
            Torture::Ok | Torture::Small | Torture::Partial | Torture::Flap | Torture::Slow => true,
            Torture::Unavailable | Torture::Busy | Torture::Hung | Torture::Refuse | Torture::Captive => {
                false
            }
        }
    }
}

/// How much the beacon may keep in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// For every event, so that none is dropped for want of room.
    Enough,
    /// As much as it keeps unless told.
    Default,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) torture: Torture,
    pub(crate) events: u64,
    pub(crate) spool: bool,
    pub(crate) room: Room,
}

impl Scene {
    /// After a batch of which a part is asked for again the endpoint gets a rest. What is older than 10 s then goes to the
    /// disk, and comes back batch by batch.
    pub(crate) fn may_leave_a_rest(&self) -> bool {
        self.torture == Torture::Partial && self.spool
    }
}
