//! Starvation of idle tasks by normal ones, and its end.

use crate::base::clock::Stamp;

use super::lifecycle::Phase;
use super::scheduler::Core;

impl Core {
    /// Idle tasks starve from the moment at which normal tasks keep them out until one of them starts: a slot that is
    /// free between two normal tasks is no relief.
    pub(super) fn watch_idle_starvation(&mut self, now: Stamp) {
        if self.idle_tasks.running > 0
            || self.idle.is_empty()
            || !self.gate.is_open()
            || self.lifecycle.phase != Phase::Open
        {
            self.starvation.idle_since = None;
        } else if !self.normal.is_empty() || !self.has_a_slot() {
            self.starvation.idle_since.get_or_insert(now);
        }
    }

    /// The first idle task that has starved for `max_hold` is demanded by the governor itself, one at a time.
    pub(super) fn promote_starved(&mut self, now: Stamp) {
        if self.starvation.idle_since.is_none_or(|since| now < since.after(self.holds.longest)) {
            return;
        }
        self.starvation.idle_since = None;
        while let Some(id) = self.idle.first() {
            self.dequeue(id);
            // The monkey's victim: its turn has come, and with it its delay.
            if self.begin_delay(id, now) {
                continue;
            }
            self.table.live(id).demanded_by_governor = true;
            self.jump(id);
            return;
        }
    }
}
