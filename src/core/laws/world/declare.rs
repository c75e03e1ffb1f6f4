//! Tasks as they are declared, and the scope that `report()` seals.

use std::time::Duration;

use super::{Known, World};
use crate::core::laws::Declaration;
use crate::core::laws::Event;
use crate::core::table::{After, Spec};
use crate::core::{Actions, Class};
use crate::model::monkey::{Choice, Delivery};
use crate::model::outcome::{Outcome, SkipReason};
use crate::model::queue::Queue;

/// More than the late records that are kept, and more than a shutdown cancels at once.
const FLOOD: u64 = 1_030;

impl World {
    pub(super) fn declare(&mut self, declaration: &Declaration, actions: &mut Actions) {
        let Declaration { queue, blocking, never_delay, inside, .. } = *declaration;
        let after: Vec<(usize, bool)> =
            declaration.after.iter().filter_map(|&(n, lax)| Some((self.which(n)?, lax))).collect();
        let expected = self.verdict(declaration, &after);
        let declared_in = self.polling.filter(|_| inside);
        let spec = Spec {
            name: World::name(self.tasks.len()).into(),
            queue,
            condition: declaration.condition,
            blocking,
            timeout: declaration.timeout.map(Duration::from_millis),
            no_later_than: declaration.no_later_than.map(Duration::from_millis),
            never_delay,
            after: after
                .iter()
                .map(|&(p, accepts_any_outcome)| After {
                    id: self.tasks[p].id,
                    outcome: self.tasks[p].outcome.clone(),
                    accepts_any_outcome,
                })
                .collect(),
            declared_in: declared_in.map(|i| self.tasks[i].id),
            invalid: declaration.invalid.then(|| "wrong".into()),
        };
        let no_later = spec.no_later_than.map(|limit| self.now.after(limit));
        let timeout = spec.timeout;
        if queue == Queue::Idle {
            self.idle_joins(expected.is_none());
        }
        let id = self.core.declare(spec, self.now, actions);
        let excluded_from_started =
            after.iter().any(|&(p, _)| self.tasks[p].excluded_from_started && !self.forgotten(p));
        let in_scope = !self.sealed || declared_in.is_some_and(|i| self.tasks[i].in_scope);
        self.late += u64::from(!in_scope);
        self.first_declared.get_or_insert(self.now);
        let awaits_the_end = after.iter().any(|&(p, _)| {
            let predecessor = &self.tasks[p];
            predecessor.awaits_the_end && predecessor.outcome.is_none()
        });
        self.tasks.push(Known {
            id,
            line: queue,
            head: false,
            class: queue.into(),
            after: strictest(&after),
            blocking,
            never_delay,
            timeout,
            deadline: None,
            no_later,
            started: None,
            begun: false,
            live: false,
            stuck: false,
            outcome: None,
            demanded: false,
            demanded_by_governor: false,
            jumped: None,
            cancel_asked: false,
            polls: 0,
            in_scope,
            excluded_from_started,
            awaits_the_end,
            ends_awaited: 0,
            waits_for: Vec::new(),
            stale_wait: None,
            delayed: None,
            slow: false,
            retired: None,
            told_start: false,
            told_starved: false,
            told_end: false,
        });
        self.take(std::mem::take(actions));
        let i = self.tasks.len() - 1;
        assert_eq!(self.tasks[i].outcome, expected, "the verdict on a declaration");
        if expected.is_none() && queue == Queue::Normal {
            self.promote(i, false, &[]);
            self.raise_needs(i, Class::Normal, &[]);
        }
    }

    fn verdict(&self, declaration: &Declaration, after: &[(usize, bool)]) -> Option<Outcome> {
        let did_not_complete = |&&(p, lax): &&(usize, bool)| {
            !lax && self.tasks[p].outcome.as_ref().is_some_and(|outcome| !outcome.is_completed())
        };
        let broken = after.iter().find(did_not_complete).map(|&(p, _)| {
            if self.forgotten(p) { "a task that is no longer listed".into() } else { World::name(p) }
        });
        match (self.closed, broken) {
            _ if declaration.invalid => Some(Outcome::Invalid("wrong".into())),
            (Some(why), _) => Some(Outcome::Cancelled(why)),
            _ if !declaration.condition => Some(Outcome::Skipped(SkipReason::Condition)),
            (None, Some(name)) => Some(Outcome::Skipped(SkipReason::Predecessor(name.into()))),
            (None, None) => None,
        }
    }

    /// A task, and all it comes after, wait in the normal queue from now on. `ended` have just ended.
    pub(super) fn promote(&mut self, i: usize, head: bool, ended: &[bool]) {
        if !self.tasks[i].waits() || ended.get(i) == Some(&true) {
            return;
        }
        self.tasks[i].line = Queue::Normal;
        self.tasks[i].head |= head;
        for (p, _) in self.tasks[i].after.clone() {
            self.promote(p, head, ended);
        }
    }

    pub(super) fn flood(&mut self) {
        if self.floods == 3 {
            return;
        }
        self.floods += 1;
        let mut actions = Actions::default();
        for _ in 0..FLOOD {
            let spec = Spec {
                name: "one of many".into(),
                queue: Queue::Normal,
                condition: true,
                blocking: false,
                timeout: None,
                no_later_than: None,
                never_delay: false,
                after: Vec::new(),
                declared_in: None,
                invalid: Some("wrong".into()),
            };
            self.core.declare(spec, self.now, &mut actions);
        }
        assert_eq!(actions.resolve.len() as u64, FLOOD);
        // Nobody knows them any more, and nothing but this changed.
        actions.resolve.clear();
        assert_eq!(self.core.take_notes().len() as u64, 2 * FLOOD);
        self.first_declared.get_or_insert(self.now);
        if self.sealed {
            self.late += FLOOD;
            self.late_left += FLOOD;
        }
        self.take(actions);
    }

    /// Whether the record of a task may be gone: the last 1,000 late ones that have left are kept.
    pub(super) fn forgotten(&self, i: usize) -> bool {
        self.tasks[i].retired.is_some_and(|before| self.late_left > before + 1_000)
    }

    pub(super) fn seal(&mut self) {
        self.core.seal(self.now);
        if std::mem::replace(&mut self.sealed, true) {
            return;
        }
        let Some(delay_injector) = self.core.delay_injector() else { return };
        let free = |i: usize| {
            let task = &self.tasks[i];
            task.waits() && !task.demanded && !task.demanded_by_governor && !task.never_delay
        };
        let victim = delay_injector.victim.and_then(|id| self.tasks.iter().position(|task| task.id == id));
        let strikes = delay_injector.delivery == Delivery::Pending;
        assert!(!strikes || victim.is_some_and(free), "the monkey's victim is {victim:?}");
        match delay_injector.monkey.choice {
            Choice::Random => assert_eq!(victim.is_some(), (0..self.tasks.len()).any(free)),
            Choice::Index(_) | Choice::Task(_) => {
                assert_eq!(strikes, victim.is_some_and(free), "{:?}", delay_injector.delivery);
            }
        }
        // Only a task that will be late on purpose is left out of what `started()` waits for.
        for i in 0..self.tasks.len() {
            let after_it = self.tasks[i].after.iter().any(|&(p, _)| self.tasks[p].excluded_from_started);
            self.tasks[i].excluded_from_started =
                strikes && self.tasks[i].waits() && (victim == Some(i) || after_it);
        }
    }

    /// Whether the task was declared in this step.
    pub(super) fn is_new(&self, i: usize) -> bool {
        matches!(self.cause, Event::Declare(_)) && i + 1 == self.tasks.len()
    }
}

/// Who is named twice is named by the stricter word.
fn strictest(after: &[(usize, bool)]) -> Vec<(usize, bool)> {
    let mut once: Vec<(usize, bool)> = Vec::new();
    for &(p, lax) in after {
        match once.iter_mut().find(|(known, _)| *known == p) {
            Some((_, known)) => *known &= lax,
            None => once.push((p, lax)),
        }
    }
    once
}
