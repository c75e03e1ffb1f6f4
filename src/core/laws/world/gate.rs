//! What is heard of the application, and when the gate may open because of it.

use std::borrow::Cow;
use std::time::Duration;

use super::World;
use crate::base::clock::Stamp;
use crate::core::Actions;
use crate::core::laws::Event;
use crate::model::gate_state::{GateState, OpenedBy, WaitReason};
use crate::model::queue::Queue;

/// What is known of the application.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Since when an idle task has been waiting without a break.
    idle_since: Option<Stamp>,
    idle_declared: bool,
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
    pub(super) idle_polls_ended: Option<Stamp>,
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
            Event::Interactive { failed } => self.interactive(*failed, actions),
            Event::RequestEnters(n) => {
                self.core.request_enters(Cow::Borrowed(REQUESTS[*n]), self.now);
                self.quiet.requests.push(*n);
            }
            Event::RequestLeaves(n) => {
                if let Some(place) = self.quiet.requests.iter().position(|held| held == n) {
                    let was_over = self.too_many();
                    self.quiet.requests.swap_remove(place);
                    self.core.request_leaves(REQUESTS[*n], self.now, actions);
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
            Event::Beat if self.quiet.probe => self.probe_tick(actions),
            _ => {}
        }
    }

    fn interactive(&mut self, failed: bool, actions: &mut Actions) {
        // There is one such future, and it ends once.
        if !self.settings.gate.interactive || self.quiet.interactive_told {
            return;
        }
        self.quiet.interactive_told = true;
        self.core.interactive(failed.then(|| "it panicked".into()), self.now, actions);
        self.quiet.fallback = Some(self.now).filter(|_| failed);
    }

    fn probe_tick(&mut self, actions: &mut Actions) {
        self.core.probe_tick(self.now, actions);
        let goes_on = self.core.wants_probe();
        let unsure =
            self.quiet.perhaps_disturbed.is_some_and(|at| at.after(self.settings.gate.quiet) > self.now);
        assert!(
            self.gate_is_open() || !self.idle_waits() || unsure || !self.was_quiet(),
            "a whole window, and shut"
        );
        let needed = self.idle_waits() && self.closed.is_none();
        assert_eq!(goes_on, needed, "whether the probe goes on");
        self.gate_opens_rightly();
        self.quiet.probe = goes_on;
    }

    fn stall(&mut self, length: Duration) {
        let start = Stamp::from_duration(self.now.as_duration().saturating_sub(length));
        self.core.saw_stall(start, self.now, None);
        let mut in_progress = self.polling.iter().chain(&self.stuck);
        if in_progress.any(|&i| self.tasks[i].line == Queue::Idle)
            || self.quiet.idle_polls_ended.is_some_and(|ended| ended >= start)
        {
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

    /// An idle task is declared; it may be over at once.
    pub(super) fn idle_joins(&mut self, waits: bool) {
        self.quiet.idle_declared = true;
        if waits {
            self.quiet.idle_since.get_or_insert(self.now);
        }
    }

    pub(super) fn gate_timeout_at(&self) -> Option<Stamp> {
        Some(self.quiet.idle_since?.after(self.settings.gate.gate_timeout))
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
                    OpenedBy::Manual => matches!(self.cause, Event::OpenGate),
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
            self.quiet.probe || self.gate_is_open() || !self.idle_waits() || self.closed.is_some(),
            "nobody looks whether it is quiet"
        );
        assert_eq!(self.core.in_flight(), self.quiet.requests.len());
        if !self.idle_waits() {
            self.quiet.idle_since = None;
        }
        self.a_shut_gate_says_what_holds_it();
    }

    fn a_shut_gate_says_what_holds_it(&self) {
        let GateState::Shut { why, .. } = self.core.gate().state(self.now) else { return };
        let rules = &self.settings.gate;
        let said = if !self.idle_waits() {
            // Or what held it while one waited.
            why == WaitReason::NoIdleTask || self.quiet.idle_declared
        } else if rules.interactive && self.quiet.fallback.is_none() {
            why == WaitReason::NotInteractive
        } else if rules.await_ready && self.quiet.ready.is_none() {
            why == WaitReason::NotReady
        } else if self.too_many() {
            let held = format!("{} in flight: ", self.quiet.requests.len());
            matches!(&why, WaitReason::InFlight { requests: said } if said.starts_with(&held))
        } else {
            matches!(why, WaitReason::Window | WaitReason::LongTask { .. } | WaitReason::InFlight { .. })
        };
        assert!(said, "what holds the gate is not {why:?}");
    }
}
