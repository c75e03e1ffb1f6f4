//! A task is declared.

use std::time::Duration;

use crate::clock::Stamp;
use crate::outcome::{Outcome, SkipReason};
use crate::queue::Queue;
use crate::table::{Id, Record, Spec, Status};

use super::{Actions, Core, Phase};

impl Core {
    /// Takes a task in. It may be over at once: a false condition, a predecessor that did not complete, a
    /// wrong declaration, a governor that is shutting down.
    pub(crate) fn declare(&mut self, spec: Spec, now: Stamp, actions: &mut Actions) -> Id {
        let Spec { name, queue, condition, blocking, timeout, after, declared_in, invalid } = spec;
        let verdict = self.verdict(condition, invalid);
        let mut record = Record {
            name,
            number: self.table.declared(),
            declared: now,
            queued: None,
            started: None,
            finished: None,
            outcome: None,
            longest_poll: Duration::ZERO,
            ties: None,
            polls: 0,
            queue,
            status: Status::Waiting,
            blocking,
            demanded: false,
            cancel_asked: false,
            in_scope: false,
            aside: false,
            awaits_the_end: false,
        };
        record.in_scope = self.scope.takes(declared_in.and_then(|id| self.table.get(id)));
        if timeout.is_some() {
            record.ties_mut().timeout = timeout;
        }
        let id = self.table.insert(record);
        let verdict = self.tie(id, after, verdict);
        self.unended += 1;
        self.next_start.get_or_insert_with(|| now.after(self.profile.delay));
        if queue == Queue::Idle {
            self.idle_unstarted += 1;
        }
        self.scope.declared(self.table.live(id));
        match verdict {
            Some(outcome) => self.end(id, outcome, now, actions),
            None => {
                if queue == Queue::Idle {
                    self.gate.idle_declared(now);
                    actions.probe |= self.wants_probe();
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
        match (invalid, self.phase) {
            (Some(why), _) => Some(Outcome::Invalid(why.into())),
            (None, Phase::Closed(why)) => Some(Outcome::Cancelled(why)),
            (None, Phase::Open) if !condition => Some(Outcome::Skipped(SkipReason::Condition)),
            (None, Phase::Open) => None,
        }
    }

    /// Ties the task to its predecessors; one that has already ended otherwise than completed skips it.
    fn tie(&mut self, id: Id, after: Vec<(Id, Option<Outcome>)>, verdict: Option<Outcome>) -> Option<Outcome> {
        let mut verdict = verdict;
        for (predecessor, told) in after {
            let (name, outcome, aside) = match self.table.get(predecessor) {
                Some(record) => (record.name.clone(), record.outcome.clone(), record.aside),
                // Forgotten since: its handle still knows how it ended.
                None => ("a task that ended long ago".into(), told, false),
            };
            let ended = outcome.is_some();
            if verdict.is_none() && outcome.is_some_and(|outcome| !outcome.is_completed()) {
                verdict = Some(Outcome::Skipped(SkipReason::Predecessor(name.as_ref().into())));
            }
            let record = self.table.live(id);
            record.aside |= aside;
            let ties = record.ties_mut();
            ties.waited_for.push(name);
            if !ended && !ties.predecessors.contains(&predecessor) {
                ties.predecessors.push(predecessor);
                ties.unsettled += 1;
                self.table.live(predecessor).ties_mut().successors.push(id);
            }
        }
        verdict
    }

    /// Nothing but its queue holds the task any more.
    pub(super) fn settled(&mut self, id: Id, now: Stamp) {
        let record = self.table.live(id);
        record.queued = Some(now);
        if record.demanded {
            record.status = Status::Demanded;
            self.demanded.push_back(id);
        } else {
            self.enter_line(id);
        }
    }
}
