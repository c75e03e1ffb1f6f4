//! The demand of a task.

use crate::base::clock::Stamp;
use crate::core::table::Status;
use crate::model::id::Id;
use crate::model::monkey::Delivery;
use crate::model::queue::Queue;

use super::actions::Actions;
use super::scheduler::{Core, Timer};
use super::turn::Class;

impl Core {
    /// From now on the task is the most urgent, and with it all that it comes after and all that it waits for. Who has
    /// not started starts next, past gate, pulse, slots and monkey.
    pub(crate) fn demand(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        let mut wanted = vec![id];
        while let Some(id) = wanted.pop() {
            let Some(record) = self.table.get_mut(id).filter(|record| record.outcome.is_none()) else {
                continue;
            };
            if self.records_segments {
                record.ties_mut().demanded_at.get_or_insert(now);
            }
            record.demanded |= !record.status().has_started();
            let raised = record.class < Class::Demanded;
            if raised {
                self.raise(id, Class::Demanded);
                // The last is taken first.
                wanted.extend(self.waited_for(id).into_iter().rev());
            }
            match self.table.live(id).status() {
                Status::Queued => {
                    self.dequeue(id);
                    self.jump(id);
                }
                Status::Delayed => {
                    self.end_delay(id);
                    self.jump(id);
                }
                // A task that is retried may be demanded in each of its rests.
                Status::Resting => {
                    if self.wake_from_rest(id) {
                        if self.table.live(id).line == Queue::Idle {
                            self.idle_joins(now);
                        }
                        self.jump(id);
                    }
                }
                Status::Running | Status::Detached | Status::Ended => continue,
                Status::Waiting | Status::Demanded if !raised => continue,
                Status::Waiting | Status::Demanded => {}
            }
            // A victim that is demanded before its turn shows the same: it was needed.
            if let Some(delay_injector) =
                self.delay_injector.as_mut().filter(|delay_injector| delay_injector.delays(id))
            {
                delay_injector.delivery = Delivery::Demanded;
            }
            actions.lane = true;
        }
    }

    /// A task hands its urgency on to what it has begun to wait for.
    pub(super) fn hand_on(&mut self, waiter: Id, target: Id, now: Stamp, actions: &mut Actions) {
        let class = self.table.live(waiter).class;
        if class == Class::Demanded {
            return self.demand(target, now, actions);
        }
        self.raise_all(vec![target], class);
    }

    /// From now on these are at least this urgent, with all that they wait for and come after.
    pub(super) fn raise_all(&mut self, mut open: Vec<Id>, class: Class) {
        while let Some(id) = open.pop() {
            let waits =
                self.table.get(id).is_some_and(|record| record.outcome.is_none() && record.class < class);
            if waits {
                self.raise(id, class);
                open.extend(self.waited_for(id));
            }
        }
    }

    pub(super) fn jump(&mut self, id: Id) {
        self.table.set_status(id, Status::Demanded);
        self.demanded.push_back(id);
    }

    fn end_delay(&mut self, id: Id) {
        self.timers.retain(|(_, of, timer)| !(*of == id && *timer == Timer::Monkey));
        if let Some(delay_injector) = &mut self.delay_injector {
            delay_injector.delivery = Delivery::Demanded;
        }
    }

    /// The task leaves whatever line it stands in, for good.
    pub(super) fn leave_all_queues(&mut self, id: Id) {
        match self.table.live(id).status() {
            Status::Queued => self.dequeue(id),
            Status::Delayed => self.timers.retain(|(_, of, _)| *of != id),
            // The line of demanded tasks passes over those that are not waiting in it any more.
            Status::Resting => drop(self.wake_from_rest(id)),
            Status::Demanded | Status::Waiting | Status::Running | Status::Detached | Status::Ended => {}
        }
    }
}
