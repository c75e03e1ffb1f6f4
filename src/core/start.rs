//! The choice of the next start.

use crate::base::clock::Stamp;
use crate::core::table::Status;
use crate::model::id::Id;
use crate::model::monkey::Delivery;
use crate::model::queue::Queue;

use super::actions::Actions;
use super::lifecycle::Phase;
use super::notes::Note;
use super::scheduler::{Core, Timer};
use super::turn::Class;

impl Core {
    /// Whether a demanded task can start.
    pub(super) fn is_anyone_demanded(&mut self) -> bool {
        // After a shutdown they are passed over; its pieces cancel them.
        if self.lifecycle.phase != Phase::Open {
            return false;
        }
        while let Some(id) = self.demanded.front() {
            if self.table.get(*id).is_some_and(|record| record.status() == Status::Demanded) {
                return true;
            }
            self.demanded.pop_front();
        }
        false
    }

    /// The demanded task that has waited longest starts. It is never refused, but it counts.
    pub(super) fn start_demanded(&mut self, now: Stamp, actions: &mut Actions) -> Option<Id> {
        let id = self.is_anyone_demanded().then(|| self.demanded.pop_front()).flatten()?;
        self.start(id, now, actions);
        Some(id)
    }

    /// Of which class the ordinary start is that could come now, if one could: normal before idle, idle only past the
    /// gate. The monkey's victim is passed over: its delay begins.
    pub(super) fn ordinary_start(&mut self, now: Stamp) -> Option<(Id, Class)> {
        if self.next_start.is_none_or(|at| now < at) || !self.has_a_slot() {
            return None;
        }
        loop {
            let id = self.next_ordinary()?;
            if self.normal.is_empty() && self.hold(now) {
                return None;
            }
            if !self.delay_injector.as_ref().is_some_and(|delay_injector| delay_injector.delays(id)) {
                // Its turn is an ordinary one, also where it was demanded for an attempt before.
                return Some((id, self.table.live(id).class.min(Class::Normal)));
            }
            self.dequeue(id);
            if !self.begin_delay(id, now) {
                self.enqueue(id);
            }
        }
    }

    /// The ordinary start that is due.
    pub(super) fn start_ordinary(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        let idle = self.normal.is_empty();
        self.dequeue(id);
        self.start(id, now, actions);
        if !idle {
            self.normal_queue_moved();
        } else {
            self.hold_is_over(id, now);
        }
    }

    pub(super) fn next_ordinary(&self) -> Option<Id> {
        if self.lifecycle.phase != Phase::Open {
            return None;
        }
        self.normal.first().or_else(|| self.idle.first().filter(|_| self.gate.is_open()))
    }

    /// Whether an ordinary start is within the limit: tasks that lend their slots do not count.
    pub(super) fn has_a_slot(&self) -> bool {
        self.slots_held().saturating_sub(self.lending()) < self.profile.concurrency
    }

    /// How many tasks hold a slot: those that run, without the stuck ones.
    pub(super) fn slots_held(&self) -> usize {
        self.table.running().len() - self.polls.stuck.len()
    }

    fn start(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        debug_assert!(!self.table.live(id).status().has_started(), "a task starts once");
        self.table.set_status(id, Status::Running);
        let record = self.table.live(id);
        let first = record.attempts == 0;
        record.attempts = record.attempts.saturating_add(1);
        record.awaiting_first_poll = true;
        record.started.get_or_insert(now);
        let idle = record.line == Queue::Idle;
        if let Some(ties) = &mut record.ties {
            if let Some(at) = ties.no_later.take() {
                self.timers.remove(&(at, id, Timer::NoLaterThan));
            }
            if let Some(timeout) = ties.timeout.filter(|_| first) {
                let deadline = now.after(timeout);
                ties.deadline = Some(deadline);
                self.timers.insert((deadline, id, Timer::Timeout));
            }
        }
        actions.run_changed |= self.scope.started(record);
        self.starts.push_back((now, id));
        if idle {
            self.idle_leaves(now);
            self.idle_tasks.running += 1;
        }
        if first {
            self.note(Note::Started(id));
        }
        self.watch_idle_starvation(now);
    }

    /// Where the monkey's victim is held; false where this task is not the victim or its delay is over.
    pub(super) fn begin_delay(&mut self, id: Id, now: Stamp) -> bool {
        let Some(delay_injector) =
            self.delay_injector.as_mut().filter(|delay_injector| delay_injector.delays(id))
        else {
            return false;
        };
        let delay = delay_injector.monkey.delay;
        // A delay of nothing is over at once: no timer may lie in the past when the lane goes to sleep.
        let waits = !delay.is_zero();
        delay_injector.delivery = if waits { Delivery::Delaying } else { Delivery::Delivered };
        if waits {
            self.timers.insert((now.after(delay), id, Timer::Monkey));
            self.table.set_status(id, Status::Delayed);
        }
        self.note(Note::Delayed(id));
        waits
    }

    pub(super) fn delay_over(&mut self, id: Id) {
        if let Some(delay_injector) = &mut self.delay_injector {
            delay_injector.delivery = Delivery::Delivered;
        }
        self.enqueue(id);
    }
}
