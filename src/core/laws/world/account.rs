//! What must be true between any two events.

use super::{Known, World};
use crate::base::clock::Stamp;
use crate::core::Waits;
use crate::core::laws::Event;
use crate::core::laws::millis;
use crate::model::monkey::Delivery;
use crate::model::queue::Queue;

impl World {
    pub(super) fn check(&mut self) {
        self.who_jumped();
        self.check_gate();
        self.check_ends();
        self.check_told();
        self.check_records();
        self.check_what_others_wait_for();
        let unresolved = self.tasks.iter().filter(|task| task.runs_unresolved()).count();
        assert_eq!(self.core.running_unresolved(), unresolved, "tasks that a shutdown has to wait for");
        let work = self.tasks.iter().any(|task| task.outcome.is_none() || task.live);
        assert_eq!(self.core.has_work(), work, "whether a task has not ended");
        assert_eq!(self.core.anyone_stuck(), !self.stuck.is_empty(), "whether anybody is stuck");
        let queued = [Queue::Normal, Queue::Idle].map(|queue| self.line(queue).count());
        // A shutdown cancels in pieces, and nobody is moved for what it has cancelled.
        let as_queued = self.closed.is_some() || self.core.queued() == (queued[0], queued[1]);
        assert!(as_queued, "{:?} stand in the two queues, not {queued:?}", self.core.queued());
        let sleeps = !self.awake && !self.ticking && self.polling.is_none();
        assert!(!sleeps || !self.could_start(), "a wake-up was lost");
        assert!(!sleeps || !self.lane || work, "all is over and the lane sleeps on");
        assert!(!work || self.lane, "no lane is left for what has not ended");
    }

    fn check_records(&self) {
        assert_eq!(self.core.scope().late(), self.late, "late tasks");
        assert_eq!(self.core.scope().forgotten(), self.late_left.saturating_sub(1_000), "forgotten records");
        for (i, task) in self.tasks.iter().enumerate() {
            let record = self.core.table().get(task.id);
            assert_eq!(record.is_none(), self.forgotten(i), "whether task {i} is forgotten");
            let Some(record) = record else { continue };
            assert_eq!(record.outcome, task.outcome, "what the report says of task {i}");
            assert_eq!(record.started, task.started, "when task {i} started");
            assert_eq!(record.in_scope, task.in_scope, "whether the report speaks of task {i}");
            assert_eq!(
                record.finished.is_some(),
                task.outcome.is_some() && !task.live,
                "the end of task {i}"
            );
            assert_eq!(record.slow, task.slow, "whether task {i} was named for running long");
            assert_eq!(
                record.demanded_by_governor, task.demanded_by_governor,
                "whether task {i} was held too long"
            );
            if task.live || task.waits() {
                assert_eq!(record.class, task.class, "how urgent task {i} is");
            }
            if task.waits() {
                assert_eq!((record.line, record.head), (task.line, task.head), "where task {i} waits");
            }
        }
        let Some(delay_injector) = self.core.delay_injector().filter(|_| self.sealed) else { return };
        if let Some(task) = self.tasks.iter().find(|task| delay_injector.victim == Some(task.id)) {
            let due = matches!(delay_injector.delivery, Delivery::Pending | Delivery::Delaying);
            assert!(
                !due || (task.waits() && !task.demanded && !task.demanded_by_governor),
                "the monkey still means to delay {task:?}"
            );
        }
    }

    fn check_what_others_wait_for(&mut self) {
        let come = [
            self.tasks.iter().all(|task| !task.in_scope || task.excluded_from_started || !task.waits()),
            self.tasks.iter().all(|task| !task.in_scope || task.awaits_the_end || task.outcome.is_some()),
        ];
        for (waits, n) in [(Waits::Started, 0), (Waits::Finished, 1)] {
            assert_eq!(self.core.has_come(waits), come[n], "whether {waits:?} has come");
            // Before `report()` nobody can wait.
            let seals = matches!(self.cause, Event::Seal | Event::Close { .. });
            assert!(!come[n] || self.come[n] || self.announced || seals, "{waits:?} came unannounced");
        }
        self.come = come;
    }

    pub(super) fn settled(&self, i: usize) -> bool {
        let ended = |&(p, lax): &(usize, bool)| {
            self.tasks[p].outcome.as_ref().is_some_and(|outcome| lax || outcome.is_completed())
        };
        self.tasks[i].after.iter().all(ended)
    }

    pub(super) fn is_demanded(&self, i: usize) -> bool {
        self.tasks[i].demanded || self.tasks[i].demanded_by_governor
    }

    /// Whether the task stands among the demanded.
    pub(super) fn stands_demanded(&self, i: usize) -> bool {
        self.tasks[i].waits() && self.is_demanded(i) && self.settled(i)
    }

    pub(super) fn who_jumped(&mut self) {
        for i in 0..self.tasks.len() {
            if self.stands_demanded(i) {
                self.tasks[i].jumped.get_or_insert(self.steps);
            }
        }
    }

    fn delivery_to(&self, i: usize) -> Option<&Delivery> {
        let delay_injector = self
            .core
            .delay_injector()
            .filter(|delay_injector| delay_injector.victim == Some(self.tasks[i].id))?;
        Some(&delay_injector.delivery)
    }

    /// Who stands in this queue.
    pub(super) fn line(&self, queue: Queue) -> impl Iterator<Item = usize> {
        (0..self.tasks.len()).filter(move |&i| {
            self.tasks[i].line == queue
                && self.tasks[i].waits()
                && !self.is_demanded(i)
                && self.settled(i)
                && self.delivery_to(i) != Some(&Delivery::Delaying)
        })
    }

    /// Who is next in this queue; the monkey's victim is passed over, unless its delay is nothing.
    pub(super) fn first(&self, queue: Queue) -> Option<usize> {
        let waits = self.settings.profile.monkey.as_ref().is_some_and(|monkey| !monkey.delay.is_zero());
        self.line(queue)
            .filter(|&i| !waits || self.delivery_to(i) != Some(&Delivery::Pending))
            .min_by_key(|&i| (!self.tasks[i].head, i))
    }

    pub(super) fn concurrency(&self) -> usize {
        self.settings.profile.concurrency
    }

    /// Tasks that hold a slot.
    pub(super) fn running(&self) -> usize {
        self.tasks.iter().filter(|task| task.live && !task.stuck).count()
    }

    pub(super) fn lending(&self) -> usize {
        (0..self.tasks.len()).filter(|&i| self.lends(i)).count()
    }

    pub(super) fn has_a_slot(&self) -> bool {
        self.running() - self.lending() < self.concurrency()
    }

    /// When the rest before the next ordinary start is over.
    pub(super) fn rested(&self) -> Option<Stamp> {
        let delay = self.first_declared?.after(self.settings.profile.delay);
        let pulse = self.last_first_poll.map(|at| at.after(self.settings.profile.pulse));
        Some(pulse.map_or(delay, |pulse| pulse.max(delay)))
    }

    pub(super) fn candidate(&self) -> bool {
        self.has_a_slot()
            && (self.first(Queue::Normal).is_some()
                || (self.gate_is_open() && self.first(Queue::Idle).is_some()))
    }

    pub(super) fn could_start(&self) -> bool {
        let demanded = (0..self.tasks.len()).any(|i| self.stands_demanded(i));
        let rested = self.rested().is_some_and(|at| at <= self.now);
        self.closed.is_none() && (demanded || (rested && self.candidate()))
    }

    pub(super) fn slow_at(task: &Known) -> Option<Stamp> {
        Some(task.started?.after(millis(30_000)))
    }

    /// When the lane has to look at the latest.
    pub(super) fn earliest(&self) -> Option<Stamp> {
        let start = self.rested().filter(|_| self.candidate() && self.closed.is_none());
        let gate = self.gate_timeout_at().filter(|_| self.idle_waits() && !self.gate_is_open());
        let starved_at = self.starving.map(|since| since.after(self.settings.gate.max_hold));
        let of_tasks = self.tasks.iter().flat_map(|task| {
            let running = task.runs_unresolved();
            let slow = World::slow_at(task).filter(|_| running && !task.slow);
            let no_later = task.no_later.filter(|_| task.waits());
            [task.deadline.filter(|_| running), slow, no_later]
        });
        let all = of_tasks.chain([start, gate, starved_at]).flatten();
        all.filter(|at| *at > self.now).min()
    }

    /// Normal tasks keep the idle queue from every slot.
    pub(super) fn watch_idle_starvation(&mut self) {
        let idle_runs = self.tasks.iter().any(|task| task.live && !task.stuck && task.line == Queue::Idle);
        let kept_out = self.line(Queue::Normal).next().is_some() || !self.has_a_slot();
        let waits = !idle_runs && self.gate_is_open() && self.line(Queue::Idle).next().is_some();
        // Once kept out, a slot that is free between two normal tasks is no relief.
        self.starving = self.starving.or(Some(self.now).filter(|_| kept_out)).filter(|_| waits);
    }

    /// After `max_hold` the core demands the first of them, the monkey's victim left out: its turn is its delay's.
    pub(super) fn promote_starved(&mut self) {
        self.watch_idle_starvation();
        if self.closed.is_some() {
            // The shutdown ends all that waits, and what was starved_at just before.
            self.starving = None;
            for task in self.tasks.iter_mut() {
                task.demanded_by_governor =
                    self.core.table().get(task.id).is_some_and(|record| record.demanded_by_governor);
            }
        }
        let due = |since: Stamp| since.after(self.settings.gate.max_hold) <= self.now;
        if self.starving.is_some_and(due) {
            self.starving = None;
            if let Some(i) = self.first(Queue::Idle) {
                self.tasks[i].demanded_by_governor = true;
            }
        }
    }

    /// A task and all that has not ended and comes after it.
    pub(super) fn with_successors(&self, i: usize) -> Vec<usize> {
        let mut all = vec![i];
        let mut next = 0;
        while let Some(&p) = all.get(next) {
            next += 1;
            if self.tasks[p].outcome.is_some() {
                continue;
            }
            let after = |t: &usize| {
                let task = &self.tasks[*t];
                task.outcome.is_none() && task.after.iter().any(|(predecessor, _)| *predecessor == p)
            };
            let successors: Vec<usize> =
                (0..self.tasks.len()).filter(after).filter(|t| !all.contains(t)).collect();
            all.extend(successors);
        }
        all
    }
}
