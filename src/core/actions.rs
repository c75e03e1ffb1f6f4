//! The actions that follow from an event, for the shell to execute.

use crate::base::clock::Stamp;
use crate::model::id::Id;
use crate::model::name::Name;
use crate::model::outcome::Outcome;

use super::starved::Starved;

/// What the shell has to do once it has let go of the lock.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    /// Handles to resolve without a further poll.
    pub(crate) resolve: Vec<Resolve>,
    /// Running tasks that the lane should poll although nothing woke them: a limit has passed.
    pub(crate) repoll: Vec<Id>,
    /// Tasks whose handles are resolved and whose bodies nobody will see out: what is left of them is dropped.
    pub(crate) dropped: Vec<Id>,
    /// The lane should look again, or be started.
    pub(crate) lane: bool,
    /// To be told in the log.
    pub(crate) starved: Option<Box<Starved>>,
    /// Somebody may be waiting for `started()` or `finished()`.
    pub(crate) run_changed: bool,
    /// Tasks to warn of, because they run long.
    pub(crate) slow: Vec<Id>,
}

/// A handle to resolve, and whether the task's body goes on.
#[derive(Debug)]
pub(crate) struct Resolve {
    pub(crate) id: Id,
    pub(crate) name: Name,
    pub(crate) outcome: Outcome,
    /// The body still runs and cannot be dropped: it blocks, or it is inside a poll.
    pub(crate) still_running: bool,
}

/// What becomes of a slot after a poll.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterPoll {
    /// The task goes on.
    Keep,
    /// The task is over and its handle gets this outcome.
    Resolve(Outcome),
    /// The task is over and its handle was resolved before.
    Release,
    /// An attempt is over; the task rests without a slot.
    Rest,
}

/// When the lane has something to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A task may start now.
    Now,
    /// Nothing before this moment, unless an event comes.
    At(Stamp),
    /// Nothing unless an event comes.
    Event,
    /// Nothing is declared that has not ended.
    Over,
}
