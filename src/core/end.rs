//! The end of a task: by its last poll, a limit, a cancellation, a shutdown or the loss of the runtime.

use std::collections::VecDeque;

use crate::base::clock::Stamp;
use crate::core::table::{Status, Stuck, Successor};
use crate::model::id::Id;
use crate::model::monkey::Delivery;
use crate::model::outcome::{CancelReason, Outcome, SkipReason};
use crate::model::queue::Queue;

use super::actions::{Actions, AfterPoll, Resolve};
use super::lifecycle::Phase;
use super::notes::Note;
use super::scheduler::{Core, Timer};

/// How many places a shutdown looks at before the lock is let go.
const AT_ONCE: usize = 1024;

impl Core {
    /// Decides what the end of a poll means: the future's own word first, then what was asked meanwhile.
    pub(super) fn after_poll(
        &mut self,
        id: Id,
        outcome: Option<Outcome>,
        now: Stamp,
        actions: &mut Actions,
    ) -> AfterPoll {
        let lost = self.is_lost();
        let record = self.table.live(id);
        let deadline_passed =
            record.ties.as_ref().and_then(|ties| ties.deadline).is_some_and(|deadline| now >= deadline);
        let verdict = match outcome {
            Some(outcome) => outcome,
            // A blocking closure goes on whatever is decided: its handle was resolved where it had to be. Where the runtime has
            // gone during this poll, no lane will see it out, and what the pool has not begun is dropped here.
            None if record.blocking && !(lost && record.status() == Status::Detached) => {
                return AfterPoll::Keep;
            }
            None if record.status() == Status::Detached => Outcome::Abandoned,
            None if record.cancel_asked => Outcome::Cancelled(CancelReason::Requested),
            None if deadline_passed => Outcome::TimedOut { still_running: false },
            None => return AfterPoll::Keep,
        };
        if record.status() == Status::Detached {
            self.release(id, now, actions);
            return AfterPoll::Release;
        }
        self.close(id, verdict.clone(), now, actions);
        AfterPoll::Resolve(verdict)
    }

    /// Ends a task without a poll and tells the shell to resolve its handle.
    pub(super) fn end(&mut self, id: Id, outcome: Outcome, now: Stamp, actions: &mut Actions) {
        let name = self.table.live(id).name.clone();
        actions.resolve.push(Resolve { id, name, outcome: outcome.clone(), still_running: false });
        self.close(id, outcome, now, actions);
    }

    /// The handle gets its outcome now; the code may still run and holds its slot until it returns.
    pub(super) fn leave_running(&mut self, id: Id, outcome: Outcome, now: Stamp, actions: &mut Actions) {
        self.table.set_status(id, Status::Detached);
        let name = self.table.live(id).name.clone();
        actions.resolve.push(Resolve { id, name, outcome: outcome.clone(), still_running: true });
        self.close(id, outcome, now, actions);
    }

    /// Writes the end of a task down, and of all that cannot start because of it. A chain of any length is
    /// walked in a loop, not in a recursion.
    fn close(&mut self, id: Id, outcome: Outcome, now: Stamp, actions: &mut Actions) {
        let mut next = Some((id, outcome));
        // Allocates only where something is skipped.
        let mut ends = VecDeque::new();
        while let Some((id, outcome)) = next {
            self.close_one(id, outcome.clone(), now, actions);
            let record = self.table.live(id);
            let name = record.name.clone();
            let successors = match &mut record.ties {
                Some(ties) => std::mem::take(&mut ties.successors),
                None => Vec::new(),
            };
            if record.status() == Status::Ended {
                self.retire(id);
            }
            for Successor { id, accepts_any_outcome } in successors {
                let Some(successor) = self.table.get_mut(id) else { continue };
                // One with an outcome stands in `ends` already: another predecessor did not complete either.
                if successor.status() != Status::Waiting || successor.outcome.is_some() {
                    continue;
                }
                if outcome.is_completed() || accepts_any_outcome {
                    let ties = successor.ties_mut();
                    ties.unsettled -= 1;
                    if ties.unsettled == 0 {
                        self.settled(id, now);
                    }
                } else {
                    let skipped = Outcome::Skipped(SkipReason::Predecessor(name.shared()));
                    successor.outcome = Some(skipped.clone());
                    let name = successor.name.clone();
                    actions.resolve.push(Resolve {
                        id,
                        name,
                        outcome: skipped.clone(),
                        still_running: false,
                    });
                    ends.push_back((id, skipped));
                }
            }
            next = ends.pop_front();
        }
        actions.lane = true;
    }

    fn close_one(&mut self, id: Id, outcome: Outcome, now: Stamp, actions: &mut Actions) {
        self.leave_all_queues(id);
        self.loans.target_is_over(id);
        self.victim_ended(id);
        self.note(Note::Ended(id, outcome.clone()));
        let record = self.table.live(id);
        record.outcome = Some(outcome);
        actions.run_changed |= self.scope.ended(record) || self.lifecycle.phase != Phase::Open;
        if let Some(ties) = &record.ties {
            for (at, timer) in [(ties.deadline, Timer::Timeout), (ties.no_later, Timer::NoLaterThan)] {
                if let Some(at) = at {
                    self.timers.remove(&(at, id, timer));
                }
            }
        }
        let (status, line) = (record.status(), record.line);
        if status == Status::Detached {
            // It has an end for everyone who waits for it, but its slot is taken, and the lane has to see it out.
            return;
        }
        record.finished = Some(now);
        if status == Status::Running {
            self.vacate(id);
        } else if line == Queue::Idle && status != Status::Resting {
            self.idle_leaves(now);
        }
        self.ended(id);
    }

    /// An detached task has returned at last.
    fn release(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        self.table.live(id).finished = Some(now);
        self.vacate(id);
        self.ended(id);
        self.retire(id);
        actions.lane = true;
    }

    fn ended(&mut self, id: Id) {
        self.loans.waiter_is_over(id);
        self.not_woken(id);
        self.table.set_status(id, Status::Ended);
    }

    pub(super) fn vacate(&mut self, id: Id) {
        if self.table.live(id).line == Queue::Idle {
            self.idle_tasks.running -= 1;
        }
    }

    /// A service that governs tasks for months must not keep a record of each: only the last of those outside
    /// the report's scope are kept, and where nobody has asked for a report, only the last of all. They are forgotten
    /// once what happened has been told: see [`forget_retired`](Core::forget_retired).
    fn retire(&mut self, id: Id) {
        let oldest = self.scope.retire(id, self.table.live(id).in_scope);
        self.retired.extend(oldest);
    }

    /// Forgets what has fallen out, after everyone who had to be told has been.
    pub(crate) fn forget_retired(&mut self) {
        for id in self.retired.drain(..) {
            self.table.forget(id);
        }
    }

    pub(super) fn timeout_passed(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        let record = self.table.live(id);
        if record.status() != Status::Running {
            // Between two attempts, or waiting for its turn to make the next one.
            if record.attempts > 0 && record.outcome.is_none() {
                self.end(id, Outcome::TimedOut { still_running: false }, now, actions);
            }
            return;
        }
        if record.blocking || self.is_stuck(id) {
            self.leave_running(id, Outcome::TimedOut { still_running: true }, now, actions);
        } else {
            // The future goes first: the lane polls it once more and drops it if it is not ready.
            actions.repoll.push(id);
        }
    }

    /// The handle asks for an end. A running future is dropped by the lane, in a tick of its own.
    pub(crate) fn cancel(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        let Some(record) = self.table.get_mut(id) else { return };
        match record.status() {
            Status::Ended | Status::Detached => {}
            Status::Running if record.blocking || record.stuck == Stuck::Now => {
                self.leave_running(id, Outcome::Abandoned, now, actions);
            }
            Status::Running => {
                record.cancel_asked = true;
                actions.repoll.push(id);
                actions.lane = true;
            }
            Status::Waiting | Status::Queued | Status::Delayed | Status::Demanded | Status::Resting => {
                self.end(id, Outcome::Cancelled(CancelReason::Requested), now, actions);
            }
        }
    }

    /// From now on nothing starts. What is queued is cancelled in pieces, so that a million tasks do not hold
    /// the lock at once: by the lane, a piece a tick, and by whoever waits for the shutdown.
    pub(crate) fn close_for(&mut self, why: CancelReason, actions: &mut Actions) {
        if self.lifecycle.phase == Phase::Open {
            self.lifecycle.phase = Phase::Closed(why);
            self.lifecycle.cancelled_to = Some(0);
            self.note(Note::ShuttingDown);
            actions.lane = true;
        }
    }

    /// Cancels unstarted tasks, a piece at a time. True where there is more.
    pub(crate) fn cancel_piece(&mut self, now: Stamp, actions: &mut Actions) -> bool {
        let (Phase::Closed(why), Some(from)) = (self.lifecycle.phase, self.lifecycle.cancelled_to) else {
            return false;
        };
        let end = from.saturating_add(AT_ONCE).min(self.table.places());
        for place in from..end {
            let Some(id) = self.table.id_at(place) else { continue };
            let record = self.table.live(id);
            if !record.status().has_started() {
                // Its successors fall to the same shutdown, not to a predecessor.
                if let Some(ties) = &mut record.ties {
                    ties.successors.clear();
                }
                self.end(id, Outcome::Cancelled(why), now, actions);
            }
        }
        self.lifecycle.cancelled_to = Some(end).filter(|end| *end < self.table.places());
        self.lifecycle.cancelled_to.is_some()
    }

    /// The shutdown's deadline: what can be dropped is cancelled, the rest is abandoned.
    pub(crate) fn end_running(&mut self, now: Stamp, actions: &mut Actions) {
        self.end_running_but(None, now, actions);
    }

    /// The same, without the task that waits for it.
    pub(crate) fn end_running_but(&mut self, but: Option<Id>, now: Stamp, actions: &mut Actions) {
        let Phase::Closed(why) = self.lifecycle.phase else { return };
        let mut running = self.table.running().to_vec();
        // As they stand in the table: so two runs do the same.
        running.sort_unstable();
        for id in running {
            let inside_a_poll = self.inside_a_poll(id);
            let Some(record) = self.table.get(id) else { continue };
            let blocking = record.blocking;
            match record.status() {
                Status::Running if Some(id) == but => {}
                Status::Running if blocking || inside_a_poll => {
                    self.leave_running(id, Outcome::Abandoned, now, actions);
                }
                Status::Running => self.end(id, Outcome::Cancelled(why), now, actions),
                _ => {}
            }
            // No lane will see a blocking closure out: whoever waits for the end would wait for ever.
            let detached = self.table.get(id).is_some_and(|record| record.status() == Status::Detached);
            if detached && blocking && !inside_a_poll && self.is_lost() {
                self.release(id, now, actions);
                actions.dropped.push(id);
            }
        }
    }

    /// How many tasks have started and have an unresolved handle, whether they hold a slot or are stuck.
    pub(crate) fn running_unresolved(&self) -> usize {
        self.table.count(Status::Running)
    }

    /// The same for a task that waits for them: itself left out, and all that await the end as it does.
    pub(crate) fn running_beside_those_who_leave(&self) -> usize {
        let leave = self
            .loans
            .for_the_end()
            .filter(|id| self.table.get(*id).is_some_and(|record| record.status() == Status::Running));
        self.running_unresolved().saturating_sub(leave.count())
    }

    fn victim_ended(&mut self, id: Id) {
        let Some(delay_injector) =
            self.delay_injector.as_mut().filter(|delay_injector| delay_injector.victim == Some(id))
        else {
            return;
        };
        let started = self.table.get(id).is_some_and(|record| record.started.is_some());
        if matches!(delay_injector.delivery, Delivery::Pending | Delivery::Delaying) && !started {
            delay_injector.delivery = Delivery::NotDelivered;
        }
    }
}
