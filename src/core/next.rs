//! The wake of a task, and the choice of the task for the next poll.

use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::table::Stuck;
use crate::model::id::Id;

use super::actions::Actions;
use super::lifecycle::Phase;
use super::scheduler::Core;
use super::turn::{Charge, Class, Turn, Woken};

impl Core {
    /// The task wants a poll; `at` is when that came, where it is recorded. False where that is nothing new, or nothing
    /// is left to poll: who is inside a stuck poll is polled once more when that has returned.
    pub(crate) fn woken(&mut self, id: Id, at: Option<Stamp>) -> bool {
        let Some(record) = self.table.get_mut(id) else { return false };
        let runs = record.status().runs() && record.stuck != Stuck::Now;
        if !runs || std::mem::replace(&mut record.woken, true) {
            return false;
        }
        let class = record.class;
        self.turns.enter(class, Woken { id, at });
        true
    }

    /// Nothing of the task waits for a poll any more.
    pub(super) fn not_woken(&mut self, id: Id) {
        let record = self.table.live(id);
        if std::mem::take(&mut record.woken) {
            let class = record.class;
            self.turns.leave(class, id);
        }
    }

    /// Whom the lane polls now. A start gets its slot with that.
    pub(crate) fn next(&mut self, now: Stamp, actions: &mut Actions) -> Option<Turn> {
        let mut ordinary = self.ordinary_start(now);
        if self.turns.anyone_woken() && self.slots_held() >= self.profile.concurrency {
            ordinary = ordinary.filter(|(_, class)| !self.turns.holds_back(*class));
        }
        let demanded = self.is_anyone_demanded();
        // So that a slot gets free for the normal task.
        let idle_counts = !self.turns.woken[Class::Idle as usize].is_empty()
            && self.lifecycle.phase == Phase::Open
            && !self.normal.is_empty()
            && !self.has_a_slot();
        let start = ordinary.map(|(_, class)| class);
        let could = self.turns.could(demanded, start, idle_counts);
        let (class, charge) = self.turns.choose(could)?;
        let turn = if self.turns.starts(class, could) {
            let id = match (class, ordinary) {
                (Class::Normal | Class::Idle, Some((id, _))) => {
                    self.start_ordinary(id, now, actions);
                    id
                }
                _ => self.start_demanded(now, actions)?,
            };
            self.turns.held_back = None;
            Turn { id, starts: true, woken: None }
        } else {
            let Woken { id, at, .. } = self.turns.pop(class, idle_counts)?;
            self.table.live(id).woken = false;
            Turn { id, starts: false, woken: at }
        };
        self.turns.start_first[class as usize] = !turn.starts;
        self.turns.charge = charge;
        Some(turn)
    }

    /// The poll that was picked last counts as this.
    pub(super) fn take_charge(&mut self) -> Charge {
        std::mem::take(&mut self.turns.charge)
    }

    /// The lane has spent this much on a poll.
    pub(super) fn charge(&mut self, charge: Charge, took: Duration) {
        self.turns.charge(charge, took);
    }

    /// From now on the task is at least this urgent.
    pub(super) fn raise(&mut self, id: Id, class: Class) {
        let record = self.table.live(id);
        let before = record.class;
        record.class = class.max(before);
        if record.woken && before < class {
            self.turns.change(id, before, class);
        }
    }
}
