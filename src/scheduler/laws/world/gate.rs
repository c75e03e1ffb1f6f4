//! What is heard of the application, and when the gate may open because of it.

use std::time::Duration;

use super::World;
use crate::clock::Stamp;
use crate::gate::{GateState, HeldBy, OpenedBy};
use crate::queue::Queue;
use crate::scheduler::Actions;
use crate::scheduler::laws::Event;

/// What is known of the application.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Since when an idle task has been waiting without a break.
    idle_since: Option<Stamp>,
    /// Somebody looks whether it is quiet.
    pub(super) probe: bool,
    ready: Option<Stamp>,
    interactive_told: bool,
    /// Since when the window has counted in place of the future that failed.
    fallback: Option<Stamp>,
    requests: Vec<usize>,
    disturbed: Option<Stamp>,
    /// A stall that an idle task may have made.
    perhaps_disturbed: Option<Stamp>,
    pub(super) idle_polls: Vec<(Stamp, Stamp)>,
    was_open: bool,
}

const REQUESTS: [&str; 3] = ["GET /", "GET /search", "warm-up"];

impl World {
    pub(super) fn hear(&mut self, event: &Event, actions: &mut Actions) {
        match event {
            Event::Ready => {
                self.core.ready(self.now);
                self.quiet.ready.get_or_insert(self.now);
            }
            Event::OpenGate => self.core.open_gate(self.now, actions),
            Event::Interactive { failed } => {
                if self.settings.gate.interactive && !std::mem::replace(&mut self.quiet.interactive_told, true)
                {
                    self.core.interactive(failed.then(|| "it panicked".into()), self.now, actions);
                    self.quiet.fallback = Some(self.now).filter(|_| *failed);
                }
            }
            Event::RequestEnters(n) => {
                self.core.request_enters(&REQUESTS[*n].into());
                self.quiet.requests.push(*n);
            }
            Event::RequestLeaves(n) => {
                if let Some(place) = self.quiet.requests.iter().position(|held| held == n) {
                    let was_over = self.too_many();
                    self.quiet.requests.swap_remove(place);
                    self.core.request_leaves(REQUESTS[*n], self.now);
                    if was_over && !self.too_many() {
                        self.quiet.disturbed = Some(self.now);
                    }
                }
            }
            Event::Stall(millis) if self.quiet.probe => self.stall(Duration::from_millis(*millis)),
            Event::LongTask(millis) => {
                self.core.record_long_task("it".into(), Duration::from_millis(*millis), self.now);
                if *millis >= 50 {
                    self.quiet.disturbed = Some(self.now);
                }
            }
            Event::Beat if self.quiet.probe => self.beat(actions),
            _ => {}
        }
    }

    fn beat(&mut self, actions: &mut Actions) {
        let goes_on = self.core.beat(self.now, actions);
        let unsure =
            self.quiet.perhaps_disturbed.is_some_and(|at| at.after(self.settings.gate.quiet) > self.now);
        assert!(
            self.gate_is_open() || !self.idle_waits() || unsure || !self.was_quiet(),
            "a whole window, and shut"
        );
        assert_eq!(goes_on, self.idle_waits() && !self.gate_is_open(), "whether the probe goes on");
        self.gate_opens_rightly();
        self.quiet.probe = goes_on;
    }

    fn stall(&mut self, length: Duration) {
        let start = Stamp::from_duration(self.now.as_duration().saturating_sub(length));
        self.core.saw_stall(start, self.now, None);
        let idle = |&&i: &&usize| self.tasks[i].line == Queue::Idle;
        let in_progress = self.polling.iter().chain(&self.stuck).find(idle).is_some();
        if in_progress || self.quiet.idle_polls.iter().any(|(_, ended)| *ended >= start) {
            self.quiet.perhaps_disturbed = Some(self.now);
        } else {
            self.quiet.disturbed = Some(self.now);
        }
    }

    fn too_many(&self) -> bool {
        self.quiet.requests.len() > self.settings.gate.max_in_flight
    }

    pub(super) fn gate_is_open(&self) -> bool {
        self.core.gate().is_open()
    }

    pub(super) fn idle_waits(&self) -> bool {
        self.tasks.iter().any(|task| task.line == Queue::Idle && task.waits())
    }

    /// An idle task is declared, if `joins`.
    pub(super) fn idle_joins(&mut self, joins: bool) {
        if joins {
            self.quiet.idle_since.get_or_insert(self.now);
        }
    }

    pub(super) fn gate_timeout_at(&self) -> Option<Stamp> {
        Some(self.quiet.idle_since?.after(self.settings.gate.timeout))
    }

    fn timeout_is_due(&self) -> bool {
        self.gate_timeout_at().is_some_and(|at| at <= self.now)
    }

    /// Whether nothing has disturbed for a whole window in which somebody watched.
    fn was_quiet(&self) -> bool {
        let Facts { idle_since, ready, fallback, disturbed, .. } = self.quiet;
        let rules = &self.settings.gate;
        let begun = idle_since.is_some()
            && (!rules.await_ready || ready.is_some())
            && (!rules.interactive || fallback.is_some());
        let since = [idle_since, ready, fallback, disturbed].into_iter().flatten().max();
        begun && !self.too_many() && since.is_some_and(|since| since.after(rules.quiet) <= self.now)
    }

    /// To be asked before the tasks that it lets go have gone.
    pub(super) fn gate_opens_rightly(&mut self) {
        let open = self.gate_is_open();
        assert!(open || !self.quiet.was_open, "an open gate stays open");
        if open && !self.quiet.was_open {
            let GateState::Open { by, .. } = self.core.gate().state(self.now) else {
                panic!("open and shut at once");
            };
            assert!(
                match by {
                    OpenedBy::Hand => matches!(self.cause, Event::OpenGate),
                    OpenedBy::Interactive => matches!(self.cause, Event::Interactive { failed: false }),
                    OpenedBy::Timeout => self.timeout_is_due(),
                    OpenedBy::Quiet => matches!(self.cause, Event::Beat) && self.was_quiet(),
                },
                "opened by {by:?} without a reason"
            );
        }
        self.quiet.was_open = open;
    }

    pub(super) fn gate_keeps_its_timeout(&self) {
        assert!(
            self.gate_is_open() || !self.timeout_is_due() || !self.idle_waits(),
            "shut beyond the timeout"
        );
    }

    pub(super) fn check_gate(&mut self) {
        self.gate_opens_rightly();
        assert!(
            self.quiet.probe || self.gate_is_open() || !self.idle_waits(),
            "nobody looks whether it is quiet"
        );
        assert_eq!(self.core.in_flight(), self.quiet.requests.len());
        if !self.idle_waits() {
            self.quiet.idle_since = None;
        }
        if let GateState::Shut { why, .. } = self.core.gate().state(self.now) {
            let no_idle = why == HeldBy::NoIdleTask;
            assert_eq!(no_idle, !self.idle_waits() && self.quiet_could_count(), "shut: {why:?}");
        }
    }
}
