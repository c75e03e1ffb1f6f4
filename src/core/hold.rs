//! After the opening, an application that gets busy again holds the idle starts, for a while.

use crate::base::clock::Stamp;
use crate::model::gate_state::HeldBy;
use crate::model::id::Id;

use super::scheduler::Core;

/// An idle start that is due and held.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    since: Stamp,
    why: HeldBy,
}

/// An idle start that was held.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) task: Id,
    pub(crate) number: u64,
    pub(crate) since: Stamp,
    pub(crate) until: Stamp,
    pub(crate) why: HeldBy,
}

/// How many holds are kept for the report.
const KEPT: usize = 1_000;

impl Core {
    /// Until when the next ordinary idle start is held, if it is: `resume_quiet` after the application's last long
    /// task, or while too much is in flight; but no longer than `max_hold` after it was due.
    pub(super) fn held_until(&self, now: Stamp) -> Option<Stamp> {
        let (_, busy_until) = self.gate.busy(now)?;
        let since = self.holding.as_ref().map_or(now, |holding| holding.since);
        let longest = since.after(self.max_hold);
        let until = busy_until.map_or(longest, |until| until.min(longest));
        Some(until).filter(|until| *until > now)
    }

    /// An idle task could start but for the application: from now on it is held. True where it is.
    pub(super) fn hold(&mut self, now: Stamp) -> bool {
        let held = self.held_until(now).is_some();
        if held
            && self.holding.is_none()
            && let Some((why, _)) = self.gate.busy(now)
        {
            self.holding = Some(Holding { since: now, why });
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
        let Some(Holding { since, why }) = self.holding.take() else { return };
        let number = self.table.live(task).number;
        if self.holds.len() == KEPT {
            self.holds.pop_front();
            self.holds_forgotten += 1;
        }
        self.holds.push_back(Held { task, number, since, until: now, why });
    }

    /// What holds the next idle start now.
    pub(crate) fn held_by(&self) -> Option<&HeldBy> {
        self.holding.as_ref().map(|holding| &holding.why)
    }

    pub(crate) fn holds(&self) -> impl Iterator<Item = &Held> {
        self.holds.iter()
    }

    pub(crate) fn holds_forgotten(&self) -> u64 {
        self.holds_forgotten
    }
}
