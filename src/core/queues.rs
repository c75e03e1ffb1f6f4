//! Entering and leaving the two queues.

use crate::core::table::Status;
use crate::model::id::Id;
use crate::model::queue::Queue;

use super::scheduler::Core;

impl Core {
    /// How many tasks stand in the normal and in the idle queue.
    pub(crate) fn queued(&self) -> (usize, usize) {
        (self.normal.len(), self.idle.len())
    }

    /// Into its queue, at the place its number gives it.
    pub(super) fn enqueue(&mut self, id: Id) {
        self.table.set_status(id, Status::Queued);
        let record = self.table.live(id);
        let ticket = record.ticket(id);
        match record.line {
            Queue::Normal => self.normal.push(ticket),
            Queue::Idle => self.idle.push(ticket),
        }
    }

    pub(super) fn dequeue(&mut self, id: Id) {
        let record = self.table.live(id);
        let ticket = record.ticket(id);
        let left = match record.line {
            Queue::Normal => self.normal.remove(ticket),
            Queue::Idle => self.idle.remove(ticket),
        };
        debug_assert!(left, "a queued task stands in its line");
    }
}
