//! Normal tasks must not keep the idle queue out for ever.

use crate::clock::Stamp;
use crate::table::Status;

use super::Core;

impl Core {
    /// Idle tasks starve where normal ones hold every slot, or keep coming, and no idle one runs.
    pub(super) fn watch_for_starving(&mut self, now: Stamp) {
        let kept_out = !self.normal.is_empty() || !self.has_a_slot();
        let starving = kept_out && self.idle_running == 0 && self.gate.is_open() && !self.idle.is_empty();
        self.starving = if starving { self.starving.or(Some(now)) } else { None };
    }

    /// The first idle task that has starved for `max_hold` is demanded by the governor itself, one at a time.
    pub(super) fn feed_the_starving(&mut self, now: Stamp) {
        if self.starving.is_none_or(|since| now < since.after(self.max_hold)) {
            return;
        }
        self.starving = None;
        if let Some(id) = self.idle.first() {
            self.leave_line(id);
            let record = self.table.live(id);
            record.held_too_long = true;
            record.status = Status::Demanded;
            self.demanded.push_back(id);
        }
    }
}
