//! Stuck polls: a poll that blocks the lane for too long is bypassed.

use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::table::{Status, Stuck};
use crate::model::id::Id;
use crate::model::outcome::Outcome;
use crate::model::queue::Queue;

use super::actions::Actions;
use super::notes::Note;
use super::polling::Polling;
use super::scheduler::Core;

impl Core {
    /// If the poll in progress has lasted `limit`, its task gives up its slot: its name, and how long it has
    /// lasted. Whoever called starts another lane.
    pub(crate) fn give_up_stuck(
        &mut self,
        limit: Duration,
        now: Stamp,
        actions: &mut Actions,
    ) -> Option<(Id, Duration)> {
        let mut polling = self.polls.now.take_if(|polling| self.stops.ran(polling.since, now) >= limit)?;
        // From now on it keeps nobody from the lane.
        self.charge(std::mem::take(&mut polling.charge), self.stops.ran(polling.since, now));
        self.polls.stuck.push(polling);
        self.not_woken(polling.id);
        let pulse = self.profile.pulse;
        let record = self.table.live(polling.id);
        record.stuck = Stuck::Now;
        if record.line == Queue::Idle {
            self.idle_tasks.running -= 1;
        }
        if record.polls == 0 {
            // Its first poll does not end in time to begin the pulse.
            self.next_start = self.next_start.max(Some(now.after(pulse)));
        }
        self.note(Note::Stuck(polling.id));
        let record = self.table.live(polling.id);
        let deadline = record.ties.as_ref().and_then(|ties| ties.deadline);
        if record.cancel_asked && record.status() == Status::Running {
            self.leave_running(polling.id, Outcome::Abandoned, now, actions);
        } else if deadline.is_some_and(|deadline| now >= deadline) {
            self.timeout_passed(polling.id, now, actions);
        }
        actions.lane = true;
        Some((polling.id, now.since(polling.since)))
    }

    /// The task's poll is over. One that was given up gets a slot again, over the limit if need be.
    pub(super) fn poll_is_over(&mut self, id: Id) -> Option<Polling> {
        if let Some(polling) = self.polls.now.take_if(|polling| polling.id == id) {
            return Some(polling);
        }
        let place = self.polls.stuck.iter().position(|polling| polling.id == id)?;
        let polling = self.polls.stuck.swap_remove(place);
        self.unstick(id);
        Some(polling)
    }

    /// A poll that was given up has returned: its task holds a slot again, over the limit if need be.
    fn unstick(&mut self, id: Id) {
        let record = self.table.live(id);
        record.stuck = Stuck::Once;
        if record.line == Queue::Idle {
            self.idle_tasks.running += 1;
        }
    }

    /// Whether any poll that was given up has not returned.
    pub(crate) fn anyone_stuck(&self) -> bool {
        !self.polls.stuck.is_empty()
    }

    /// Whether the task's poll goes on now, in the lane or given up by it.
    pub(super) fn inside_a_poll(&self, id: Id) -> bool {
        self.polls.of(id).is_some()
    }

    pub(crate) fn is_stuck(&self, id: Id) -> bool {
        self.polls.is_stuck(id)
    }

    /// Names the tasks that have been running for [`SLOW`], once each.
    pub(super) fn report_slow(&mut self, now: Stamp, actions: &mut Actions) {
        while let Some((started, id)) = self.starts.front().copied() {
            let running =
                self.table.get(id).is_some_and(|r| r.started == Some(started) && r.outcome.is_none());
            if running && now < started.after(SLOW) {
                return;
            }
            self.starts.pop_front();
            if running {
                self.table.live(id).slow = true;
                actions.slow.push(id);
                self.note(Note::Slow(id));
            }
        }
    }

    /// When the task that has been running longest is named.
    pub(super) fn slow_at(&self) -> Option<Stamp> {
        self.starts.front().map(|(started, _)| started.after(SLOW))
    }
}

/// After this time a running task is named in a warning: it may never end.
pub(crate) const SLOW: Duration = Duration::from_secs(30);
