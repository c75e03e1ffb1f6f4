//! The core as the lane drives it, beside a plain account of what must be true. Every step checks every law.

mod account;
mod lane;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{Declaration, Event, Settings, Verdict};
use crate::clock::Stamp;
use crate::outcome::{CancelReason, Outcome, SkipReason};
use crate::queue::Queue;
use crate::scheduler::{Actions, Core};
use crate::table::{Id, Spec};

/// What is known of a task without asking the core.
#[derive(Debug)]
pub(super) struct Known {
    id: Id,
    queue: Queue,
    after: Vec<usize>,
    blocking: bool,
    timeout: Option<Duration>,
    deadline: Option<Stamp>,
    pub(super) started: Option<Stamp>,
    slot: bool,
    pub(super) outcome: Option<Outcome>,
    demanded: bool,
    cancel_asked: bool,
    polls: u32,
    in_scope: bool,
    aside: bool,
    awaits_the_end: bool,
}

impl Known {
    fn waits(&self) -> bool {
        self.started.is_none() && self.outcome.is_none()
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) core: Core,
    settings: Settings,
    pub(super) now: Stamp,
    pub(super) tasks: Vec<Known>,
    pub(super) polling: Option<usize>,
    poll_began: Stamp,
    woken: VecDeque<usize>,
    /// There is a lane.
    lane: bool,
    /// The lane was told to look since it went to sleep.
    awake: bool,
    alarm: Option<Stamp>,
    first_declared: Option<Stamp>,
    last_first_poll: Option<Stamp>,
    first_idle: Option<Stamp>,
    /// Since when the probe looks, and since when an idle task has been waiting without a break.
    probe: Option<Stamp>,
    idle_since: Option<Stamp>,
    ready: Option<Stamp>,
    over: bool,
    disturbed: Option<Stamp>,
    /// A stall that an idle task may have made.
    perhaps_disturbed: Option<Stamp>,
    idle_polls: Vec<(Stamp, Stamp)>,
    was_open: bool,
    sealed: bool,
    closed: bool,
    cancel_from: Option<usize>,
    announced: bool,
    come: [bool; 2],
}

impl World {
    pub(super) fn new(settings: &Settings) -> World {
        let now = Stamp::from_duration(Duration::ZERO);
        World {
            core: Core::new(settings.profile.clone(), settings.gate.clone(), settings.seed),
            settings: settings.clone(),
            now,
            tasks: Vec::new(),
            polling: None,
            poll_began: now,
            woken: VecDeque::new(),
            lane: false,
            awake: false,
            alarm: None,
            first_declared: None,
            last_first_poll: None,
            first_idle: None,
            probe: None,
            idle_since: None,
            ready: None,
            over: false,
            disturbed: None,
            perhaps_disturbed: None,
            idle_polls: Vec::new(),
            was_open: false,
            sealed: false,
            closed: false,
            cancel_from: None,
            announced: false,
            come: [true; 2],
        }
    }

    pub(super) fn step(&mut self, event: &Event) {
        let mut actions = Actions::default();
        self.announced = false;
        match event {
            Event::Declare(declaration) => self.declare(declaration, &mut actions),
            Event::Turn { start_first } => self.turn(*start_first),
            Event::PollEnds(verdict) => self.poll_ends(*verdict, &mut actions),
            Event::Wake(n) => {
                if let Some(i) = self.which(*n).filter(|&i| self.tasks[i].slot) {
                    self.woken.push_back(i);
                    self.awake = true;
                }
            }
            Event::Demand(n) => {
                if let Some(i) = self.which(*n) {
                    self.core.demand(self.tasks[i].id, &mut actions);
                    self.demanded(i);
                }
            }
            Event::Cancel(n) => {
                if let Some(i) = self.which(*n) {
                    self.core.cancel(self.tasks[i].id, self.now, &mut actions);
                    let task = &mut self.tasks[i];
                    task.cancel_asked |= task.slot && !task.blocking && task.outcome.is_none();
                }
            }
            Event::Ready => {
                self.core.ready(self.now);
                self.ready.get_or_insert(self.now);
            }
            Event::OpenGate => self.core.open_gate(self.now, &mut actions),
            Event::InFlight { over } => self.in_flight(*over),
            Event::Stall(_) if self.probe.is_none() => {}
            Event::Stall(millis) => self.stall(Duration::from_millis(*millis)),
            Event::Beat if self.probe.is_some() => {
                let goes_on = self.core.beat(self.now, &mut actions);
                let unsure =
                    self.perhaps_disturbed.is_some_and(|at| at.after(self.settings.gate.quiet) > self.now);
                let quiet = self.quiet_since(self.probe.max(self.idle_since));
                assert!(
                    self.gate_is_open() || !self.idle_waits() || unsure || !quiet,
                    "a whole window, and shut"
                );
                assert_eq!(goes_on, self.idle_waits() && !self.gate_is_open(), "whether the probe goes on");
                self.gate_opens_rightly(event);
                self.probe = self.probe.filter(|_| goes_on);
            }
            Event::Beat => {}
            Event::Wait(millis) => {
                self.now = self.now.after(Duration::from_millis(*millis));
                self.awake |= self.alarm.is_some_and(|at| at <= self.now);
            }
            Event::Seal => self.seal(),
            Event::AwaitEnd => {
                if let Some(i) = self.polling {
                    self.announced |= self.core.awaits_the_end(self.tasks[i].id);
                    let task = &mut self.tasks[i];
                    task.awaits_the_end |= task.in_scope && task.outcome.is_none();
                }
            }
            Event::Close => {
                self.core.close_for(CancelReason::Shutdown);
                self.seal();
                self.closed = true;
                self.cancel_from = Some(0);
            }
            Event::CancelQueued { most } => {
                if let Some(from) = self.cancel_from {
                    self.cancel_from = self.core.cancel_queued(from, *most, self.now, &mut actions);
                }
            }
            Event::EndRunning => {
                if self.closed && self.cancel_from.is_none() {
                    self.core.end_running(self.now, &mut actions);
                }
            }
        }
        self.take(actions);
        self.check(event);
    }

    pub(super) fn which(&self, n: usize) -> Option<usize> {
        (!self.tasks.is_empty()).then(|| n % self.tasks.len())
    }

    fn declare(&mut self, declaration: &Declaration, actions: &mut Actions) {
        let Declaration { queue, condition, after, timeout, blocking, inside, invalid } = declaration;
        let mut after: Vec<usize> = after.iter().filter_map(|&n| self.which(n)).collect();
        let declared_in = self.polling.filter(|_| *inside);
        let spec = Spec {
            name: format!("task {}", self.tasks.len()).into(),
            queue: *queue,
            condition: *condition,
            blocking: *blocking,
            timeout: timeout.map(Duration::from_millis),
            after: after.iter().map(|&p| (self.tasks[p].id, self.tasks[p].outcome.clone())).collect(),
            declared_in: declared_in.map(|i| self.tasks[i].id),
            invalid: invalid.then(|| "wrong".into()),
        };
        let broken = after
            .iter()
            .copied()
            .find(|&p| self.tasks[p].outcome.as_ref().is_some_and(|outcome| !outcome.is_completed()));
        let expected = match broken {
            _ if *invalid => Some(Outcome::Invalid("wrong".into())),
            _ if self.closed => Some(Outcome::Cancelled(CancelReason::Shutdown)),
            _ if !condition => Some(Outcome::Skipped(SkipReason::Condition)),
            Some(p) => Some(Outcome::Skipped(SkipReason::Predecessor(format!("task {p}").into()))),
            None => None,
        };
        if !self.idle_waits() {
            self.idle_since = None;
        }
        let id = self.core.declare(spec, self.now, actions);
        after.dedup();
        let aside = after.iter().any(|&p| self.tasks[p].aside);
        let in_scope = !self.sealed || declared_in.is_some_and(|i| self.tasks[i].in_scope);
        self.tasks.push(Known {
            id,
            queue: *queue,
            after,
            blocking: *blocking,
            timeout: timeout.map(Duration::from_millis),
            deadline: None,
            started: None,
            slot: false,
            outcome: None,
            demanded: false,
            cancel_asked: false,
            polls: 0,
            in_scope,
            aside,
            awaits_the_end: false,
        });
        self.first_declared.get_or_insert(self.now);
        if *queue == Queue::Idle && expected.is_none() {
            self.first_idle.get_or_insert(self.now);
            self.idle_since.get_or_insert(self.now);
        }
        self.take(std::mem::take(actions));
        assert_eq!(self.tasks.last().unwrap().outcome, expected, "the verdict on a declaration");
    }

    fn demanded(&mut self, i: usize) {
        if self.tasks[i].waits() && !self.tasks[i].demanded {
            self.tasks[i].demanded = true;
            for p in self.tasks[i].after.clone() {
                self.demanded(p);
            }
        }
    }

    fn in_flight(&mut self, over: bool) {
        if over != self.over {
            self.core.in_flight(over.then(|| "3 (GET /)".into()), self.now);
            self.over = over;
            if !over {
                self.disturbed = Some(self.now);
            }
        }
    }

    fn stall(&mut self, length: Duration) {
        let start = Stamp::from_duration(self.now.as_duration().saturating_sub(length));
        self.core.saw_stall(start, self.now, None);
        let polled =
            self.polling.filter(|&i| self.tasks[i].queue == Queue::Idle).map(|_| (self.poll_began, self.now));
        if self.idle_polls.iter().chain(&polled).any(|(began, ended)| *began <= self.now && *ended >= start) {
            self.perhaps_disturbed = Some(self.now);
        } else {
            self.disturbed = Some(self.now);
        }
    }

    fn seal(&mut self) {
        self.core.seal(self.now);
        if !std::mem::replace(&mut self.sealed, true)
            && let Some(victim) = self.core.mischief().and_then(|mischief| mischief.victim)
        {
            for i in 0..self.tasks.len() {
                let after_it = self.tasks[i].after.iter().any(|&p| self.tasks[p].aside);
                self.tasks[i].aside = self.tasks[i].waits() && (self.tasks[i].id == victim || after_it);
            }
        }
    }

    /// Runs everything to its end; whoever waits for a wake-up of its own is woken.
    pub(super) fn drain(&mut self) {
        self.cancel_the_queued();
        self.step(&Event::PollEnds(Verdict::Completed));
        while self.core.has_work() {
            self.step(&Event::Turn { start_first: true });
            if self.polling.is_some() {
                self.step(&Event::PollEnds(Verdict::Completed));
            } else if let Some(i) = (0..self.tasks.len()).find(|&i| self.tasks[i].slot) {
                self.step(&Event::Wake(i));
            } else if !self.awake {
                let alarm = self.alarm.expect("tasks are left, nothing runs and the lane sleeps for ever");
                let rest = alarm.since(self.now).max(Duration::from_millis(1));
                self.step(&Event::Wait(u64::try_from(rest.as_millis()).unwrap()));
            }
        }
        self.step(&Event::Turn { start_first: true });
    }

    /// A whole shutdown; polls in progress end after it.
    pub(super) fn shut_down(&mut self) {
        self.step(&Event::Close);
        self.cancel_the_queued();
        self.step(&Event::EndRunning);
        assert!(self.tasks.iter().all(|task| task.outcome.is_some()), "a handle is left");
        self.step(&Event::PollEnds(Verdict::Pending));
        for i in 0..self.tasks.len() {
            while self.tasks[i].slot {
                self.step(&Event::Wake(i));
                self.step(&Event::Turn { start_first: true });
                self.step(&Event::PollEnds(Verdict::Completed));
            }
        }
        self.step(&Event::Turn { start_first: true });
        assert!(!self.core.has_work());
    }

    fn cancel_the_queued(&mut self) {
        while self.cancel_from.is_some() {
            self.step(&Event::CancelQueued { most: 2 });
        }
    }

    pub(super) fn name(&self, i: usize) -> Arc<str> {
        self.core.table().get(self.tasks[i].id).unwrap().name.as_ref().into()
    }
}
