//! What a call carries with it.

use crate::engine::{Batch, DeadBatch};
use crate::state::command::DeadCommand;
use crate::state::reply::Responder;

/// What a call carries, to be given back if it fails.
#[derive(Debug)]
pub(super) enum Payload {
    Nothing,
    /// The call took too long, and this went on without it.
    Abandoned,
    Rows(Vec<i64>),
    Batches(Vec<Batch>),
    Dead(Vec<DeadBatch>),
    Erase {
        responder: Responder<Result<u64, String>>,
        in_memory: u64,
    },
    Command(DeadCommand),
}
