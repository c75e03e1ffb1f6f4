//! Which governed tasks wait in one future: decided at each of its polls, as a future may be handed on or shared.

use std::sync::Weak;
use std::task::Waker;

use crate::base::catch::catch_quietly;
use crate::core::{Loan, Target};
use crate::model::id::Id;
use crate::shell::context;
use crate::shell::shared::Shared;

/// The tasks whose slots are lent because they wait in this future. Dropping it ends their waits.
pub(crate) struct Lenders {
    shared: Weak<Shared>,
    target: Target,
    waiting: Vec<(Id, Loan)>,
    /// By whom it was polled last, where somebody waits.
    waker: Option<Waker>,
}

impl Lenders {
    pub(crate) fn new(shared: Weak<Shared>, target: Target) -> Lenders {
        Lenders { shared, target, waiting: Vec::new(), waker: None }
    }

    /// The future is polled, and is not ready. Inside a governed task of the same governor that task waits from now on.
    /// Those who waited before it do so no longer, unless this is the same waker: then somebody else shares the
    /// future between them and wakes them all.
    ///
    /// # Errors
    /// The path of the cycle that this wait would close.
    pub(crate) fn polled(&mut self, waker: &Waker) -> Result<(), Vec<String>> {
        let here = context::task_of(self.shared.as_ptr());
        if here.is_none() && self.waiting.is_empty() {
            return Ok(());
        }
        let Some(shared) = self.shared.upgrade() else { return Ok(()) };
        let others = self.waiting.iter().any(|(id, _)| Some(*id) != here);
        let same = self.waker.as_ref().is_some_and(|known| known.will_wake(waker));
        if others && !same {
            self.end(|id| Some(id) != here);
        }
        if !same {
            let before = self.waker.replace(waker.clone());
            catch_quietly("the destructor of a waker", || drop(before));
        }
        let Some(here) = here else { return Ok(()) };
        // A task that rests between two attempts waits for nobody, and may come back to a wait that it kept.
        let known = self.waiting.iter().position(|(id, _)| *id == here);
        if known.is_some_and(|at| shared.lock().core.waits(here, self.waiting[at].1)) {
            return Ok(());
        }
        let stale = known.map(|at| self.waiting.swap_remove(at));
        let target = self.target;
        let loan = shared.apply(|core, now, actions| {
            if let Some((id, loan)) = stale {
                core.wait_ends(id, loan, target, false);
            }
            match target {
                Target::Task(target) => core.wait_begins(here, target, now, actions),
                Target::Run(waits) => Ok(core.awaits_the_run(here, waits, actions)),
            }
        })?;
        self.waiting.extend(loan.map(|loan| (here, loan)));
        Ok(())
    }

    /// What was waited for has come.
    pub(crate) fn arrived(&mut self) {
        self.end_with(|_| true, true);
    }

    fn end(&mut self, who: impl Fn(Id) -> bool) {
        self.end_with(who, false);
    }

    fn end_with(&mut self, who: impl Fn(Id) -> bool, come: bool) {
        let Some(shared) = self.shared.upgrade().filter(|_| !self.waiting.is_empty()) else { return };
        let target = self.target;
        shared.apply(|core, _, _| {
            for (id, loan) in self.waiting.extract_if(.., |(id, _)| who(*id)) {
                core.wait_ends(id, loan, target, come);
            }
        });
    }
}

impl Drop for Lenders {
    fn drop(&mut self) {
        self.end(|_| true);
    }
}
