//! The two queues: who is next among the tasks that may start.

use std::collections::BTreeSet;

use crate::table::Id;

/// In which of the two queues a task waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Queue {
    /// Starts as soon as a slot and the pulse allow it.
    Normal,
    /// Starts once the gate is open: when the application is quiet, or at the timeout.
    Idle,
}

/// A task's place in its queue: those past their own deadline first, then first declared, first out, whenever
/// it became able to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    patient: bool,
    number: u64,
    id: Id,
}

impl Ticket {
    pub(crate) fn new(head: bool, number: u64, id: Id) -> Ticket {
        Ticket { patient: !head, number, id }
    }
}

/// The tasks of one queue that may start, in order of declaration.
#[derive(Debug, Default)]
pub(crate) struct Line(BTreeSet<Ticket>);

impl Line {
    pub(crate) fn push(&mut self, ticket: Ticket) {
        self.0.insert(ticket);
    }

    pub(crate) fn first(&self) -> Option<Id> {
        self.0.first().map(|ticket| ticket.id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) -> bool {
        self.0.remove(&ticket)
    }
}
