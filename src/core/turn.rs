//! Who is polled next: the one place that decides it, for the lane, for the replay and for the laws.
//!
//! A task has a class, and the most urgent class goes first; within one, starts and woken tasks alternate, and who was
//! woken first goes first. Those behind get a poll only while they have had less than a sixteenth of the time for which
//! they and the more urgent ones both wanted the lane: nobody starves, and nobody is slowed by much.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::model::id::Id;
use crate::model::queue::Queue;

/// How urgent a task is: it and all that wait for it. It rises and never falls: a demand outlives whoever asked, and so
/// does the urgency that a wait has handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Idle,
    Normal,
    Demanded,
}

/// The most urgent first.
pub(super) const CLASSES: [Class; 3] = [Class::Demanded, Class::Normal, Class::Idle];

impl From<Queue> for Class {
    fn from(queue: Queue) -> Class {
        match queue {
            Queue::Normal => Class::Normal,
            Queue::Idle => Class::Idle,
        }
    }
}

/// A task to poll now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) id: Id,
    /// It has just got its slot.
    pub(crate) starts: bool,
    /// When it was woken, where that is recorded.
    pub(crate) woken: Option<Stamp>,
}

/// A task that wants a poll.
#[derive(Debug)]
pub(super) struct Woken {
    pub(super) id: Id,
    pub(super) at: Option<Stamp>,
}

/// Who is woken, by how many wakes came before. Any of a hundred thousand may leave, and enter another class at the place of
/// its wake.
type WokenQueue = BTreeMap<u64, Woken>;

/// How the poll that comes next counts: of which class it is, and at which borders, each behind a class but the last, both
/// sides wanted the lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Charge {
    class: Option<Class>,
    contested: [bool; 2],
}

/// Those behind a border may have this part of the time.
const PART: i64 = 16;

/// A poll counts as this long at least: also where the clock stands still, everybody gets a turn in the end.
const LEAST: Duration = Duration::from_micros(1);

/// What the polls of those behind are taken to last before one of them was seen.
const UNKNOWN: Duration = Duration::from_millis(1);

/// The account at a border.
#[derive(Debug)]
struct Share {
    /// What the lane spent while both sides wanted it, less [`PART`] times what of that it spent on those behind, in
    /// nanoseconds.
    owed: i64,
    /// What a poll of those behind may take, by the last ones: it is owed before it is given. So a demanded task is not
    /// slowed by a long poll for which it did not last long enough.
    next: i64,
}

impl Default for Share {
    fn default() -> Share {
        Share { owed: 0, next: nanos(UNKNOWN) }
    }
}

impl Share {
    /// Whether those behind will have had no more than their part when their next poll is over.
    fn is_open(&self) -> bool {
        self.owed > self.next.saturating_mul(PART - 1)
    }

    pub(super) fn charge(&mut self, took: i64, behind: bool, contested: bool) {
        if behind {
            self.next = took.max(self.next / 2);
        }
        if contested {
            let theirs = if behind { took.saturating_mul(PART) } else { 0 };
            self.owed = self.owed.saturating_add(took).saturating_sub(theirs);
        }
    }

    /// Only one side wants the lane: nothing is saved up, and nothing forgiven.
    fn uncontested(&mut self) {
        self.owed = self.owed.min(0);
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// What of one class could be polled now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Could {
    start: bool,
    woken: bool,
}

impl Could {
    fn any(self) -> bool {
        self.start || self.woken
    }
}

#[derive(Debug)]
pub(super) struct Turns {
    /// Of each class.
    pub(super) woken: [WokenQueue; 3],
    /// Where each of them stands.
    ranks: BTreeMap<Id, u64>,
    wakes: u64,
    /// Whether in each class it is a start's turn, if one can come.
    pub(super) start_first: [bool; 3],
    shares: [Share; 2],
    /// Of the poll that was picked last.
    pub(super) charge: Charge,
    /// A lent slot is filled when all that were woken before this one have been polled; none where none is held back.
    pub(super) held_back: Option<u64>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            woken: Default::default(),
            ranks: BTreeMap::new(),
            wakes: 0,
            start_first: [true; 3],
            shares: Default::default(),
            charge: Charge::default(),
            held_back: None,
        }
    }
}

impl Turns {
    fn line(&mut self, class: Class) -> &mut WokenQueue {
        &mut self.woken[class as usize]
    }

    pub(super) fn anyone_woken(&self) -> bool {
        self.woken.iter().any(|line| !line.is_empty())
    }

    /// The task has been woken now.
    pub(super) fn enter(&mut self, class: Class, woken: Woken) {
        let rank = self.wakes;
        self.wakes += 1;
        self.ranks.insert(woken.id, rank);
        self.line(class).insert(rank, woken);
    }

    pub(super) fn leave(&mut self, class: Class, id: Id) {
        if let Some(rank) = self.ranks.remove(&id) {
            self.line(class).remove(&rank);
        }
    }

    /// At the place that its wake gives it.
    pub(super) fn change(&mut self, id: Id, before: Class, class: Class) {
        let rank = self.ranks.get(&id).expect("who is woken has a place");
        let woken = self.woken[before as usize].remove(rank).expect("who is woken stands in its class");
        self.woken[class as usize].insert(*rank, woken);
    }

    /// What could be polled: what could start, and who was woken; with the idle ones among the normal ones where they count
    /// as such.
    pub(super) fn could(&self, demanded: bool, ordinary: Option<Class>, idle_counts: bool) -> [Could; 3] {
        let woken = self.woken.each_ref().map(|line| !line.is_empty());
        let [idle, normal, urgent] = woken;
        [
            Could { start: ordinary == Some(Class::Idle), woken: idle && !idle_counts },
            Could { start: ordinary == Some(Class::Normal), woken: normal || (idle && idle_counts) },
            Could { start: demanded, woken: urgent },
        ]
    }

    /// Whether it is a start's turn in this class.
    pub(super) fn starts(&self, class: Class, could: [Could; 3]) -> bool {
        let Could { start, woken } = could[class as usize];
        start && (self.start_first[class as usize] || !woken)
    }

    /// The class whose turn it is, and how its poll counts.
    pub(super) fn choose(&mut self, could: [Could; 3]) -> Option<(Class, Charge)> {
        let [idle, normal, demanded] = could.map(Could::any);
        let mut contested = [false; 2];
        let mut pick = Class::Idle;
        for (border, here, behind) in [(0, demanded, normal || idle), (1, normal, idle)] {
            let share = &mut self.shares[border];
            contested[border] = here && behind;
            if !contested[border] {
                share.uncontested();
            }
            if here && !(behind && share.is_open()) {
                pick = CLASSES[border];
                break;
            }
        }
        could[pick as usize].any().then_some((pick, Charge { class: Some(pick), contested }))
    }

    /// The lane has spent this much on a poll.
    pub(super) fn charge(&mut self, Charge { class, contested }: Charge, took: Duration) {
        let Some(class) = class else { return };
        let took = nanos(took.max(LEAST));
        for (border, share) in self.shares.iter_mut().enumerate() {
            share.charge(took, class < CLASSES[border], contested[border]);
        }
    }

    /// Whoever of this class was woken first; idle tasks stand in for normal ones where they count as such.
    pub(super) fn pop(&mut self, class: Class, idle_counts: bool) -> Option<Woken> {
        let rank = |line: &WokenQueue| line.first_key_value().map_or(u64::MAX, |(rank, _)| *rank);
        let idle = idle_counts
            && class == Class::Normal
            && rank(&self.woken[Class::Idle as usize]) < rank(&self.woken[Class::Normal as usize]);
        let (_, woken) = self.line(if idle { Class::Idle } else { class }).pop_first()?;
        self.ranks.remove(&woken.id);
        Some(woken)
    }

    /// Whether a lent slot has to wait for those who were woken, as urgent as the start that would fill it: one of them
    /// may be about to come back to it. Not for those who wake themselves meanwhile.
    pub(super) fn holds_back(&mut self, start: Class) -> bool {
        let before = *self.held_back.get_or_insert(self.wakes);
        let waits = |class: &&Class| {
            self.woken[**class as usize].first_key_value().is_some_and(|(rank, _)| *rank < before)
        };
        CLASSES.iter().filter(|class| **class >= start).any(|class| waits(&class))
    }
}
