//! Holds: after the gate has opened, a busy application delays idle starts for a bounded time.

use crate::base::clock::Stamp;
use crate::model::gate_state::WaitReason;
use crate::model::id::Id;

use super::holds::{Holding, Holds};
use super::scheduler::Core;

impl Core {
    /// Until when the next ordinary idle start is held, if it is: `resume_quiet` after the application's last long
    /// task, or while too much is in flight; but no longer than `max_hold` after it was due.
    pub(super) fn held_until(&self, now: Stamp) -> Option<Stamp> {
        let (_, busy_until) = self.gate.busy(now)?;
        let since = self.holds.now.as_ref().map_or(now, |holding| holding.since);
        let longest = since.after(self.holds.longest);
        let until = busy_until.map_or(longest, |until| until.min(longest));
        Some(until).filter(|until| *until > now)
    }

    /// An idle task could start but for the application: from now on it is held. True where it is.
    pub(super) fn hold(&mut self, now: Stamp) -> bool {
        let held = self.held_until(now).is_some();
        if held
            && self.holds.now.is_none()
            && let Some((why, _)) = self.gate.busy(now)
        {
            self.holds.now = Some(Holding { since: now, why });
        }
        held
    }

    /// Notes since when an idle start that is due is held.
    pub(super) fn watch_for_holds(&mut self, now: Stamp) {
        let due = self.next_start.is_some_and(|at| at <= now) && self.has_a_slot();
        if due && self.normal.is_empty() && self.next_ordinary().is_some() {
            self.hold(now);
        }
    }

    /// The idle start that was held has come.
    pub(super) fn hold_is_over(&mut self, task: Id, now: Stamp) {
        let number = self.table.live(task).number;
        let name = self.table.live(task).name.clone();
        self.holds.over(name, number, now);
    }

    /// What holds the next idle start now.
    pub(crate) fn held_by(&self) -> Option<&WaitReason> {
        self.holds.now.as_ref().map(|holding| &holding.why)
    }

    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }
}
