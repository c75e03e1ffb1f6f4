//! Closing the scope of the run, and waiting for its end.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use crate::base::clock::Stamp;
use crate::core::delay::{Candidate, DelayInjector};
use crate::core::table::{Record, Start, Status};
use crate::model::id::Id;
use crate::model::monkey::Delivery;

use super::loans::Waits;
use super::outcomes::Outcomes;
use super::scheduler::Core;
use super::scope::Scope;

impl Core {
    /// No handle of the governor is left: nothing more is declared.
    pub(crate) fn last_governor_dropped(&mut self) {
        self.lifecycle.deserted = true;
    }

    /// Whether nothing more can happen.
    pub(crate) fn is_over(&self) -> bool {
        (self.is_closed() || self.lifecycle.deserted) && !self.has_work()
    }

    /// What the application counts itself.
    pub(crate) fn application_outcome(&mut self, name: Cow<'static, str>, ok: bool, now: Stamp) {
        self.outcomes.push(name, ok, now);
    }

    pub(crate) fn application_outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn delay_injector(&self) -> Option<&DelayInjector> {
        self.delay_injector.as_ref()
    }

    /// The monkey's victim, while it is delayed.
    pub(crate) fn delayed(&self) -> Option<&Record> {
        let victim = self.delay_injector.as_ref()?.victim?;
        self.table.get(victim).filter(|record| record.status() == Status::Delayed)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn profile(&self) -> &crate::model::profile::Profile {
        &self.profile
    }

    pub(crate) fn stalls(&self) -> &crate::core::stalls::Stalls {
        &self.stalls
    }

    /// Seals the scope and lets the monkey pick. Only the first call does anything.
    pub(crate) fn seal(&mut self, now: Stamp) {
        if self.scope.sealed.is_some() {
            return;
        }
        self.scope.sealed = Some(now);
        // What the report speaks of is kept from now on.
        self.scope.ended = VecDeque::new();
        if let Some(mut delay_injector) = self.delay_injector.take() {
            let mut candidates: Vec<Candidate<'_>> = self
                .table
                .iter()
                .map(|(id, record)| Candidate {
                    id,
                    number: record.number,
                    name: &record.name,
                    started: record.started.is_some(),
                    ended: record.outcome.is_some(),
                    demanded: record.demanded || record.status() == Status::Demanded,
                    excluded: record.never_delay,
                })
                .collect();
            candidates.sort_by_key(|candidate| candidate.number);
            delay_injector.pick(&candidates);
            if let Some(victim) =
                delay_injector.victim.filter(|_| delay_injector.delivery == Delivery::Pending)
            {
                self.exclude_from_started(victim);
            }
            self.delay_injector = Some(delay_injector);
        }
    }

    /// `started()` must not wait a minute for the task that is late on purpose, nor for what comes after it.
    fn exclude_from_started(&mut self, victim: Id) {
        let mut excluded_from_started = vec![victim];
        while let Some(id) = excluded_from_started.pop() {
            let Some(record) = self.table.get_mut(id) else { continue };
            if record.start != Start::Awaited || record.outcome.is_some() {
                continue;
            }
            record.start = Start::Excluded;
            self.scope.unstarted -= 1;
            excluded_from_started
                .extend(record.ties.iter().flat_map(|ties| &ties.successors).map(|successor| successor.id));
        }
    }

    /// Whether what is waited for has come.
    pub(crate) fn has_come(&self, waits: Waits) -> bool {
        match waits {
            Waits::Started => self.scope.unstarted == 0,
            Waits::Finished => self.scope.unfinished == 0,
        }
    }

    /// A governed task waits for the end of the run: it is left out of what it waits for, with what comes after it.
    /// True where that was the last thing others waited for too.
    pub(crate) fn awaits_the_end(&mut self, id: Id) -> bool {
        if let Some(record) = self.table.get_mut(id) {
            record.ties_mut().ends_awaited += 1;
        }
        for id in self.with_successors(id) {
            let Some(record) = self.table.get_mut(id) else { continue };
            if record.outcome.is_none() && !std::mem::replace(&mut record.awaits_the_end, true) {
                self.scope.unfinished -= usize::from(record.in_scope);
            }
        }
        self.scope.unfinished == 0
    }

    /// The task has given up one wait for the end of the run. With its last one others wait for it again, and for what
    /// comes after it, unless that comes after another task that awaits the end.
    pub(crate) fn awaits_the_end_no_more(&mut self, id: Id) {
        let record = self.table.get_mut(id).filter(|record| record.outcome.is_none());
        let Some(ties) = record.and_then(|record| record.ties.as_mut()) else { return };
        // Where it has no such wait, it gives none up.
        let Some(left) = ties.ends_awaited.checked_sub(1) else { return };
        ties.ends_awaited = left;
        if left > 0 {
            return;
        }
        let number = |id: &Id| self.table.get(*id).map(|record| record.number);
        let mut all = self.with_successors(id);
        // Predecessors are declared first, so each is judged before what comes after it.
        all.sort_unstable_by_key(number);
        for id in all {
            let Some(record) = self.table.get(id) else { continue };
            if record.awaits_the_end && record.outcome.is_none() && !self.must_await_the_end(record) {
                self.scope.unfinished += usize::from(record.in_scope);
                self.table.live(id).awaits_the_end = false;
            }
        }
    }

    /// Whether the task awaits the end of the run, or comes after one that does.
    fn must_await_the_end(&self, record: &Record) -> bool {
        let Some(ties) = &record.ties else { return false };
        let awaits = |id: &Id| {
            self.table.get(*id).is_some_and(|record| record.awaits_the_end && record.outcome.is_none())
        };
        ties.ends_awaited > 0 || ties.predecessors.iter().any(awaits)
    }

    /// A task and all that comes after it, each once.
    fn with_successors(&self, id: Id) -> Vec<Id> {
        let mut all = BTreeSet::from([id]);
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            let ties = self.table.get(id).and_then(|record| record.ties.as_ref());
            for successor in ties.map_or(&[][..], |ties| &ties.successors) {
                if all.insert(successor.id) {
                    next.push(successor.id);
                }
            }
        }
        all.into_iter().collect()
    }
}
