//! Retried tasks: they wait without a slot, then queue again.

use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::table::Status;
use crate::model::id::Id;
use crate::model::outcome::{CancelReason, Outcome};
use crate::model::queue::Queue;

use super::actions::{Actions, AfterPoll};
use super::lifecycle::Phase;
use super::scheduler::{Core, Timer};

impl Core {
    /// An attempt failed, and the next one comes `after` a rest: without a slot, unless something ends the task.
    pub(crate) fn attempt_failed(
        &mut self,
        id: Id,
        took: Duration,
        after: Duration,
        now: Stamp,
        actions: &mut Actions,
    ) -> AfterPoll {
        let record = self.table.live(id);
        let deadline = record.ties.as_ref().and_then(|ties| ties.deadline);
        let ends = match self.lifecycle.phase {
            Phase::Closed(why) => Some(Outcome::Cancelled(why)),
            Phase::Open if record.cancel_asked => Some(Outcome::Cancelled(CancelReason::Requested)),
            Phase::Open if deadline.is_some_and(|at| now >= at) => {
                Some(Outcome::TimedOut { still_running: false })
            }
            Phase::Open if record.status() == Status::Detached => Some(Outcome::Abandoned),
            Phase::Open => None,
        };
        if ends.is_some() {
            return self.poll_ended(id, took, ends, now, actions);
        }
        let after_poll = self.poll_ended(id, took, None, now, actions);
        if after_poll != AfterPoll::Keep {
            return after_poll;
        }
        // Whoever waits for it goes on waiting, and it needs the slot that they lend.
        self.loans.waiter_is_over(id);
        self.not_woken(id);
        self.vacate(id);
        let at = now.after(after);
        self.table.set_status(id, Status::Resting);
        let ties = self.table.live(id).ties_mut();
        ties.again = Some(at);
        if self.records_segments {
            ties.rests(after);
        }
        self.timers.insert((at, id, Timer::Again));
        actions.lane = true;
        AfterPoll::Rest
    }

    /// The rest is over: the task takes its turn, at the place its number gives it.
    pub(super) fn rest_is_over(&mut self, id: Id, now: Stamp) {
        if self.wake_from_rest(id) {
            if self.table.live(id).line == Queue::Idle {
                self.idle_joins(now);
            }
            self.enqueue(id);
        }
    }

    /// True where the task was resting.
    pub(super) fn wake_from_rest(&mut self, id: Id) -> bool {
        let Some(record) = self.table.get_mut(id).filter(|record| record.status() == Status::Resting) else {
            return false;
        };
        if let Some(at) = record.ties_mut().again.take() {
            self.timers.remove(&(at, id, Timer::Again));
        }
        true
    }
}
