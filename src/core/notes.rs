//! What the core records beside its decisions: notes for event listeners, and the governor's overhead.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::model::id::Id;
use crate::model::outcome::Outcome;

use super::starved::Starved;

/// Something happened that a listener may want to know. The public events are made of these outside the core.
#[derive(Debug)]
pub(crate) enum Note {
    Declared(Id),
    Started(Id),
    Delayed(Id),
    Ended(Id, Outcome),
    GateOpened,
    Stuck(Id),
    Slow(Id),
    Starved(Box<Starved>),
    LongTask {
        start: Stamp,
        length: Duration,
        who: Arc<str>,
    },
    /// The whole process did not run.
    Stopped {
        start: Stamp,
        length: Duration,
    },
    ShuttingDown,
}

/// What the governor itself has spent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) polls: u64,
    pub(crate) looks: u64,
    /// Turns of the lane whose own time was measured, and that time.
    pub(crate) measured: u32,
    pub(crate) measured_time: Duration,
}

impl Cost {
    /// Turns between two that are measured: reading the clock costs as much as the turn's other work.
    const EVERY: u64 = 64;

    /// Whether the lane should measure the turn that comes now.
    pub(crate) fn measures_next(&self) -> bool {
        self.polls.is_multiple_of(Cost::EVERY)
    }

    /// The lane's own time, taken from the turns that were measured.
    pub(crate) fn lane_time(&self) -> Duration {
        match self.measured {
            0 => Duration::ZERO,
            measured => Duration::from_secs_f64(
                self.measured_time.as_secs_f64() * self.polls as f64 / f64::from(measured),
            ),
        }
    }
}

/// What happened, for those who listen; empty where nobody does.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) notes: Vec<Note>,
    pub(super) listening: bool,
}
