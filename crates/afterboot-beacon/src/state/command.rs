//! What the handles ask of the driver.

use std::time::Duration;

use super::reply::Responder;
use super::signal::ShutDownResult;
use crate::engine::Moment;
#[cfg(feature = "spool")]
use crate::spool::{DeadId, DeadLetter};
use crate::wire::Counters;

/// A request to the driver.
#[derive(Debug)]
pub(crate) enum Command {
    Flush {
        deadline: Moment,
        responder: Responder<bool>,
    },
    Drain(Drain),
    /// Without a responder: the process ends once the beacon has shut down.
    OnSignal {
        deadline: Duration,
        responder: Option<Responder<ShutDownResult>>,
    },
    #[cfg(feature = "spool")]
    Dead(DeadCommand),
    Erase {
        user: String,
        responder: Responder<Result<u64, String>>,
    },
}

/// A request about dead letters.
#[cfg(feature = "spool")]
#[derive(Debug)]
pub(crate) enum DeadCommand {
    List { after: Option<DeadId>, limit: usize, responder: Responder<Result<Vec<DeadLetter>, String>> },
    Replay { ids: Vec<DeadId>, responder: Responder<Result<u64, String>> },
    Purge { ids: Option<Vec<DeadId>>, responder: Responder<Result<u64, String>> },
}

/// A checkpoint or a shutdown: what is in memory is sent or saved.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) deadline: Moment,
    /// A shutdown: nothing is taken in any more, and the driver ends.
    pub(crate) ends: bool,
    /// Whether there is time to send. A beacon that is dropped only saves.
    pub(crate) sends: bool,
    pub(crate) responder: Option<Responder<Counters>>,
}
