//! The gate of the idle queue. Pure: a function of past events and the current time.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::window::{Disturbance, View, Window};

use crate::model::gate_rules::GateRules;
use crate::model::gate_state::{GateState, OpenedBy, WaitReason};

/// Latched: once open it stays open.
#[derive(Debug)]
pub(crate) struct Gate {
    rules: GateRules,
    window: Window,
    first_idle: Option<Stamp>,
    /// What held the gate when the last idle task ceased to wait.
    held_until_then: Option<WaitReason>,
    ready: Option<Stamp>,
    /// Why the future that took the window's place gave no answer, and since when the window counts again.
    fallback: Option<(Arc<str>, Stamp)>,
    /// The application's own last long task: when it ended, and what holds idle starts because of it.
    last_long_task: Option<(Stamp, WaitReason)>,
    opened: Option<(OpenedBy, Stamp, WaitReason)>,
}

impl Gate {
    pub(crate) fn new(rules: GateRules) -> Gate {
        let window = Window::new(rules.quiet);
        Gate {
            rules,
            window,
            first_idle: None,
            held_until_then: None,
            ready: None,
            fallback: None,
            last_long_task: None,
            opened: None,
        }
    }

    pub(crate) fn rules(&self) -> &GateRules {
        &self.rules
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// An idle task waits, where none did before.
    pub(crate) fn idle_waits(&mut self, now: Stamp) {
        self.first_idle = Some(now);
    }

    /// No idle task waits any more: the timeout counts anew from the next one.
    pub(crate) fn no_idle_waits(&mut self, now: Stamp) {
        self.held_until_then = Some(self.shut_by(now));
        self.first_idle = None;
    }

    /// The application's own boot is over: the window begins, or begins anew.
    pub(crate) fn ready(&mut self, now: Stamp) {
        self.ready.get_or_insert(now);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// When the application's own boot was over.
    pub(crate) fn ready_at(&self) -> Option<Stamp> {
        self.ready
    }

    /// The future that takes the window's place has resolved, or has failed for the reason given: then the
    /// window takes over, from now on. True where the gate opened now.
    pub(crate) fn interactive(&mut self, failed: Option<Arc<str>>, now: Stamp) -> bool {
        match failed {
            Some(why) => {
                // Over an open gate nothing takes over.
                if !self.is_open() {
                    self.fallback = Some((why, now));
                }
                false
            }
            None if self.is_open() => false,
            None => {
                self.opened = Some((OpenedBy::Interactive, now, self.shut_by(now)));
                true
            }
        }
    }

    /// Why the window counts although a future was to take its place.
    pub(crate) fn fallback(&self) -> Option<&str> {
        self.fallback.as_ref().map(|(why, _)| &**why)
    }

    /// The application itself, no governed task, kept a loop until now.
    pub(crate) fn application_long_task(&mut self, now: Stamp, length: Duration, who: Arc<str>) {
        self.last_long_task = Some((now, WaitReason::LongTask { at: now.as_duration(), length, who }));
    }

    /// Whether the application is too busy for an idle start, why, and until when if that is known. Only what came
    /// after the opening counts: a gate that the timeout opened over a busy application is open.
    pub(crate) fn busy(&self, now: Stamp) -> Option<(WaitReason, Option<Stamp>)> {
        let (_, opened, _) = self.opened.as_ref().filter(|_| !self.rules.resume_quiet.is_zero())?;
        if let Some((_, requests)) = self.window.over().filter(|(since, _)| since > opened) {
            return Some((WaitReason::InFlight { requests: Arc::clone(requests) }, None));
        }
        let last_long_task = self.last_long_task.clone();
        let crowded = self.window.last().and_then(|(at, what)| match what {
            Disturbance::InFlight { requests } => {
                Some((*at, WaitReason::InFlight { requests: Arc::clone(requests) }))
            }
            Disturbance::LongTask { .. } | Disturbance::Stopped { .. } => None,
        });
        let (at, why) = last_long_task
            .into_iter()
            .chain(crowded)
            .filter(|(at, _)| at > opened)
            .max_by_key(|(at, _)| *at)?;
        let until = at.after(self.rules.resume_quiet);
        (until > now).then_some((why, Some(until)))
    }

    fn awaits_interactive(&self) -> bool {
        self.rules.interactive && self.fallback.is_none()
    }

    /// What disturbs the window is told here.
    pub(crate) fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// True where it opened now.
    pub(crate) fn open_manually(&mut self, now: Stamp) -> bool {
        let shut = !self.is_open();
        if shut {
            self.opened = Some((OpenedBy::Manual, now, self.shut_by(now)));
        }
        shut
    }

    /// When the timeout opens the gate, whatever happens.
    pub(crate) fn timeout_at(&self) -> Option<Stamp> {
        self.first_idle.filter(|_| !self.is_open()).map(|first| first.after(self.rules.gate_timeout))
    }

    /// Opens if the timeout has passed. True where it did so now.
    pub(crate) fn check_timeout(&mut self, now: Stamp) -> bool {
        let due = self.timeout_at().is_some_and(|at| now >= at);
        if due {
            self.opened = Some((OpenedBy::Timeout, now, self.shut_by(now)));
        }
        due
    }

    /// Opens if the window is over. Only the probe asks, after it has told what it saw: nobody else knows
    /// that the loops have come round until now. True where it opened now.
    pub(crate) fn check_window(&mut self, now: Stamp) -> bool {
        let quiet = !self.is_open()
            && self.window_since().is_some_and(|since| self.window.look(since, now) == View::Quiet);
        if quiet {
            self.opened = Some((OpenedBy::Quiet, now, self.shut_by(now)));
        }
        quiet
    }

    /// When the window can be over at the earliest, for whoever decides when to look again.
    pub(crate) fn window_until(&self, now: Stamp) -> Option<Stamp> {
        match self.window.look(self.window_since()?, now) {
            View::Busy { .. } => None,
            View::Settling { until } => Some(until),
            View::Quiet => Some(now),
        }
    }

    /// The window begins no sooner than the probe, which starts with the first idle task: before that nobody
    /// watched. `ready()` begins it anew.
    fn window_since(&self) -> Option<Stamp> {
        let begun = self.first_idle?.max(self.fallback.as_ref().map_or(self.first_idle?, |(_, at)| *at));
        match self.ready {
            _ if self.awaits_interactive() => None,
            Some(ready) => Some(ready.max(begun)),
            None => Some(begun).filter(|_| !self.rules.await_ready),
        }
    }

    fn shut_by(&self, now: Stamp) -> WaitReason {
        let Some(since) = self.window_since() else {
            return match self.first_idle {
                None => self.held_until_then.clone().unwrap_or(WaitReason::NoIdleTask),
                Some(_) if self.awaits_interactive() => WaitReason::NotInteractive,
                Some(_) => WaitReason::NotReady,
            };
        };
        if let View::Busy { requests } = self.window.look(since, now) {
            return WaitReason::InFlight { requests };
        }
        match self.window.last() {
            Some((at, what)) if *at >= since => match what.clone() {
                Disturbance::LongTask { length, who } => {
                    WaitReason::LongTask { at: at.as_duration(), length, who }
                }
                Disturbance::Stopped { length } => WaitReason::Stopped { at: at.as_duration(), length },
                Disturbance::InFlight { requests } => WaitReason::InFlight { requests },
            },
            _ => WaitReason::Window,
        }
    }

    pub(crate) fn state(&self, now: Stamp) -> GateState {
        match &self.opened {
            Some((by, at, shut_by)) => {
                GateState::Open { by: *by, at: at.as_duration(), shut_by: shut_by.clone() }
            }
            None => {
                let until = [self.window_until(now), self.timeout_at()].into_iter().flatten().min();
                GateState::Shut { why: self.shut_by(now), until: until.map(Stamp::as_duration) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Stamp {
        Stamp::from_duration(Duration::from_millis(millis))
    }

    fn gate(await_ready: bool) -> Gate {
        Gate::new(GateRules {
            quiet: Duration::from_secs(5),
            gate_timeout: Duration::from_secs(45),
            max_in_flight: 2,
            await_ready,
            interactive: false,
            resume_quiet: Duration::from_millis(500),
            max_hold: Duration::from_secs(5),
        })
    }

    #[test]
    fn without_ready_the_window_begins_at_the_first_idle_task_and_ready_begins_it_anew() {
        let mut gate = gate(false);
        assert!(!gate.check_window(at(60_000)), "no idle task, no window");
        gate.idle_waits(at(1_000));
        assert!(!gate.check_window(at(5_999)));
        gate.ready(at(4_000));
        assert!(!gate.check_window(at(8_999)));
        assert!(gate.check_window(at(9_000)));
        assert!(!gate.check_window(at(9_001)), "it opens once");
    }

    #[test]
    fn awaiting_ready_only_the_timeout_opens_a_gate_that_never_hears_of_it() {
        let mut gate = gate(true);
        gate.idle_waits(at(0));
        assert!(!gate.check_window(at(44_000)));
        assert!(!gate.check_timeout(at(44_999)));
        assert!(gate.check_timeout(at(45_000)));
        assert_eq!(
            gate.state(at(45_000)).to_string(),
            "opened by timeout at 45.000 s; last reason to wait: ready() was not called"
        );
    }

    #[test]
    fn a_no_carries_what_holds_it_and_until_when() {
        let mut gate = gate(false);
        gate.idle_waits(at(0));
        gate.window_mut().long_task(at(2_000), Duration::from_millis(80), "index".into());
        assert_eq!(
            gate.state(at(2_500)).to_string(),
            "shut: a long task of 80 ms by index until 2.000 s; opens at 7.000 s at the earliest"
        );
        gate.window_mut().in_flight_over("3 in flight: GET / (3)".into(), at(2_600));
        assert_eq!(
            gate.state(at(2_600)).to_string(),
            "shut: 3 in flight: GET / (3); opens at 45.000 s at the earliest"
        );
    }

    #[test]
    fn a_hand_opens_it_at_once_and_it_stays_open() {
        let mut gate = gate(true);
        gate.open_manually(at(3));
        gate.idle_waits(at(4));
        assert!(gate.is_open());
        assert!(!gate.check_timeout(at(90_000)));
        assert_eq!(
            gate.state(at(90_000)).to_string(),
            "opened by open_gate() at 0.003 s; last reason to wait: no idle task waits"
        );
    }
}
