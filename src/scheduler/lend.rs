//! A task that waits for another's handle lends its slot, and waits that close a cycle are refused.

use crate::clock::Stamp;
use crate::table::{Id, Status};

use super::{Actions, Core};

/// How many names of what a task waited for are kept.
const AWAITED: usize = 64;

impl Core {
    /// A running task waits for another one: its slot is lent until the wait is over. True where it is.
    ///
    /// # Errors
    /// The names along the cycle that this wait would close, from the waiting task back to itself.
    pub(crate) fn wait_begins(
        &mut self,
        waiter: Id,
        target: Id,
        now: Stamp,
        actions: &mut Actions,
    ) -> Result<bool, Vec<String>> {
        let running = self.is_running(waiter);
        let ended = self.table.get(target).is_none_or(|record| record.outcome.is_some());
        if !running || ended {
            return Ok(false);
        }
        if let Some(path) = self.path(target, waiter) {
            let names = std::iter::once(waiter).chain(path).filter_map(|id| self.table.get(id));
            return Err(names.map(|record| record.name.to_string()).collect());
        }
        let targets = self.waits.entry(waiter).or_default();
        targets.push(target);
        let name = self.table.live(target).name.clone();
        let awaited = &mut self.table.live(waiter).ties_mut().awaited;
        if awaited.len() < AWAITED && !awaited.contains(&name) {
            awaited.push(name);
        }
        self.hand_on(waiter, target, now, actions);
        // A slot may have become free to be filled.
        actions.lane = true;
        Ok(true)
    }

    /// A running task waits for the end of the run, or its last start: its slot is lent as for any wait. It is written
    /// down as a wait for itself, which no path follows.
    pub(crate) fn awaits_the_run(&mut self, waiter: Id, actions: &mut Actions) {
        if self.is_running(waiter) {
            let targets = self.waits.entry(waiter).or_default();
            if !targets.contains(&waiter) {
                targets.push(waiter);
                actions.lane = true;
            }
        }
    }

    /// Whether its code runs; that of a blocking closure may outlive its outcome, and lends all the same.
    fn is_running(&self, id: Id) -> bool {
        self.table.get(id).is_some_and(|record| matches!(record.status, Status::Running | Status::Overdue))
    }

    /// The wait is over: its target has ended, or the waiter has given up.
    pub(crate) fn wait_ends(&mut self, waiter: Id, target: Id) {
        if let Some(targets) = self.waits.get_mut(&waiter) {
            if let Some(place) = targets.iter().position(|id| *id == target) {
                targets.swap_remove(place);
            }
            if targets.is_empty() {
                self.waits.remove(&waiter);
            }
        }
    }

    /// A task has ended: nobody waits for it any more. Those who waited count as running again at once, so that no start takes the slot they come back to.
    pub(super) fn waits_are_over(&mut self, id: Id) {
        if self.waits.is_empty() {
            return;
        }
        self.waits.retain(|_, targets| {
            targets.retain(|target| *target != id);
            !targets.is_empty()
        });
    }

    /// How many running tasks lend their slot: one that is stuck has none to lend.
    pub(super) fn lending(&self) -> usize {
        let stuck = self.stuck.iter().filter(|polling| self.waits.contains_key(&polling.id));
        self.waits.len() - stuck.count()
    }

    /// From `from` over what each task waits for, or comes after, to `to`; both ends are in the path.
    fn path(&self, from: Id, to: Id) -> Option<Vec<Id>> {
        let mut path = vec![(from, self.waited_for(from))];
        let mut seen = vec![from];
        if from == to {
            return Some(vec![from]);
        }
        while let Some((_, next)) = path.last_mut() {
            match next.pop() {
                Some(id) if id == to => {
                    return Some(path.iter().map(|(id, _)| *id).chain([to]).collect());
                }
                Some(id) if seen.contains(&id) => {}
                Some(id) => {
                    seen.push(id);
                    path.push((id, self.waited_for(id)));
                }
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
            .filter(|record| record.status == Status::Waiting)
            .and_then(|record| record.ties.as_ref())
            .map_or(&[][..], |ties| &ties.predecessors);
        let waits = self.waits.get(&id).map_or(&[][..], Vec::as_slice);
        predecessors.iter().chain(waits).copied().collect()
    }
}
