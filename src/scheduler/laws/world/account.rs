//! What must be true between any two events.

use super::World;
use crate::clock::Stamp;
use crate::gate::{GateState, OpenedBy};
use crate::monkey::Delivery;
use crate::outcome::Outcome;
use crate::queue::Queue;
use crate::scheduler::Waits;
use crate::scheduler::laws::Event;

impl World {
    pub(super) fn check(&mut self, event: &Event) {
        let unresolved = self.tasks.iter().filter(|task| task.slot && task.outcome.is_none()).count();
        assert_eq!(self.core.running_unresolved(), unresolved, "slots held by unresolved tasks");
        let work = self.tasks.iter().any(|task| task.outcome.is_none() || task.slot);
        assert_eq!(self.core.has_work(), work, "whether a task has not ended");
        self.gate_opens_rightly(event);
        assert!(
            self.probe.is_some() || self.gate_is_open() || !self.idle_waits(),
            "nobody looks whether it is quiet"
        );
        for (i, task) in self.tasks.iter().enumerate() {
            let record = self.core.table().get(task.id).unwrap();
            assert_eq!(record.outcome, task.outcome, "what the report says of task {i}");
            assert_eq!(record.started, task.started, "when task {i} started");
            assert_eq!(
                record.finished.is_some(),
                task.outcome.is_some() && !task.slot,
                "the end of task {i}"
            );
            let broken = task
                .after
                .iter()
                .any(|&p| self.tasks[p].outcome.as_ref().is_some_and(|outcome| !outcome.is_completed()));
            assert!(!task.waits() || !broken || self.closed, "task {i} waits for what will not complete");
        }
        let sleeps = !self.awake && self.polling.is_none();
        assert!(!sleeps || !self.could_start(), "a wake-up was lost");
        assert!(!sleeps || !self.lane || work, "all is over and the lane sleeps on");
        let come = [
            self.tasks.iter().all(|task| !task.in_scope || task.aside || !task.waits()),
            self.tasks.iter().all(|task| !task.in_scope || task.awaits_the_end || task.outcome.is_some()),
        ];
        for (waits, n) in [(Waits::Started, 0), (Waits::Finished, 1)] {
            assert_eq!(self.core.has_come(waits), come[n], "whether {waits:?} has come");
            let by_a_start = matches!(event, Event::Turn { .. } | Event::Seal | Event::Close);
            assert!(!come[n] || self.come[n] || self.announced || by_a_start, "{waits:?} came unannounced");
        }
        self.come = come;
    }

    pub(super) fn gate_is_open(&self) -> bool {
        self.core.gate().is_open()
    }

    pub(super) fn gate_timeout(&self) {
        let due = self.first_idle.is_some_and(|first| first.after(self.settings.gate.timeout) <= self.now);
        assert!(self.gate_is_open() || !due || !self.idle_waits(), "shut beyond the timeout");
    }

    pub(super) fn idle_waits(&self) -> bool {
        self.tasks.iter().any(|task| task.queue == Queue::Idle && task.waits())
    }

    pub(super) fn quiet_since(&self, watched: Option<Stamp>) -> bool {
        if self.over || (self.settings.gate.await_ready && self.ready.is_none()) {
            return false;
        }
        let since = [watched, self.ready, self.disturbed].into_iter().flatten().max();
        since.is_some_and(|since| since.after(self.settings.gate.quiet) <= self.now)
    }

    pub(super) fn gate_opens_rightly(&mut self, event: &Event) {
        let open = self.gate_is_open();
        assert!(open || !self.was_open, "an open gate stays open");
        if open && !self.was_open {
            let by = match self.core.gate().state(self.now) {
                GateState::Open { by, .. } => by,
                GateState::Shut { .. } => unreachable!("it is open"),
            };
            let due =
                self.first_idle.is_some_and(|first| first.after(self.settings.gate.timeout) <= self.now);
            assert!(
                match by {
                    OpenedBy::Hand => matches!(event, Event::OpenGate),
                    OpenedBy::Timeout => due,
                    OpenedBy::Quiet => matches!(event, Event::Beat) && self.quiet_since(self.probe),
                },
                "opened by {by:?} without a reason"
            );
        }
        self.was_open = open;
    }

    pub(super) fn settled(&self, i: usize) -> bool {
        self.tasks[i].after.iter().all(|&p| self.tasks[p].outcome == Some(Outcome::Completed))
    }

    /// Whether an ordinary start may take this task, gate aside.
    pub(super) fn may_start(&self, i: usize) -> bool {
        let held = self.core.mischief().is_some_and(|mischief| {
            mischief.victim == Some(self.tasks[i].id)
                && matches!(mischief.delivery, Delivery::Pending | Delivery::Delaying)
        });
        self.tasks[i].waits() && !self.tasks[i].demanded && self.settled(i) && !held
    }

    pub(super) fn running(&self) -> usize {
        self.tasks.iter().filter(|task| task.slot).count()
    }

    /// When the rest before the next ordinary start is over.
    pub(super) fn rested(&self) -> Option<Stamp> {
        let delay = self.first_declared?.after(self.settings.profile.delay);
        let pulse = self.last_first_poll.map(|at| at.after(self.settings.profile.pulse));
        Some(pulse.map_or(delay, |pulse| pulse.max(delay)))
    }

    fn candidate(&self) -> bool {
        self.running() < self.settings.profile.concurrency
            && (0..self.tasks.len())
                .any(|i| self.may_start(i) && (self.tasks[i].queue == Queue::Normal || self.gate_is_open()))
    }

    pub(super) fn could_start(&self) -> bool {
        let demanded =
            (0..self.tasks.len()).any(|i| self.tasks[i].waits() && self.tasks[i].demanded && self.settled(i));
        !self.closed && (demanded || (self.candidate() && self.rested().is_some_and(|at| at <= self.now)))
    }

    /// When the lane has to look at the latest, as far as is known here.
    pub(super) fn earliest(&self) -> Option<Stamp> {
        let start = self.rested().filter(|_| self.candidate() && !self.closed);
        let timeout = self.first_idle.filter(|_| self.idle_waits() && !self.gate_is_open());
        let timeout = timeout.map(|first| first.after(self.settings.gate.timeout));
        let deadlines = self.tasks.iter().filter(|task| task.slot && task.outcome.is_none());
        deadlines
            .filter_map(|task| task.deadline)
            .filter(|at| *at > self.now)
            .chain(start)
            .chain(timeout)
            .min()
    }
}
