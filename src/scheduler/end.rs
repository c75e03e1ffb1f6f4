//! A task is over, or has to be: ended polls, limits, cancellation, shutdown, a runtime that went away.

use std::collections::VecDeque;

use crate::clock::Stamp;
use crate::monkey::Delivery;
use crate::outcome::{CancelReason, Outcome, SkipReason};
use crate::queue::Queue;
use crate::table::{Id, Status};

use super::{Actions, Core, Fate, Phase, Resolve, Timer};

impl Core {
    /// Decides what the end of a poll means: the future's own word first, then what was asked meanwhile.
    pub(super) fn after_poll(
        &mut self,
        id: Id,
        outcome: Option<Outcome>,
        now: Stamp,
        actions: &mut Actions,
    ) -> Fate {
        let record = self.table.live(id);
        let deadline_passed =
            record.ties.as_ref().and_then(|ties| ties.deadline).is_some_and(|deadline| now >= deadline);
        let verdict = match outcome {
            Some(outcome) => outcome,
            // A blocking closure goes on whatever is decided: its handle was resolved where it had to be.
            None if record.blocking => return Fate::Keep,
            None if record.status == Status::Overdue => Outcome::Abandoned,
            None if record.cancel_asked => Outcome::Cancelled(CancelReason::Asked),
            None if deadline_passed => Outcome::TimedOut { still_running: false },
            None => return Fate::Keep,
        };
        if record.status == Status::Overdue {
            self.release(id, now, actions);
            return Fate::Release;
        }
        self.close(id, verdict.clone(), now, actions);
        Fate::Resolve(verdict)
    }

    /// Ends a task without a poll and tells the shell to resolve its handle.
    pub(super) fn end(&mut self, id: Id, outcome: Outcome, now: Stamp, actions: &mut Actions) {
        actions.resolve.push(Resolve { id, outcome: outcome.clone(), still_running: false });
        self.close(id, outcome, now, actions);
    }

    /// Writes the end of a task down, and of all that cannot start because of it. A chain of any length is
    /// walked in a loop, not in a recursion.
    fn close(&mut self, id: Id, outcome: Outcome, now: Stamp, actions: &mut Actions) {
        let mut ends = VecDeque::from([(id, outcome)]);
        while let Some((id, outcome)) = ends.pop_front() {
            self.leave_all_lines(id);
            self.victim_ended(id);
            let record = self.table.live(id);
            if record.status.holds_a_slot() {
                self.running -= 1;
            } else if record.queue == Queue::Idle {
                self.idle_unstarted -= 1;
            }
            record.status = Status::Ended;
            record.finished = Some(now);
            record.outcome = Some(outcome.clone());
            self.unended -= 1;
            actions.announce |= self.scope.ended(record, now) || self.phase != Phase::Open;
            let ties = record.ties.as_mut();
            let deadline = ties.as_ref().and_then(|ties| ties.deadline);
            let successors = ties.map(|ties| std::mem::take(&mut ties.successors)).unwrap_or_default();
            let name = record.name.clone();
            if let Some(deadline) = deadline {
                self.timers.remove(&(deadline, id, Timer::Timeout));
            }
            for successor in successors {
                let record = self.table.live(successor);
                // One with an outcome stands in `ends` already: another predecessor did not complete either.
                if record.status != Status::Waiting || record.outcome.is_some() {
                    continue;
                }
                if !outcome.is_completed() {
                    let skipped = Outcome::Skipped(SkipReason::Predecessor(name.as_ref().into()));
                    record.outcome = Some(skipped.clone());
                    actions.resolve.push(Resolve {
                        id: successor,
                        outcome: skipped.clone(),
                        still_running: false,
                    });
                    ends.push_back((successor, skipped));
                    continue;
                }
                let ties = record.ties_mut();
                ties.unsettled -= 1;
                if ties.unsettled == 0 {
                    self.settled(successor, now);
                }
            }
        }
        actions.lane = true;
    }

    /// The handle gets its outcome now; the code may still run and holds its slot until it returns.
    fn leave_running(&mut self, id: Id, outcome: Outcome, now: Stamp, actions: &mut Actions) {
        actions.resolve.push(Resolve { id, outcome: outcome.clone(), still_running: true });
        let unended = self.unended;
        self.close(id, outcome, now, actions);
        // It has an end for everyone who waits for it, but its slot is taken and the lane has to see it out.
        let record = self.table.live(id);
        record.status = Status::Overdue;
        record.finished = None;
        self.running += 1;
        self.overdue += 1;
        self.unended = unended;
    }

    /// An overdue task has returned at last.
    fn release(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        let record = self.table.live(id);
        record.status = Status::Ended;
        record.finished = Some(now);
        self.running -= 1;
        self.overdue -= 1;
        self.unended -= 1;
        actions.lane = true;
    }

    pub(super) fn timeout_passed(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        let record = self.table.live(id);
        if record.status != Status::Running {
            return;
        }
        if record.blocking {
            self.leave_running(id, Outcome::TimedOut { still_running: true }, now, actions);
        } else {
            // The future goes first: the lane polls it once more and drops it if it is not ready.
            actions.poke.push(id);
        }
    }

    /// The handle asks for an end. A running future is dropped by the lane, in a tick of its own.
    pub(crate) fn cancel(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        let Some(record) = self.table.get_mut(id) else { return };
        match record.status {
            Status::Ended | Status::Overdue => {}
            Status::Running if record.blocking => {
                self.leave_running(id, Outcome::Abandoned, now, actions);
            }
            Status::Running => {
                record.cancel_asked = true;
                actions.poke.push(id);
                actions.lane = true;
            }
            Status::Waiting | Status::Queued | Status::Delayed | Status::Demanded => {
                self.end(id, Outcome::Cancelled(CancelReason::Asked), now, actions);
            }
        }
    }

    /// From now on nothing starts. What is queued is cancelled in pieces, so that a million tasks do not hold
    /// the lock at once: call [`cancel_queued`](Core::cancel_queued) until it says that nothing is left.
    pub(crate) fn close_for(&mut self, why: CancelReason) {
        if self.phase == Phase::Open {
            self.phase = Phase::Closed(why);
        }
    }

    /// Cancels unstarted tasks from `place` on, `most` places at the most; where to go on, if anywhere.
    pub(crate) fn cancel_queued(
        &mut self,
        place: usize,
        most: usize,
        now: Stamp,
        actions: &mut Actions,
    ) -> Option<usize> {
        let Phase::Closed(why) = self.phase else { return None };
        let end = place.saturating_add(most).min(self.table.places());
        for place in place..end {
            let Some(id) = self.table.id_at(place) else { continue };
            let record = self.table.live(id);
            if !record.status.has_started() {
                // Its successors fall to the same shutdown, not to a predecessor.
                if let Some(ties) = &mut record.ties {
                    ties.successors.clear();
                }
                self.end(id, Outcome::Cancelled(why), now, actions);
            }
        }
        Some(end).filter(|end| *end < self.table.places())
    }

    /// The shutdown's deadline: what can be dropped is cancelled, the rest is abandoned.
    pub(crate) fn end_running(&mut self, now: Stamp, actions: &mut Actions) {
        let Phase::Closed(why) = self.phase else { return };
        let inside_a_poll = self.polling.map(|polling| polling.id);
        for place in 0..self.table.places() {
            let Some(id) = self.table.id_at(place) else { continue };
            let record = self.table.live(id);
            if record.status != Status::Running {
                continue;
            }
            if record.blocking || inside_a_poll == Some(id) {
                self.leave_running(id, Outcome::Abandoned, now, actions);
            } else {
                self.end(id, Outcome::Cancelled(why), now, actions);
            }
        }
    }

    /// How many tasks hold a slot and have an unresolved handle.
    pub(crate) fn running_unresolved(&self) -> usize {
        self.running - self.overdue
    }

    fn victim_ended(&mut self, id: Id) {
        let Some(mischief) = self.mischief.as_mut().filter(|mischief| mischief.victim == Some(id)) else {
            return;
        };
        let started = self.table.get(id).is_some_and(|record| record.started.is_some());
        if matches!(mischief.delivery, Delivery::Pending | Delivery::Delaying) && !started {
            mischief.delivery = Delivery::NotDelivered;
        }
    }
}
