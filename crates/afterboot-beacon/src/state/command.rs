//! What the application's handles ask of the driver.

use std::time::Duration;

use super::reply::Answerer;
use super::signal::LeftAnswer;
use crate::engine::Moment;
#[cfg(feature = "spool")]
use crate::spool::{DeadId, DeadLetter};
use crate::wire::Counters;

/// What the application asks the driver for.
#[derive(Debug)]
pub(crate) enum Command {
    Flush {
        deadline: Moment,
        answer: Answerer<bool>,
    },
    Leave(Leave),
    /// Without an answer: the process ends when the beacon has left.
    OnSignal {
        deadline: Duration,
        answer: Option<Answerer<LeftAnswer>>,
    },
    #[cfg(feature = "spool")]
    Dead(DeadCommand),
    Erase {
        user: String,
        answer: Answerer<Result<u64, String>>,
    },
}

/// What the application asks of the dead letters.
#[cfg(feature = "spool")]
#[derive(Debug)]
pub(crate) enum DeadCommand {
    List { after: Option<DeadId>, limit: usize, answer: Answerer<Result<Vec<DeadLetter>, String>> },
    Replay { ids: Vec<DeadId>, answer: Answerer<Result<u64, String>> },
    Purge { ids: Option<Vec<DeadId>>, answer: Answerer<Result<u64, String>> },
}

/// A wish to leave.
#[derive(Debug)]
pub(crate) struct Leave {
    pub(crate) deadline: Moment,
    /// For good: nothing is taken in any more, and the driver ends.
    pub(crate) ends: bool,
    /// Is there time to send? A beacon that is dropped only saves.
    pub(crate) sends: bool,
    pub(crate) answer: Option<Answerer<Counters>>,
}
