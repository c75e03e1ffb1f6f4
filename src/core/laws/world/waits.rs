//! Tasks that wait for each other: who lends a slot, and which wait would close a cycle.

use super::World;
use crate::core::{Actions, Target};

impl World {
    pub(super) fn wait_begins(&mut self, stuck: bool, target: usize, actions: &mut Actions) {
        let waiter = if stuck { self.stuck.first().copied() } else { self.polling };
        // A blocking closure cannot wait, and a task has one future to drop.
        let waiter = waiter.filter(|&i| !self.tasks[i].blocking && self.tasks[i].stale_wait.is_none());
        let (Some(i), Some(j)) = (waiter, self.which(target)) else { return };
        let (waiting, awaited) = (self.tasks[i].id, self.tasks[j].id);
        let begun = self.core.wait_begins(waiting, awaited, self.now, actions);
        if matches!(begun, Ok(Some(_))) {
            self.hand_on(i, j);
        }
        match begun {
            _ if !self.tasks[i].runs_unresolved() || self.tasks[j].outcome.is_some() => {}
            Err(path) => {
                assert_eq!(path.first(), Some(&World::name(i)), "a cycle begins with who waits");
                assert_eq!(path.last(), Some(&World::name(i)), "a cycle ends with who waits");
                let place = |name: &str| (0..self.tasks.len()).find(|&i| World::name(i) == name).unwrap();
                let path: Vec<usize> = path.iter().map(|name| place(name)).collect();
                assert_eq!(path[1], j, "the wait that is refused is the cycle's first");
                for pair in path[1..].windows(2) {
                    assert!(self.needs(pair[0]).any(|k| k == pair[1]), "task {} waits for nobody", pair[0]);
                }
            }
            Ok(lent) => {
                let loan = lent.expect("a task that waits lends its slot");
                assert!(!self.reaches(j, i), "a cycle of waits from task {i} over task {j}");
                self.tasks[i].waits_for.push((j, loan));
            }
        }
    }

    pub(super) fn wait_ends(&mut self, n: usize) {
        let Some(i) = self.which(n) else { return };
        let task = &mut self.tasks[i];
        let loan = task.waits_for.pop().map(|(_, loan)| loan).or(task.stale_wait.take());
        if let Some(loan) = loan {
            self.core.wait_ends(task.id, loan, Target::Task(task.id), false);
        }
    }

    /// The waiting future may outlive its wait, and is dropped later.
    pub(super) fn nobody_waits_for(&mut self, ended: usize) {
        for (i, task) in self.tasks.iter_mut().enumerate() {
            if let Some(&(_, loan)) = task.waits_for.iter().find(|&&(j, _)| i == ended || j == ended) {
                task.stale_wait = Some(loan);
                task.waits_for.retain(|&(j, _)| i != ended && j != ended);
            }
        }
    }

    /// A task gives up one of its waits for the end of the run: who awaits the end then follows from the rest.
    pub(super) fn gives_up_the_end(&mut self, i: usize) {
        if self.tasks[i].ends_awaited == 0 || self.tasks[i].outcome.is_some() {
            return;
        }
        self.tasks[i].ends_awaited -= 1;
        if self.tasks[i].ends_awaited > 0 {
            return;
        }
        let mut all: Vec<usize> = self.with_successors(i).into_iter().collect();
        all.sort_unstable();
        for i in all {
            let after = self.tasks[i]
                .after
                .iter()
                .any(|&(p, _)| self.tasks[p].awaits_the_end && self.tasks[p].outcome.is_none());
            let task = &mut self.tasks[i];
            task.awaits_the_end &= task.outcome.is_some() || task.ends_awaited > 0 || after;
        }
    }

    pub(super) fn lends(&self, i: usize) -> bool {
        let task = &self.tasks[i];
        task.runs_unresolved() && !task.stuck && !task.waits_for.is_empty()
    }

    /// What has to end before this task can end, or start.
    pub(super) fn needs(&self, i: usize) -> impl Iterator<Item = usize> {
        let task = &self.tasks[i];
        let after = task.after.iter().map(|&(p, _)| p).filter(|_| task.waits());
        after.chain(task.waits_for.iter().map(|&(j, _)| j)).filter(|&j| self.tasks[j].outcome.is_none())
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.tasks.len()];
        let mut open = vec![from];
        while let Some(i) = open.pop() {
            if !std::mem::replace(&mut seen[i], true) {
                open.extend(self.needs(i));
            }
        }
        seen[to]
    }
}
