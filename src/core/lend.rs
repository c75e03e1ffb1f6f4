//! Lending: a task that waits for another one's handle lends its slot. A wait that would close a cycle is rejected.

use std::collections::BTreeSet;

use crate::base::clock::Stamp;
use crate::core::table::Status;
use crate::model::id::Id;

use super::actions::Actions;
use super::loans::{Loan, Target, Waits};
use super::scheduler::Core;

/// How many names of what a task waited for are kept.
const AWAITED: usize = 64;

impl Core {
    /// A running task waits for another one: its slot is lent until the wait is over. None where it is not.
    ///
    /// # Errors
    /// The names along the cycle that this wait would close, from the waiting task back to itself.
    pub(crate) fn wait_begins(
        &mut self,
        waiter: Id,
        target: Id,
        now: Stamp,
        actions: &mut Actions,
    ) -> Result<Option<Loan>, Vec<String>> {
        let running = self.is_running(waiter);
        let ended = self.table.get(target).is_none_or(|record| record.outcome.is_some());
        if !running || ended {
            return Ok(None);
        }
        if self.leads_to(target, waiter) {
            let path = self.path(target, waiter).unwrap_or_default();
            let names = std::iter::once(waiter).chain(path).filter_map(|id| self.table.get(id));
            return Err(names.map(|record| record.name.to_string()).collect());
        }
        let loan = self.loans.begin(waiter, Target::Task(target));
        let name = self.table.live(target).name.clone();
        let awaited = &mut self.table.live(waiter).ties_mut().awaited;
        if awaited.len() < AWAITED && !awaited.contains(&name) {
            awaited.push(name);
        }
        self.hand_on(waiter, target, now, actions);
        // A slot may have become free to be filled.
        actions.lane = true;
        Ok(Some(loan))
    }

    /// A running task waits for the end of the run, or its last start: its slot is lent as for any wait.
    pub(crate) fn awaits_the_run(&mut self, waiter: Id, waits: Waits, actions: &mut Actions) -> Option<Loan> {
        if !self.is_running(waiter) {
            return None;
        }
        if waits == Waits::Finished {
            actions.run_changed |= self.awaits_the_end(waiter);
        }
        actions.lane = true;
        Some(self.loans.begin(waiter, Target::Run(waits)))
    }

    /// Whether its code runs; that of a blocking closure may outlive its outcome, and lends all the same.
    fn is_running(&self, id: Id) -> bool {
        self.table.get(id).is_some_and(|record| record.status().runs())
    }

    /// Whether the task still waits so.
    pub(crate) fn waits(&self, waiter: Id, loan: Loan) -> bool {
        self.loans.knows(waiter, loan)
    }

    /// The wait is over: what was waited for has come, or the waiter has given up. Who has seen the end of the run stays
    /// left out of it.
    pub(crate) fn wait_ends(&mut self, waiter: Id, loan: Loan, target: Target, come: bool) {
        self.loans.end(waiter, loan);
        if target == Target::Run(Waits::Finished) && !come {
            self.awaits_the_end_no_more(waiter);
        }
    }

    /// How many running tasks lend their slot: one that is stuck has none to lend.
    pub(super) fn lending(&self) -> usize {
        let stuck = self.polls.stuck.iter().filter(|polling| self.loans.lends(polling.id));
        self.loans.len() - stuck.count()
    }

    /// Whether a way of waits leads from one task to the other. It is looked for from both ends at once, a task each
    /// in turn: a long chain behind one of them costs nothing where the other stands alone.
    fn leads_to(&self, from: Id, to: Id) -> bool {
        let (mut forth, mut back) = (Search::from(from), Search::from(to));
        loop {
            let Some(id) = forth.next() else { return false };
            if id == to {
                return true;
            }
            forth.reach(self.waited_for(id));
            let Some(id) = back.next() else { return false };
            if id == from {
                return true;
            }
            back.reach(self.waiting_for(id));
        }
    }

    /// From `from` over what each task waits for, or comes after, to `to`; both ends are in the path.
    fn path(&self, from: Id, to: Id) -> Option<Vec<Id>> {
        let mut path = vec![(from, self.waited_for(from))];
        let mut seen = BTreeSet::from([from]);
        if from == to {
            return Some(vec![from]);
        }
        while let Some((_, next)) = path.last_mut() {
            match next.pop() {
                Some(id) if id == to => {
                    return Some(path.iter().map(|(id, _)| *id).chain([to]).collect());
                }
                Some(id) if seen.insert(id) => path.push((id, self.waited_for(id))),
                Some(_) => {}
                None => {
                    path.pop();
                }
            }
        }
        None
    }

    /// What it comes after, while it has not started, and what it waits for.
    pub(super) fn waited_for(&self, id: Id) -> Vec<Id> {
        let predecessors = self
            .table
            .get(id)
            .filter(|record| record.status() == Status::Waiting)
            .and_then(|record| record.ties.as_ref())
            .map_or(&[][..], |ties| &ties.predecessors);
        predecessors.iter().copied().chain(self.loans.targets(id)).collect()
    }

    /// What cannot end, or start, before this task has ended.
    fn waiting_for(&self, id: Id) -> Vec<Id> {
        let ties = self.table.get(id).and_then(|record| record.ties.as_ref());
        let successors = ties.map_or(&[][..], |ties| &ties.successors).iter().map(|successor| successor.id);
        let waiting = |id: &Id| self.table.get(*id).is_some_and(|record| record.status() == Status::Waiting);
        successors.filter(waiting).chain(self.loans.waiters(id)).collect()
    }
}

/// Tasks that are reached from one, each once.
struct Search {
    seen: BTreeSet<Id>,
    open: Vec<Id>,
}

impl Search {
    fn from(id: Id) -> Search {
        Search { seen: BTreeSet::from([id]), open: vec![id] }
    }

    fn reach(&mut self, ids: Vec<Id>) {
        let Search { seen, open } = self;
        open.extend(ids.into_iter().filter(|id| seen.insert(*id)));
    }

    fn next(&mut self) -> Option<Id> {
        self.open.pop()
    }
}
