//! What is known of each declared task, one record a task.

mod segment;

use std::borrow::Cow;
use std::time::Duration;

use crate::base::chunks::Chunks;
use crate::base::clock::Stamp;
use crate::core::Class;
use crate::core::ready_queue::Ticket;
use crate::model::id::Id;
use crate::model::name::Name;
use crate::model::outcome::Outcome;
use crate::model::queue::Queue;

use super::names::Names;

pub(crate) use segment::Segment;

/// Where a task stands on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// A predecessor has not settled.
    Waiting,
    /// In its queue.
    Queued,
    /// The monkey holds it.
    Delayed,
    /// In the line of demanded tasks.
    Demanded,
    /// Between two attempts: it has been running, and holds no slot.
    Resting,
    /// Holds a slot.
    Running,
    /// Its handle is resolved, its code may still run: it goes on holding its slot.
    Overdue,
    /// Over.
    Ended,
}

impl Status {
    pub(crate) fn has_started(self) -> bool {
        matches!(self, Status::Running | Status::Overdue | Status::Ended)
    }
}

/// What the declaration asks for and the core needs to know.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) name: Cow<'static, str>,
    pub(crate) queue: Queue,
    pub(crate) condition: bool,
    pub(crate) blocking: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) no_later_than: Option<Duration>,
    /// The monkey must leave it alone.
    pub(crate) never_delay: bool,
    pub(crate) after: Vec<After>,
    /// The governed task that declares this one.
    pub(crate) declared_in: Option<Id>,
    /// What is wrong with the declaration.
    pub(crate) invalid: Option<Box<str>>,
}

/// A predecessor as it is declared.
#[derive(Debug, Clone)]
pub(crate) struct After {
    pub(crate) id: Id,
    /// How it had ended when the task was declared, if it had.
    pub(crate) outcome: Option<Outcome>,
    /// It need not complete, only end.
    pub(crate) settled_will_do: bool,
}

/// Somebody who comes after a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Successor {
    pub(crate) id: Id,
    pub(crate) settled_will_do: bool,
}

/// Ties to other tasks and limits: most tasks have none, so they cost one pointer.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    pub(crate) predecessors: Vec<Id>,
    /// Names of the predecessors, for the report: they may be forgotten before this task is.
    pub(crate) waited_for: Vec<Name>,
    /// Their numbers, where they were known.
    pub(crate) after: Vec<u64>,
    /// Those of them whose mere end will do.
    pub(crate) after_settled: Vec<u64>,
    /// When it was polled, where that is recorded.
    pub(crate) segments: Vec<Segment>,
    /// The number of the task that declared it, where segments are recorded.
    pub(crate) declared_in: Option<u64>,
    /// When it was first demanded, where segments are recorded.
    pub(crate) demanded_at: Option<Stamp>,
    /// As declared.
    pub(crate) no_later_than: Option<Duration>,
    /// Names of the tasks whose handles it waited for while it ran.
    pub(crate) awaited: Vec<Name>,
    /// How many of its waits for the end of the run it has not given up.
    pub(crate) ends_awaited: u32,
    pub(crate) unsettled: usize,
    pub(crate) successors: Vec<Successor>,
    pub(crate) timeout: Option<Duration>,
    /// When the timeout passes.
    pub(crate) deadline: Option<Stamp>,
    /// When the task goes to the head of the normal queue.
    pub(crate) no_later: Option<Stamp>,
    /// When the rest between two attempts is over.
    pub(crate) again: Option<Stamp>,
}

/// All that is known of one task.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: Name,
    /// How many were declared before it.
    pub(crate) number: u64,
    pub(crate) declared: Stamp,
    /// When nothing but its queue held it any more: its predecessors had settled.
    pub(crate) queued: Option<Stamp>,
    pub(crate) started: Option<Stamp>,
    pub(crate) finished: Option<Stamp>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) longest_poll: Duration,
    pub(crate) ties: Option<Box<Ties>>,
    pub(crate) polls: u32,
    /// How often its code was begun.
    pub(crate) attempts: u32,
    /// It has started, or started again, and not been polled since.
    pub(crate) fresh: bool,
    /// It is not among those that `started()` waits for any more.
    pub(crate) start_counted: bool,
    /// As declared.
    pub(crate) queue: Queue,
    /// The queue it waits in: a predecessor is drawn into the more urgent queue of its successors.
    pub(crate) line: Queue,
    pub(crate) status: Status,
    /// How urgent its polls are.
    pub(crate) class: Class,
    /// It waits for a poll.
    pub(crate) woken: bool,
    pub(crate) blocking: bool,
    pub(crate) demanded: bool,
    /// The governor itself demanded it, because normal tasks had left it no slot for too long.
    pub(crate) held_too_long: bool,
    /// Past its own deadline: at the head of its line.
    pub(crate) head: bool,
    pub(crate) never_delay: bool,
    pub(crate) cancel_asked: bool,
    /// Its poll was given up by the lane and has not returned.
    pub(crate) stuck: bool,
    pub(crate) was_stuck: bool,
    /// It was named for running long.
    pub(crate) slow: bool,
    /// It was named because it waited for a slot for a minute and nobody's turn came.
    pub(crate) starved: bool,
    pub(crate) in_scope: bool,
    /// Left out of what `started()` waits for: the monkey's victim and what comes after it.
    pub(crate) aside: bool,
    /// Left out of what `finished()` waits for: it awaits the end of the run itself, or comes after one that does.
    pub(crate) awaits_the_end: bool,
}

impl Record {
    pub(crate) fn ties_mut(&mut self) -> &mut Ties {
        self.ties.get_or_insert_default()
    }

    pub(crate) fn unsettled(&self) -> usize {
        self.ties.as_ref().map_or(0, |ties| ties.unsettled)
    }

    pub(crate) fn ticket(&self, id: Id) -> Ticket {
        Ticket::new(self.head, self.number, id)
    }
}

/// Records by id.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: Chunks<Place>,
    free: Vec<u32>,
    declared: u64,
    names: Names,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    record: Option<Record>,
}

impl Table {
    /// The number that the next record will carry.
    pub(crate) fn declared(&self) -> u64 {
        self.declared
    }

    /// What a task declared under this name is called among all that are known.
    pub(crate) fn name(&mut self, declared: Cow<'static, str>) -> Name {
        self.names.take(declared)
    }

    pub(crate) fn insert(&mut self, record: Record) -> Id {
        self.declared += 1;
        if let Some(index) = self.free.pop() {
            let place = self.places.get_mut(index as usize).expect("a free place is a place");
            place.record = Some(record);
            return Id::new(index, place.generation);
        }
        let index = u32::try_from(self.places.len()).expect("fewer than four thousand million tasks at once");
        self.places.push(Place { generation: 0, record: Some(record) });
        Id::new(index, 0)
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Record> {
        let place = self.places.get(id.place())?;
        place.record.as_ref().filter(|_| place.generation == id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut Record> {
        let place = self.places.get_mut(id.place())?;
        place.record.as_mut().filter(|_| place.generation == id.generation)
    }

    /// Forgets a task that has ended. Its place is used again under another generation; a place whose
    /// generations are used up is not.
    pub(crate) fn forget(&mut self, id: Id) {
        let place = self.places.get_mut(id.place());
        let Some(place) = place.filter(|place| place.generation == id.generation) else { return };
        let Some(record) = place.record.take() else { return };
        self.names.give_back(&record.name);
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(id.index);
        }
    }

    /// A record that must be there: its task has not been forgotten.
    pub(crate) fn live(&mut self, id: Id) -> &mut Record {
        self.get_mut(id).expect("a task that has not ended has a record")
    }

    /// All records, in no promised order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &Record)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let record = place.record.as_ref()?;
            Some((Id::new(u32::try_from(index).ok()?, place.generation), record))
        })
    }

    /// How many places there are: ids below it may be live.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn id_at(&self, place: usize) -> Option<Id> {
        let generation = self.places.get(place).filter(|p| p.record.is_some())?.generation;
        Some(Id::new(u32::try_from(place).ok()?, generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I22: a queued task costs its record, its entry, its cell and the box of its body.
    #[test]
    fn a_record_stays_small() {
        assert!(size_of::<Place>() <= 152, "{}", size_of::<Place>());
        assert!(
            size_of::<crate::shell::cell::Cell<()>>() <= 128,
            "{}",
            size_of::<crate::shell::cell::Cell<()>>()
        );
    }
}
