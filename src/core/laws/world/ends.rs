//! How tasks end without a poll: each end that the core orders must have its reason, and come when it has.

use super::World;
use crate::core::laws::Event;
use crate::core::{Actions, Class, Resolve};
use crate::model::id::Id;
use crate::model::outcome::{CancelReason, Outcome, SkipReason};

impl World {
    /// Does what the core orders.
    pub(super) fn take(&mut self, actions: Actions) {
        for Resolve { id, name, outcome, still_running } in actions.resolve {
            let i = self.place(id);
            assert_eq!(name.to_string(), World::name(i));
            assert!(self.tasks[i].outcome.is_none(), "task {i} ends twice");
            assert!(
                self.may_end(i, &outcome, still_running),
                "no reason for task {i} to be {outcome} (still running: {still_running})"
            );
            self.ends(i, outcome, still_running);
        }
        for id in actions.repoll {
            let i = self.place(id);
            assert!(self.tasks[i].live, "nothing is left to poll of task {i}");
            self.wake(i);
        }
        self.quiet.probe |= self.core.wants_probe();
        self.awake |= actions.lane;
        self.lane |= actions.lane && self.core.has_work();
        self.announced |= actions.run_changed;
        self.core.forget_retired();
    }

    fn may_end(&self, i: usize, outcome: &Outcome, still_running: bool) -> bool {
        let task = &self.tasks[i];
        let asked = self.asked_to_end == Some(i);
        let cannot_be_dropped = task.blocking || task.stuck;
        match outcome {
            // A declaration's verdict is compared as a whole.
            _ if self.is_new(i) => task.waits() && !still_running,
            Outcome::Skipped(SkipReason::Predecessor(name)) => {
                // Who comes after what a shutdown cancels falls to the same shutdown.
                let why = self.closed.map(Outcome::Cancelled);
                let by =
                    |&p: &usize| World::name(p) == **name && (why.is_none() || self.tasks[p].outcome != why);
                task.waits() && !still_running && self.broken(i).any(|p| by(&p))
            }
            Outcome::Cancelled(CancelReason::Requested) => asked && task.waits() && !still_running,
            Outcome::Cancelled(why) if task.waits() => !still_running && self.closed == Some(*why),
            Outcome::Cancelled(why) => {
                let dropped = matches!(self.cause, Event::EndRunning) && self.closed == Some(*why);
                dropped && task.live && !still_running && !task.blocking && !self.inside_a_poll(i)
            }
            Outcome::TimedOut { still_running: true } => {
                task.live && still_running && cannot_be_dropped && self.is_past_its_limit(i)
            }
            Outcome::Abandoned => {
                let ended = matches!(self.cause, Event::EndRunning)
                    && self.closed.is_some()
                    && (task.blocking || self.inside_a_poll(i));
                let given_up = task.stuck && task.cancel_asked;
                task.live && still_running && ((asked && cannot_be_dropped) || ended || given_up)
            }
            _ => false,
        }
    }

    /// Whose end keeps this task from starting.
    fn broken(&self, i: usize) -> impl Iterator<Item = usize> {
        let after = self.tasks[i].after.iter().filter(|(_, lax)| !lax);
        let did_not_complete =
            |&p: &usize| self.tasks[p].outcome.as_ref().is_some_and(|outcome| !outcome.is_completed());
        after.map(|&(p, _)| p).filter(did_not_complete)
    }

    fn is_past_its_limit(&self, i: usize) -> bool {
        self.tasks[i].deadline.is_some_and(|at| at <= self.now)
    }

    pub(super) fn ends(&mut self, i: usize, outcome: Outcome, still_running: bool) {
        assert!(self.tasks[i].outcome.replace(outcome).is_none(), "task {i} ends twice");
        self.nobody_waits_for(i);
        if !still_running {
            self.leaves(i);
        }
    }

    /// Where the runtime is gone, no lane will hear of a blocking closure's return.
    pub(super) fn nobody_sees_blocking_tasks_out(&mut self, event: &Event) {
        let lost = self.closed == Some(CancelReason::RuntimeGone) && self.cancelled_to.is_none();
        if !lost || !matches!(event, Event::EndRunning) {
            return;
        }
        for i in 0..self.tasks.len() {
            if self.tasks[i].live && self.tasks[i].blocking && !self.inside_a_poll(i) {
                self.leaves(i);
            }
        }
    }

    /// Nothing of the task runs any more.
    pub(super) fn leaves(&mut self, i: usize) {
        let task = &mut self.tasks[i];
        task.live = false;
        self.turns.leaves(i);
        let task = &mut self.tasks[i];
        if !task.in_scope {
            task.retired = Some(self.late_left);
            self.late_left += 1;
        }
    }

    /// What passes in time, in the order of time: a limit may end a task before its own moment comes.
    pub(super) fn deadlines_pass(&mut self) {
        let mut due = Vec::new();
        for (i, task) in self.tasks.iter().enumerate() {
            let limit = task.deadline.filter(|_| task.runs_unresolved() && (task.blocking || task.stuck));
            let no_later = task.no_later.filter(|_| task.waits());
            due.extend(limit.map(|at| (at, task.id, false, i)));
            due.extend(no_later.map(|at| (at, task.id, true, i)));
        }
        due.retain(|(at, ..)| *at <= self.now);
        due.sort_by_key(|&(at, id, no_later, _): &(_, Id, bool, usize)| (at, id, no_later));
        let mut ended = vec![false; self.tasks.len()];
        for (_, _, no_later, i) in due {
            if no_later {
                self.tasks[i].no_later = None;
                self.raise(i, Class::Normal, &ended);
                self.promote(i, true, &ended);
                continue;
            }
            // Predecessors are always declared before.
            ended[i] = true;
            for k in i + 1..self.tasks.len() {
                let skipped = self.tasks[k].after.iter().any(|&(p, lax)| !lax && ended[p]);
                ended[k] |= skipped && self.tasks[k].waits();
            }
        }
    }

    /// After time has passed.
    pub(super) fn limits_are_kept(&self) {
        for (i, task) in self.tasks.iter().enumerate() {
            if task.runs_unresolved() && self.is_past_its_limit(i) {
                assert!(!task.blocking && !task.stuck, "task {i} keeps its handle waiting beyond its limit");
                assert!(self.will_be_polled(i), "nobody drops task {i}, which is past its limit");
            }
        }
    }

    fn will_be_polled(&self, i: usize) -> bool {
        self.polling == Some(i) || self.turns.is_woken(i)
    }

    /// A shutdown looks at no more than 1,024 tasks at once.
    pub(super) fn a_piece_is_cancelled(&mut self) {
        let to = self.cancelled_to.map(|from| from + 1_024);
        self.cancelled_to = to.filter(|to| *to < self.core.table().places());
    }

    pub(super) fn check_ends(&self) {
        for (i, task) in self.tasks.iter().enumerate() {
            let broken = self.closed.is_none() && task.waits() && self.broken(i).next().is_some();
            assert!(!broken, "task {i} waits for what will not complete");
            if task.runs_unresolved() && task.cancel_asked {
                assert!(!task.stuck, "task {i} was cancelled, is stuck, and keeps its handle waiting");
                assert!(self.will_be_polled(i), "nobody drops task {i}, which was cancelled");
            }
        }
        if let Some(task) = self.asked_to_end.map(|i| &self.tasks[i]) {
            assert!(task.outcome.is_some() || task.cancel_asked, "a cancellation did nothing");
        }
        let closed = self.closed.is_some() && self.cancelled_to.is_none();
        let unstarted = self.tasks.iter().any(|task| task.waits());
        assert!(!closed || !unstarted, "a shutdown has forgotten somebody");
    }
}
