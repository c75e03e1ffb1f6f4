//! The declaration of a task.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::clock::Stamp;
use crate::core::table::{After, ComesAfter, Record, Spec, Start, Status, Successor};
use crate::model::id::Id;
use crate::model::outcome::{Outcome, SkipReason};
use crate::model::queue::Queue;

use super::actions::Actions;
use super::lifecycle::Phase;
use super::notes::Note;
use super::scheduler::{Core, Timer};
use super::turn::Class;

impl Core {
    /// Takes a task in. It may be over at once: a false condition, a predecessor that did not complete, a
    /// wrong declaration, a governor that is shutting down.
    pub(crate) fn declare(&mut self, spec: Spec, now: Stamp, actions: &mut Actions) -> Id {
        let Spec {
            name,
            queue,
            condition,
            blocking,
            timeout,
            no_later_than,
            never_delay,
            after,
            declared_in,
            invalid,
        } = spec;
        let verdict = self.verdict(condition, invalid);
        let mut record = Record::new(self.table.name(name), self.table.declared(), queue, now);
        record.blocking = blocking;
        record.never_delay = never_delay;
        let declarer = declared_in.and_then(|id| self.table.get(id));
        record.in_scope = self.scope.takes(declarer);
        if timeout.is_some() {
            record.ties_mut().timeout = timeout;
        }
        if let Some(declarer) = declarer.filter(|_| self.records_segments) {
            record.ties_mut().declared_in = Some(declarer.number);
        }
        let id = self.table.insert(record);
        let verdict = self.tie(id, after, verdict);
        self.note(Note::Declared(id));
        self.next_start.get_or_insert_with(|| now.after(self.profile.delay));
        if queue == Queue::Idle {
            self.idle_joins(now);
        }
        self.scope.declared(self.table.live(id));
        match verdict {
            Some(outcome) => self.end(id, outcome, now, actions),
            None => {
                if queue == Queue::Normal {
                    self.promote_predecessors(id, false, now);
                }
                if let Some(limit) = no_later_than {
                    let at = now.after(limit);
                    let ties = self.table.live(id).ties_mut();
                    ties.no_later = Some(at);
                    ties.no_later_than = Some(limit);
                    self.timers.insert((at, id, Timer::NoLaterThan));
                }
                if self.table.live(id).unsettled() == 0 {
                    self.settled(id, now);
                }
                actions.lane = true;
            }
        }
        id
    }

    /// What is known of the outcome before any predecessor is looked at.
    fn verdict(&self, condition: bool, invalid: Option<Box<str>>) -> Option<Outcome> {
        match (invalid, self.lifecycle.phase) {
            (Some(why), _) => Some(Outcome::Invalid(why.into())),
            (None, Phase::Closed(why)) => Some(Outcome::Cancelled(why)),
            (None, Phase::Open) if !condition => Some(Outcome::Skipped(SkipReason::Condition)),
            (None, Phase::Open) => None,
        }
    }

    /// Ties the task to its predecessors; one that has already ended otherwise than completed skips it.
    fn tie(&mut self, id: Id, after: Vec<After>, mut verdict: Option<Outcome>) -> Option<Outcome> {
        let mut tied = HashSet::new();
        let mut comes_after = ComesAfter::default();
        for After { id: predecessor, outcome: told, accepts_any_outcome } in after {
            let known = self.table.get(predecessor);
            // Forgotten since, its handle still knows how it ended.
            let outcome = known.map_or(told, |record| record.outcome.clone());
            let name = known.map_or("a task that is no longer listed".into(), |record| record.name.clone());
            let number = known.map(|record| record.number);
            let excluded_from_started = known.is_some_and(|record| record.start == Start::Excluded);
            let awaits_the_end =
                known.is_some_and(|record| record.awaits_the_end && record.outcome.is_none());
            // Forgotten, it has ended; where even its handle did not know how when it was asked, not as it should.
            let forgotten = known.is_none();
            let ended = outcome.is_some() || forgotten;
            let completed = outcome.map_or(!forgotten, |outcome| outcome.is_completed());
            if verdict.is_none() && !completed && !accepts_any_outcome {
                verdict = Some(Outcome::Skipped(SkipReason::Predecessor(name.shared())));
            }
            let record = self.table.live(id);
            if excluded_from_started {
                record.start = Start::Excluded;
            }
            record.awaits_the_end |= awaits_the_end;
            let ties = record.ties_mut();
            comes_after.names.push(name);
            comes_after.numbers.extend(number);
            comes_after.accepts_any_outcome.extend(number.filter(|_| accepts_any_outcome));
            if ended {
                continue;
            }
            if tied.insert(predecessor) {
                ties.predecessors.push(predecessor);
                ties.unsettled += 1;
                self.add_successor(predecessor, Successor { id, accepts_any_outcome });
            } else if !accepts_any_outcome {
                // Named twice: the stricter word holds. This task is the last that came after the other one.
                let successors = &mut self.table.live(predecessor).ties_mut().successors;
                if let Some(successor) = successors.iter_mut().rev().find(|successor| successor.id == id) {
                    successor.accepts_any_outcome = false;
                }
            }
        }
        if !comes_after.names.is_empty() {
            self.table.live(id).ties_mut().comes_after = Some(Arc::new(comes_after));
        }
        verdict
    }

    /// Those that have ended meanwhile must not add up behind a predecessor that runs for ever.
    fn add_successor(&mut self, predecessor: Id, successor: Successor) {
        let mut successors = std::mem::take(&mut self.table.live(predecessor).ties_mut().successors);
        if successors.len() == successors.capacity() {
            successors
                .retain(|known| self.table.get(known.id).is_some_and(|record| record.outcome.is_none()));
        }
        successors.push(successor);
        self.table.live(predecessor).ties_mut().successors = successors;
    }

    /// What a task comes after is as urgent as the task itself: predecessors that have not started move into the
    /// normal queue, with their numbers; to its head where the task is past its own deadline.
    pub(super) fn promote_predecessors(&mut self, id: Id, head: bool, now: Stamp) {
        let predecessors_of = |core: &Core, id: Id| -> Vec<Id> {
            core.table
                .get(id)
                .and_then(|record| record.ties.as_ref())
                .map_or(Vec::new(), |ties| ties.predecessors.clone())
        };
        let mut promoted = predecessors_of(self, id);
        // Those that run already too.
        self.raise_all(promoted.clone(), Class::Normal);
        while let Some(id) = promoted.pop() {
            if self.promote(id, head, now) {
                promoted.extend(predecessors_of(self, id));
            }
        }
    }

    /// Moves an unstarted task into the normal queue; false where there is nothing to move.
    fn promote(&mut self, id: Id, head: bool, now: Stamp) -> bool {
        let Some(record) = self.table.get_mut(id) else { return false };
        if record.status().has_started() || (record.line == Queue::Normal && record.head >= head) {
            return false;
        }
        let queued = record.status() == Status::Queued;
        if queued {
            self.dequeue(id);
        }
        let record = self.table.live(id);
        let rests = record.status() == Status::Resting;
        if std::mem::replace(&mut record.line, Queue::Normal) == Queue::Idle && !rests {
            self.idle_leaves(now);
        }
        self.table.live(id).head |= head;
        if queued {
            self.enqueue(id);
        }
        true
    }

    /// An idle task's own deadline has passed: it goes to the head of the normal queue and still takes a slot.
    pub(super) fn no_later(&mut self, id: Id, now: Stamp) {
        self.raise_all(vec![id], Class::Normal);
        self.promote(id, true, now);
        self.promote_predecessors(id, true, now);
    }

    /// Nothing but its queue holds the task any more.
    pub(super) fn settled(&mut self, id: Id, now: Stamp) {
        let record = self.table.live(id);
        record.queued = Some(now);
        if record.demanded {
            self.jump(id);
        } else {
            self.enqueue(id);
        }
    }
}
