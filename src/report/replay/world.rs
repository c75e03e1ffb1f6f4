//! The core, driven in virtual time as the lane drives it: one thread, one governed poll a tick.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::table::{After, Record, Spec};
use crate::core::{Actions, Core};
use crate::model::gate_state::GateState;
use crate::model::id::Id;
use crate::model::monkey::Monkey;
use crate::model::profile::Profile;

use super::late::{ONE_ROUND, Round};
use super::script::{Part, Script, What};
use super::timer::Timer;

/// The probe's own; see `quiet/probe.rs`.
const PERIOD: Duration = Duration::from_millis(6);
const LATE: Duration = Duration::from_millis(51);

/// What the application does within this time it does in one poll of its own.
const AT_ONCE: Duration = Duration::from_micros(200);

/// A wake this shortly after a timer is taken as of the same step: threads wake up some tenths of a millisecond late.
const TOGETHER: Duration = Duration::from_micros(700);

pub(super) struct World<'a> {
    pub(super) script: &'a Script,
    pub(super) core: Core,
    pub(super) actions: Actions,
    pub(super) now: Duration,
    /// At one moment in this order: what the application does, wakes of one round as they were recorded, the others.
    agenda: BinaryHeap<Reverse<(Duration, Order, u64, What)>>,
    scheduled: u64,
    /// When the wakes of each round come.
    rounds: HashMap<usize, Duration>,
    pub(super) runs: Vec<Running>,
    /// Which part is the n-th that was declared.
    declared: Vec<usize>,
    /// Their predecessors have not been declared yet.
    postponed: Vec<usize>,
    /// The lane has to look.
    pub(super) looks: bool,
    /// When it looks by itself.
    pub(super) timer: Option<Timer>,
    /// How long after the next start is due the lane looks, where that is known.
    pub(super) paced: Option<Duration>,
    /// When the probe looks next.
    probe: Option<Duration>,
    /// When the quiet window will be over, as it stood.
    quiet_at: Option<Duration>,
    pub(super) last_poll: LastPoll,
    pub(super) last_declared: Declared,
    /// Since when the lane has not come to rest, and the longest such stretch.
    pub(super) busy_since: Option<Duration>,
    pub(super) longest_stretch: Duration,
    /// In the order of their starts.
    pub(super) started: Vec<usize>,
}

/// What comes first at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Application,
    Round(usize, usize),
    Other,
}

/// The governed poll that was the last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastPoll {
    pub(super) end: Duration,
    /// How long the turn after it takes, where the lane goes on at once.
    pub(super) gap: Option<Duration>,
    /// Whether the first look after it takes it for a stall.
    pub(super) stall: Option<bool>,
}

/// The declaration that was the last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Declared {
    pub(super) at: Duration,
    /// How long the turn takes that it asks for.
    pub(super) turn: Option<Duration>,
}

/// How far a part has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Running {
    pub(super) id: Option<Id>,
    pub(super) step: usize,
    pub(super) ended: bool,
    /// Before it was declared.
    demanded: bool,
    /// When the next poll was asked for.
    pub(super) asked: Duration,
    /// Who waits for its end, and for how long after that.
    pub(super) waiters: Vec<(usize, Duration)>,
}

impl<'a> World<'a> {
    pub(super) fn new(script: &'a Script, profile: &Profile, seed: u64) -> World<'a> {
        let mut profile = profile.clone();
        // The report's names are each there once.
        let named = |place: &usize| script.tasks[*place].name.clone();
        profile.monkey =
            script.monkey.as_ref().map(|(place, monkey)| Monkey::task(named(place), monkey.delay));
        let mut world = World {
            script,
            core: Core::new(profile, script.rules.clone(), seed),
            actions: Actions::default(),
            now: Duration::ZERO,
            agenda: BinaryHeap::new(),
            scheduled: 0,
            rounds: HashMap::new(),
            runs: vec![Running::default(); script.tasks.len()],
            declared: Vec::new(),
            postponed: Vec::new(),
            looks: false,
            timer: None,
            paced: script.late.delay(),
            probe: None,
            quiet_at: None,
            last_poll: LastPoll::default(),
            last_declared: Declared::default(),
            busy_since: None,
            longest_stretch: Duration::ZERO,
            started: Vec::new(),
        };
        for (at, what) in &script.happenings {
            world.push(*at, Order::Application, *what);
        }
        world
    }

    /// Plays until nothing can happen any more.
    pub(super) fn play(&mut self) {
        loop {
            self.come_round();
            if self.looks {
                self.lane();
            } else if !self.rest() {
                return;
            }
        }
    }

    pub(super) fn record(&self, place: usize) -> Option<&Record> {
        self.core.table().get(self.runs[place].id?)
    }

    pub(super) fn gate(&self) -> GateState {
        self.core.gate().state(self.stamp())
    }

    /// The tasks in the order of their starts.
    pub(super) fn started(&self) -> &[usize] {
        &self.started
    }

    pub(super) fn longest_stretch(&self) -> Duration {
        self.longest_stretch
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp::from_duration(self.now)
    }

    pub(super) fn schedule(&mut self, at: Duration, what: What) {
        self.push(at, Order::Other, what);
    }

    /// A wake that came together with others does so again, in their order, where they are not far apart.
    pub(super) fn schedule_together(&mut self, at: Duration, Round { round, rank }: Round, what: What) {
        let others = *self.rounds.entry(round).or_insert(at);
        if others >= self.now && others.abs_diff(at) < TOGETHER {
            self.push(others, Order::Round(round, rank), what);
        } else {
            self.schedule(at, what);
        }
    }

    fn push(&mut self, at: Duration, order: Order, what: What) {
        self.scheduled += 1;
        self.agenda.push(Reverse((at, order, self.scheduled, what)));
    }

    /// The loop comes round: what has happened meanwhile is seen, and timers fire.
    pub(super) fn come_round(&mut self) {
        // Until when the application goes on: nobody comes in between.
        let mut until = self.now;
        while let Some(Reverse((at, .., what))) = self.agenda.peek().copied() {
            let goes_on = what.is_by_the_application() && at <= until;
            if at > self.now && !goes_on {
                break;
            }
            self.agenda.pop();
            self.now = self.now.max(at);
            if let What::Stall(length, None) = what {
                // The application keeps the thread.
                self.now = self.now.max(at.saturating_add(length));
            }
            if what.is_by_the_application() {
                until = self.now.saturating_add(AT_ONCE);
            }
            self.happen(what, at);
        }
        if let Some(planned) = self.probe
            && self.probe_timers(planned).into_iter().flatten().any(|timer| timer.fires(self.now))
        {
            self.probe_looks(planned);
        }
        self.looks |= self.timer.is_some_and(|timer| timer.fires(self.now));
    }

    fn happen(&mut self, what: What, at: Duration) {
        let now = self.stamp();
        match what {
            What::Declare(place) => self.declare(place),
            What::Wake(place) => self.wake(place),
            What::Demand(place) => match self.runs[place].id {
                Some(id) => self.core.demand(id, Stamp::from_duration(self.now), &mut self.actions),
                // Whoever demands it has its handle, so it is declared in this moment.
                None => self.runs[place].demanded = true,
            },
            What::Cancel(place) => {
                if let Some(id) = self.runs[place].id {
                    self.core.cancel(id, now, &mut self.actions);
                }
            }
            What::Ready => self.core.ready(now),
            What::OpenGate => self.core.open_gate(now, &mut self.actions),
            What::Crowded => self.core.request_enters("requests".into(), now),
            What::Deserted => self.core.request_leaves("requests", now, &mut self.actions),
            What::Stall(length, worker) => {
                let start = Stamp::from_duration(at);
                self.core.saw_stall(start, now.max(start.after(length)), worker);
            }
        }
        self.carry();
    }

    /// The next look, and the one that opened the gate in the recording where it is not that one.
    fn probe_timers(&self, planned: Duration) -> [Option<Timer>; 2] {
        let opens = self.opens_at().map(|at| Timer { at, late: Some(Duration::ZERO) });
        [Some(Timer { at: planned, late: None }), opens]
    }

    /// When the look that opens the gate comes, where that is known and still to come.
    fn opens_at(&self) -> Option<Duration> {
        let quiet = self.quiet_at.filter(|_| !self.core.gate().is_open())?;
        Some(quiet.saturating_add(self.script.late.look(quiet)?))
    }

    fn probe_looks(&mut self, planned: Duration) {
        self.probe = Some(self.now.saturating_add(PERIOD)).filter(|_| self.core.wants_probe());
        if self.probe.is_some() {
            let now = self.stamp();
            let late = || !self.script.late.knows_stalls() && self.now.saturating_sub(planned) >= LATE;
            if self.last_poll.stall.take().unwrap_or_else(late) {
                self.core.saw_stall(Stamp::from_duration(planned), now, None);
            }
            let until = self.core.gate().window_until(now).map(Stamp::as_duration);
            // Once the window is over, it says now.
            self.quiet_at =
                until.filter(|until| *until > self.now || self.quiet_at.is_none()).or(self.quiet_at);
            if self.opens_at().is_none_or(|at| at <= self.now) {
                self.core.beat(now, &mut self.actions);
                self.carry();
            }
        }
    }

    /// Declares a task, and those that came too early before it. A task whose predecessor is not there yet waits
    /// for that: whoever declared it had its handle.
    pub(super) fn declare(&mut self, place: usize) {
        self.postponed.push(place);
        while let Some(next) = self.postponed.iter().position(|place| self.may_be_declared(*place)) {
            let place = self.postponed.remove(next);
            let script = self.script;
            let part = &script.tasks[place];
            let spec = self.spec(part);
            let now = self.stamp();
            self.last_declared = Declared { at: self.now, turn: part.turn };
            let id = self.core.declare(spec, now, &mut self.actions);
            self.runs[place].id = Some(id);
            self.declared.push(place);
            if self.runs[place].demanded {
                self.core.demand(id, Stamp::from_duration(self.now), &mut self.actions);
            }
            if script.monkey.as_ref().is_some_and(|(victim, _)| *victim == place) {
                self.core.seal(now);
            }
            self.carry();
        }
    }

    fn may_be_declared(&self, place: usize) -> bool {
        self.script.tasks[place].after.iter().all(|(other, _)| self.runs[*other].id.is_some())
    }

    fn spec(&self, part: &Part) -> Spec {
        let after = part.after.iter().filter_map(|(other, settled_will_do)| {
            let id = self.runs[*other].id?;
            Some(After { id, outcome: None, settled_will_do: *settled_will_do })
        });
        Spec {
            name: part.name.clone().into(),
            queue: part.queue,
            condition: part.condition,
            blocking: part.blocking,
            timeout: None,
            no_later_than: part.no_later_than,
            never_delay: false,
            after: after.collect(),
            declared_in: None,
            invalid: part.invalid.clone(),
        }
    }

    fn wake(&mut self, place: usize) {
        if self.runs[place].id.is_some_and(|id| self.core.woken(id, None)) {
            self.runs[place].asked = self.now;
            self.looks = true;
        }
    }

    /// Does what the core has decided.
    pub(super) fn carry(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        for resolve in &actions.resolve {
            self.ended(self.declared_at(resolve.id));
        }
        for id in actions.poke.drain(..) {
            self.wake(self.declared_at(id));
        }
        self.looks |= actions.lane;
        if self.probe.is_none() && self.core.wants_probe() {
            self.probe = Some(self.now.saturating_add(PERIOD));
        }
    }

    /// Nothing is forgotten here, so an id's place is the order of declaration.
    pub(super) fn declared_at(&self, id: Id) -> usize {
        self.declared.get(id.place()).copied().unwrap_or(self.declared.len())
    }

    pub(super) fn ended(&mut self, place: usize) {
        self.runs[place].ended = true;
        for (waiter, then) in std::mem::take(&mut self.runs[place].waiters) {
            self.schedule(self.now.saturating_add(then), What::Wake(waiter));
        }
    }

    /// The thread sleeps until something happens. False where nothing will.
    fn rest(&mut self) -> bool {
        self.busy_since = None;
        let happens = self.agenda.peek().map(|Reverse((at, ..))| *at);
        let probe = self.probe.map(|planned| self.probe_timers(planned)).into_iter().flatten();
        let timers = probe.chain([self.timer]).flatten();
        let timer = timers.map(|timer| (timer.wakes_at(self.now), timer.late.is_some())).min();
        let Some(mut at) = [happens, timer.map(|(at, _)| at)].into_iter().flatten().min() else {
            return false;
        };
        // Timers of one step fire together, and a recorded wake came a little after its own.
        if let Some(Reverse((wake, .., What::Wake(_)))) = self.agenda.peek()
            && let Some((due, is_known)) = timer
            && due == at
            && *wake < at.saturating_add(if is_known { ONE_ROUND } else { TOGETHER })
        {
            at = at.max(*wake);
        }
        self.now = self.now.max(at);
        true
    }
}
