//! Starvation of normal tasks: the first one that waits for a slot behind tasks that do not end is reported, once.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::table::Stuck;
use crate::model::id::Id;
use crate::model::name::Name;

use super::actions::Actions;
use super::lifecycle::Phase;
use super::notes::Note;
use super::scheduler::Core;
use super::starved::Starved;

/// Twice as long as it takes until a running task is named: by then those that hold the slots have been.
const STARVED: Duration = Duration::from_secs(60);

/// How many names are kept of those that hold slots.
const HOLDERS: usize = 16;
/// How many starved tasks are kept for the report.
const KEPT: usize = 256;

impl Core {
    /// The first of the normal queue has its slot: those behind it wait anew.
    pub(super) fn normal_queue_moved(&mut self) {
        self.starvation.normal.since = None;
        self.starvation.normal.reported = false;
    }

    /// Notes since when no normal task could start, and names the first of them when that has lasted.
    pub(super) fn watch_normal_starvation(&mut self, now: Stamp, actions: &mut Actions) {
        if self.normal.is_empty() || self.lifecycle.phase != Phase::Open || self.has_a_slot() {
            return self.normal_queue_moved();
        }
        let since = *self.starvation.normal.since.get_or_insert(now);
        if self.starvation.normal.reported || now < since.after(STARVED) {
            return;
        }
        self.starvation.normal.reported = true;
        let Some(first) = self.normal.first() else { return };
        let record = self.table.live(first);
        if std::mem::replace(&mut record.starved, true) {
            return;
        }
        let (name, number) = (record.name.clone(), record.number);
        let since = record.queued.unwrap_or(record.declared);
        let mut holders: Vec<_> =
            self.table.running().iter().filter_map(|id| self.holds_a_slot(*id)).collect();
        holders.sort_unstable_by_key(|(number, _)| *number);
        let more = holders.len().saturating_sub(HOLDERS);
        holders.truncate(HOLDERS);
        let starved = Starved { name, number, since, reported_at: now, behind: holders, more };
        if self.starvation.normal.starved.len() == KEPT {
            self.starvation.normal.starved.pop_front();
        }
        self.starvation.normal.starved.push_back(Arc::new(starved.clone()));
        self.note(Note::Starved(Box::new(starved.clone())));
        actions.starved = Some(Box::new(starved));
    }

    /// Number and name of a task that holds a slot and does not lend it.
    fn holds_a_slot(&self, id: Id) -> Option<(u64, Name)> {
        let record = self.table.get(id)?;
        let holds = record.status().runs() && record.stuck != Stuck::Now;
        (holds && !self.loans.lends(id)).then(|| (record.number, record.name.clone()))
    }

    /// When the first of those that wait for a slot is named.
    pub(super) fn normal_starvation_at(&self) -> Option<Stamp> {
        self.starvation
            .normal
            .since
            .filter(|_| !self.starvation.normal.reported)
            .map(|since| since.after(STARVED))
    }

    /// Tasks that were named because they waited for a slot for too long; the last 256.
    pub(crate) fn starved(&self) -> impl Iterator<Item = &Arc<Starved>> {
        self.starvation.normal.starved.iter()
    }

    /// The one that waits now, if it was named.
    pub(crate) fn starved_now(&self) -> Option<&Starved> {
        let first = self.table.get(self.normal.first()?)?;
        self.starvation
            .normal
            .starved
            .back()
            .map(Arc::as_ref)
            .filter(|starved| self.starvation.normal.reported && starved.number == first.number)
    }
}
