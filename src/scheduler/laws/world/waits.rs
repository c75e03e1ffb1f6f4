//! Tasks that wait for each other: who lends a slot, and which wait would close a cycle.

use super::World;
use crate::scheduler::Actions;

impl World {
    pub(super) fn wait_begins(&mut self, stuck: bool, target: usize, actions: &mut Actions) {
        let waiter = if stuck { self.stuck.first().copied() } else { self.polling };
        // A blocking closure cannot wait, and a task has one future to drop.
        let waiter = waiter.filter(|&i| !self.tasks[i].blocking && self.tasks[i].stale_wait.is_none());
        let (Some(i), Some(j)) = (waiter, self.which(target)) else { return };
        let (waiting, awaited) = (self.tasks[i].id, self.tasks[j].id);
        let begun = self.core.wait_begins(waiting, awaited, self.now, actions);
        if begun == Ok(true) {
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
                assert!(lent, "a task that waits lends its slot");
                assert!(!self.reaches(j, i), "a cycle of waits from task {i} over task {j}");
                self.tasks[i].waits_for.push(j);
            }
        }
    }

    pub(super) fn wait_ends(&mut self, n: usize) {
        let Some(i) = self.which(n) else { return };
        let task = &mut self.tasks[i];
        if let Some(j) = task.waits_for.pop().or(task.stale_wait.take()) {
            let (waiter, target) = (task.id, self.tasks[j].id);
            self.core.wait_ends(waiter, target);
        }
    }

    /// The waiting future may outlive its wait, and is dropped later.
    pub(super) fn nobody_waits_for(&mut self, ended: usize) {
        for (i, task) in self.tasks.iter_mut().enumerate() {
            if let Some(&j) = task.waits_for.iter().find(|&&j| i == ended || j == ended) {
                task.stale_wait = Some(j);
                task.waits_for.retain(|&j| i != ended && j != ended);
            }
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
        after.chain(task.waits_for.iter().copied()).filter(|&j| self.tasks[j].outcome.is_none())
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
