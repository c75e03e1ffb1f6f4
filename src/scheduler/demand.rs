//! Somebody needs a task now.

use crate::clock::Stamp;
use crate::monkey::Delivery;
use crate::queue::Queue;
use crate::table::{Id, Status};

use super::{Actions, Core, Timer};

impl Core {
    /// Starts the task next, past gate, pulse, slots and monkey, after what it depends on. A task that has
    /// started or ended is left alone.
    pub(crate) fn demand(&mut self, id: Id, now: Stamp, actions: &mut Actions) {
        let mut wanted = vec![id];
        while let Some(id) = wanted.pop() {
            let Some(record) = self.table.get_mut(id) else { continue };
            // A task that is retried may be demanded in each of its rests.
            if record.status.has_started() || (record.demanded && record.attempts == 0) {
                continue;
            }
            record.demanded = true;
            if self.records_segments {
                record.ties_mut().demanded_at.get_or_insert(now);
            }
            match record.status {
                Status::Waiting =>
                // The last is taken first.
                {
                    wanted.extend(record.ties.iter().flat_map(|ties| ties.predecessors.iter().rev()))
                }
                Status::Queued => {
                    self.leave_line(id);
                    self.jump(id);
                }
                Status::Delayed => {
                    self.end_delay(id);
                    self.jump(id);
                }
                Status::Resting => {
                    if self.wake_from_rest(id) {
                        if self.table.live(id).line == Queue::Idle {
                            self.idle_joins(now);
                        }
                        self.jump(id);
                    }
                }
                Status::Demanded | Status::Running | Status::Overdue | Status::Ended => {}
            }
            // A victim that is demanded before its turn shows the same: it was needed.
            if let Some(mischief) = self.mischief.as_mut().filter(|mischief| mischief.delays(id)) {
                mischief.delivery = Delivery::Demanded;
            }
            actions.lane = true;
        }
    }

    fn jump(&mut self, id: Id) {
        self.table.live(id).status = Status::Demanded;
        self.demanded.push_back(id);
    }

    fn end_delay(&mut self, id: Id) {
        self.timers.retain(|(_, of, timer)| !(*of == id && *timer == Timer::Monkey));
        if let Some(mischief) = &mut self.mischief {
            mischief.delivery = Delivery::Demanded;
        }
    }

    /// The task leaves whatever line it stands in, for good.
    pub(super) fn leave_all_lines(&mut self, id: Id) {
        match self.table.live(id).status {
            Status::Queued => self.leave_line(id),
            Status::Delayed => self.timers.retain(|(_, of, _)| *of != id),
            // The line of demanded tasks passes over those that are not waiting in it any more.
            Status::Resting => drop(self.wake_from_rest(id)),
            Status::Demanded | Status::Waiting | Status::Running | Status::Overdue | Status::Ended => {}
        }
    }
}
