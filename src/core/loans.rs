//! The graph of waits between tasks, and the slots that they lend. Kept here only.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::id::Id;

/// What of the run somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Started,
    Finished,
}

/// What a running task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The end of a task, by its handle.
    Task(Id),
    /// Something of the run; no path of waits leads over it.
    Run(Waits),
}

/// One wait of one task: a task may have several for the same end, and give up any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loan(u64);

/// The waits of all tasks. Each is counted by itself, and found from both of its ends.
#[derive(Debug, Default)]
pub(super) struct Loans {
    by_waiter: BTreeMap<Id, BTreeMap<Loan, Target>>,
    by_target: BTreeMap<Id, BTreeSet<(Id, Loan)>>,
    made: u64,
}

impl Loans {
    pub(super) fn begin(&mut self, waiter: Id, target: Target) -> Loan {
        self.made += 1;
        let loan = Loan(self.made);
        self.by_waiter.entry(waiter).or_default().insert(loan, target);
        if let Target::Task(target) = target {
            self.by_target.entry(target).or_default().insert((waiter, loan));
        }
        loan
    }

    /// Whether this wait goes on.
    pub(super) fn knows(&self, waiter: Id, loan: Loan) -> bool {
        self.by_waiter.get(&waiter).is_some_and(|loans| loans.contains_key(&loan))
    }

    /// Ends one wait. One that has ended before is none.
    pub(super) fn end(&mut self, waiter: Id, loan: Loan) {
        let Some(loans) = self.by_waiter.get_mut(&waiter) else { return };
        let target = loans.remove(&loan);
        if loans.is_empty() {
            self.by_waiter.remove(&waiter);
        }
        if let Some(Target::Task(target)) = target {
            self.leave(target, waiter, loan);
        }
    }

    fn leave(&mut self, target: Id, waiter: Id, loan: Loan) {
        if let Some(waiters) = self.by_target.get_mut(&target) {
            waiters.remove(&(waiter, loan));
            if waiters.is_empty() {
                self.by_target.remove(&target);
            }
        }
    }

    /// The task has ended: nobody waits for it any more.
    pub(super) fn target_is_over(&mut self, target: Id) {
        for (waiter, loan) in self.by_target.remove(&target).unwrap_or_default() {
            if let Some(loans) = self.by_waiter.get_mut(&waiter) {
                loans.remove(&loan);
                if loans.is_empty() {
                    self.by_waiter.remove(&waiter);
                }
            }
        }
    }

    /// The task runs no more, or not now: it waits for nobody.
    pub(super) fn waiter_is_over(&mut self, waiter: Id) {
        for (loan, target) in self.by_waiter.remove(&waiter).unwrap_or_default() {
            if let Target::Task(target) = target {
                self.leave(target, waiter, loan);
            }
        }
    }

    /// Whether the task waits for anything.
    pub(super) fn lends(&self, id: Id) -> bool {
        self.by_waiter.contains_key(&id)
    }

    /// The tasks that wait for the end of the run, each once.
    pub(super) fn for_the_end(&self) -> impl Iterator<Item = Id> {
        let end = Target::Run(Waits::Finished);
        let all = self.by_waiter.iter();
        all.filter(move |(_, loans)| loans.values().any(|target| *target == end)).map(|(id, _)| *id)
    }

    /// How many tasks wait.
    pub(super) fn len(&self) -> usize {
        self.by_waiter.len()
    }

    /// The tasks that this one waits for; one for which it waits twice comes twice.
    pub(super) fn targets(&self, waiter: Id) -> impl Iterator<Item = Id> {
        let loans = self.by_waiter.get(&waiter).into_iter().flat_map(BTreeMap::values);
        loans.filter_map(|target| match target {
            Target::Task(id) => Some(*id),
            Target::Run(_) => None,
        })
    }

    /// The tasks that wait for this one; one that waits twice comes twice.
    pub(super) fn waiters(&self, target: Id) -> impl Iterator<Item = Id> {
        self.by_target.get(&target).into_iter().flatten().map(|(waiter, _)| *waiter)
    }
}
