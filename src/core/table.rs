//! The table of declared tasks, one record per task.

mod segment;
mod spec;

use std::borrow::Cow;
use std::sync::Arc;
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
pub(crate) use spec::{After, Spec};

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
    Detached,
    /// Over.
    Ended,
}

impl Status {
    pub(crate) fn has_started(self) -> bool {
        matches!(self, Status::Running | Status::Detached | Status::Ended)
    }

    /// Whether its code may be running.
    pub(crate) fn runs(self) -> bool {
        matches!(self, Status::Running | Status::Detached)
    }
}

/// Somebody who comes after a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Successor {
    pub(crate) id: Id,
    pub(crate) accepts_any_outcome: bool,
}

/// What a task was declared to come after, for the report.
#[derive(Debug, Default)]
pub(crate) struct ComesAfter {
    /// Names of the predecessors: they may be forgotten before this task is.
    pub(crate) names: Vec<Name>,
    /// Their numbers, where they were known.
    pub(crate) numbers: Vec<u64>,
    /// Those of them whose mere end will do.
    pub(crate) accepts_any_outcome: Vec<u64>,
}

/// Ties to other tasks and limits: most tasks have none, so they cost one pointer.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    pub(crate) predecessors: Vec<Id>,
    /// What it was declared to come after, where that is anything. Shared, because a report must not copy fifty thousand
    /// names under the lock.
    pub(crate) comes_after: Option<Arc<ComesAfter>>,
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

/// What a task's start is to those who wait for the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Awaited,
    /// It has come; another attempt is no start of the task.
    Come,
    /// Not waited for: the monkey's victim, and what comes after it.
    Excluded,
}

/// Whether a poll of the task was given up by the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stuck {
    Never,
    /// It has not returned.
    Now,
    Once,
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
    pub(crate) awaiting_first_poll: bool,
    /// Whether `started()` waits for it.
    pub(crate) start: Start,
    /// As declared.
    pub(crate) queue: Queue,
    /// The queue it waits in: a predecessor is promoted to the more urgent queue of its successors.
    pub(crate) line: Queue,
    /// Set by the table, which counts.
    status: Status,
    /// Where it stands among those that run.
    running_at: u32,
    /// How urgent its polls are.
    pub(crate) class: Class,
    /// It waits for a poll.
    pub(crate) woken: bool,
    pub(crate) blocking: bool,
    pub(crate) demanded: bool,
    /// The governor itself demanded it, because normal tasks had left it no slot for too long.
    pub(crate) demanded_by_governor: bool,
    /// Past its own deadline: at the head of its line.
    pub(crate) head: bool,
    pub(crate) never_delay: bool,
    pub(crate) cancel_asked: bool,
    pub(crate) stuck: Stuck,
    /// It was named for running long.
    pub(crate) slow: bool,
    /// It was named because it waited for a slot for a minute and nobody's turn came.
    pub(crate) starved: bool,
    pub(crate) in_scope: bool,
    /// Left out of what `finished()` waits for: it awaits the end of the run itself, or comes after one that does.
    pub(crate) awaits_the_end: bool,
}

impl Record {
    /// As it is declared: it waits.
    pub(crate) fn new(name: Name, number: u64, queue: Queue, declared: Stamp) -> Record {
        Record {
            name,
            number,
            declared,
            queued: None,
            started: None,
            finished: None,
            outcome: None,
            longest_poll: Duration::ZERO,
            ties: None,
            polls: 0,
            attempts: 0,
            awaiting_first_poll: false,
            start: Start::Awaited,
            queue,
            line: queue,
            status: Status::Waiting,
            running_at: 0,
            class: queue.into(),
            woken: false,
            blocking: false,
            demanded: false,
            demanded_by_governor: false,
            head: false,
            never_delay: false,
            cancel_asked: false,
            stuck: Stuck::Never,
            slow: false,
            starved: false,
            in_scope: false,
            awaits_the_end: false,
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

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

/// Records by id. It counts as it goes, so that nobody has to walk through a million records to know how many wait.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: Chunks<Place>,
    free: Vec<u32>,
    declared: u64,
    names: Names,
    /// How many records stand at each status.
    counts: [usize; Status::Ended as usize + 1],
    /// Those that run, in no promised order.
    running: Vec<Id>,
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
        self.counts[record.status as usize] += 1;
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
        debug_assert!(!record.status.runs(), "what runs is not forgotten");
        self.counts[record.status as usize] -= 1;
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

    /// The one way of a task from one status to another.
    pub(crate) fn set_status(&mut self, id: Id, status: Status) {
        let standing = self.running.len();
        let record = self.live(id);
        let before = std::mem::replace(&mut record.status, status);
        match (before.runs(), status.runs()) {
            (false, true) => {
                record.running_at = u32::try_from(standing).expect("fewer run than there are");
                self.running.push(id);
            }
            (true, false) => {
                let left = record.running_at;
                self.running.swap_remove(left as usize);
                if let Some(&moved) = self.running.get(left as usize) {
                    self.live(moved).running_at = left;
                }
            }
            _ => {}
        }
        self.counts[before as usize] -= 1;
        self.counts[status as usize] += 1;
    }

    /// How many tasks stand at this status, of those that are known.
    pub(crate) fn count(&self, status: Status) -> usize {
        self.counts[status as usize]
    }

    /// How many tasks have an unresolved handle, or code that may still run.
    pub(crate) fn unended(&self) -> usize {
        self.counts.iter().sum::<usize>() - self.count(Status::Ended)
    }

    /// The tasks whose code may be running, in no promised order.
    pub(crate) fn running(&self) -> &[Id] {
        &self.running
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

    /// The record that stands at this place.
    pub(crate) fn at(&self, place: usize) -> Option<&Record> {
        self.places.get(place)?.record.as_ref()
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
