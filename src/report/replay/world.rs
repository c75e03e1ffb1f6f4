//! Virtual time: the core, driven as the shell's lane and probe drive it, on one thread, one governed poll a tick.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::stalls::{PROBE_LATE, PROBE_PERIOD};
use crate::core::table::{After, Spec};
use crate::core::{Actions, AfterPoll, Core, Turn, Work};
use crate::model::gate_state::GateState;
use crate::model::id::Id;
use crate::model::monkey::Monkey;
use crate::model::profile::Profile;

use super::script::{Script, Step, Wait, What};

pub(super) struct World<'a> {
    script: &'a Script,
    core: Core,
    actions: Actions,
    now: Duration,
    /// What comes when; at one moment in the order in which it was scheduled, what the application does first.
    agenda: BinaryHeap<Reverse<(Duration, usize, What)>>,
    scheduled: usize,
    runs: Vec<Running>,
    /// Which task is the n-th that was declared.
    declared: Vec<usize>,
    /// The lane has to look.
    looks: bool,
    /// When it looks by itself, and when the probe does.
    lane: Option<Duration>,
    probe: Option<Duration>,
    /// Since when the lane has not come to rest, and the longest such stretch.
    busy_since: Option<Duration>,
    pub(super) longest_stretch: Duration,
    /// In the order of their starts.
    pub(super) started: Vec<usize>,
}

/// How far a task has come.
#[derive(Debug, Clone, Default)]
struct Running {
    id: Option<Id>,
    /// Which step comes next.
    step: usize,
    /// Before it was declared.
    demanded: bool,
    /// Which tasks wait for its end, and which can be declared once it is.
    waiters: Vec<usize>,
    successors: Vec<usize>,
}

/// tokio's timers have steps of a millisecond and round up, and a thread at rest sleeps for whole ones.
fn rounded_up(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

impl<'a> World<'a> {
    pub(super) fn new(script: &'a Script, profile: &Profile, seed: u64) -> World<'a> {
        let mut profile = profile.clone();
        // The report's names are each there once.
        profile.monkey = profile.monkey.and_then(|monkey| {
            let name = script.tasks[script.victim?].spec.name.clone();
            Some(Monkey::task(name, monkey.delay))
        });
        let agenda = (0..).zip(&script.happenings).map(|(nth, (at, what))| Reverse((*at, nth, *what)));
        World {
            script,
            core: Core::new(profile, script.rules.clone(), seed),
            actions: Actions::default(),
            now: Duration::ZERO,
            agenda: agenda.collect(),
            scheduled: script.happenings.len(),
            runs: vec![Running::default(); script.tasks.len()],
            declared: Vec::new(),
            looks: false,
            lane: None,
            probe: None,
            busy_since: None,
            longest_stretch: Duration::ZERO,
            started: Vec::new(),
        }
    }

    /// Plays until nothing can happen any more.
    pub(super) fn play(&mut self) {
        loop {
            self.come_round();
            if self.looks {
                self.look();
            } else if !self.rest() {
                return;
            }
        }
    }

    /// When the task started and ended.
    pub(super) fn times(&self, place: usize) -> (Option<Duration>, Option<Duration>) {
        let record = self.runs[place].id.and_then(|id| self.core.table().get(id));
        let time = |stamp: Option<Stamp>| stamp.map(Stamp::as_duration);
        record.map_or((None, None), |record| (time(record.started), time(record.finished)))
    }

    pub(super) fn gate_opened(&self) -> Option<Duration> {
        match self.core.gate().state(self.stamp()) {
            GateState::Open { at, .. } => Some(at),
            GateState::Shut { .. } => None,
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp::from_duration(self.now)
    }

    fn schedule(&mut self, at: Duration, what: What) {
        self.agenda.push(Reverse((at, self.scheduled, what)));
        self.scheduled += 1;
    }

    /// The loop comes round: what has happened meanwhile is seen, and timers fire.
    fn come_round(&mut self) {
        while let Some(Reverse((at, _, what))) = self.agenda.peek().copied() {
            if at > self.now {
                break;
            }
            self.agenda.pop();
            self.happen(what, at);
        }
        if let Some(planned) = self.probe.filter(|at| rounded_up(*at) <= self.now) {
            self.probe_looks(planned);
        }
        self.looks |= self.lane.is_some_and(|at| rounded_up(at) <= self.now);
    }

    /// The thread sleeps until something happens. False where nothing will.
    fn rest(&mut self) -> bool {
        self.busy_since = None;
        let happens = self.agenda.peek().map(|Reverse((at, ..))| *at);
        let sleeps = |until| self.now.saturating_add(rounded_up(rounded_up(until).saturating_sub(self.now)));
        let timers = [self.lane, self.probe].map(|timer| timer.map(sleeps));
        let next = timers.into_iter().chain([happens]).flatten().min();
        self.now = self.now.max(next.unwrap_or_default());
        next.is_some()
    }

    fn happen(&mut self, what: What, at: Duration) {
        match what {
            What::Declare(place) => self.declare(place),
            What::Wake(place) => self.wake(place),
            What::Demand(place) => self.demand(place),
            What::Cancel(place) => {
                if let Some(id) = self.runs[place].id {
                    self.core.cancel(id, self.stamp(), &mut self.actions);
                }
            }
            What::Ready => self.core.ready(self.stamp()),
            What::OpenGate => self.core.open_gate(self.stamp(), &mut self.actions),
            What::Requests(true) => self.core.request_enters("requests".into(), self.stamp()),
            What::Requests(false) => self.core.request_leaves("requests", self.stamp(), &mut self.actions),
            What::Stall(length, worker) => {
                let end = at.saturating_add(length);
                if worker.is_none() {
                    self.now = self.now.max(end);
                }
                let seen = Stamp::from_duration(self.now.max(end));
                self.core.saw_stall(Stamp::from_duration(at), seen, worker);
            }
        }
        self.apply_actions();
    }

    /// The lane looks, and takes its turn where there is something to do.
    fn look(&mut self) {
        self.looks = false;
        self.lane = None;
        let now = self.stamp();
        self.core.advance(now, &mut self.actions);
        self.apply_actions();
        match self.core.work(now) {
            Work::Over | Work::Event => {}
            Work::At(at) => self.lane = Some(at.as_duration()),
            Work::Now => {
                let began = *self.busy_since.get_or_insert(self.now);
                self.now = self.now.saturating_add(self.script.turn);
                self.come_round();
                self.turn();
                self.longest_stretch = self.longest_stretch.max(self.now - began);
                self.looks = true;
            }
        }
    }

    /// One governed poll.
    fn turn(&mut self) {
        let turn = self.core.next(self.stamp(), &mut self.actions);
        self.apply_actions();
        let Some(Turn { id, starts, .. }) = turn else { return };
        self.core.poll_begins(id, None, self.stamp());
        let place = self.declared[id.place()];
        if starts && self.runs[place].step == 0 {
            self.started.push(place);
        }
        let script = self.script;
        let part = &script.tasks[place];
        let step = part.steps.get(self.runs[place].step);
        let busy = step.map_or(Duration::ZERO, |step| self.busy(step));
        self.runs[place].step += 1;
        let next = part.steps.get(self.runs[place].step);
        let now = self.stamp();
        let rest = step.and_then(|step| step.rests).filter(|_| next.is_some());
        // What was asked to end is polled once more and dropped.
        let outcome = next.is_none().then(|| part.outcome.clone());
        let after_poll = match rest {
            Some(rest) => self.core.attempt_failed(id, busy, rest, now, &mut self.actions),
            None => self.core.poll_ended(id, busy, outcome, now, &mut self.actions),
        };
        self.core.advance(now, &mut self.actions);
        match (after_poll, next) {
            (AfterPoll::Keep, Some(step)) => self.wait(place, id, step.wait),
            (AfterPoll::Keep | AfterPoll::Rest, _) => {}
            (AfterPoll::Resolve(_) | AfterPoll::Release, _) => self.ended(place),
        }
        self.apply_actions();
    }

    /// The poll itself; nothing else happens on this thread meanwhile.
    fn busy(&mut self, Step { busy, does, .. }: &Step) -> Duration {
        let began = self.now;
        for (since, what) in does {
            let at = began.saturating_add(*since);
            if since <= busy {
                self.now = at;
                self.happen(*what, at);
            } else {
                self.schedule(at, *what);
            }
        }
        self.now = began.saturating_add(*busy);
        *busy
    }

    fn wait(&mut self, place: usize, id: Id, wait: Wait) {
        match wait {
            Wait::Own(waited) => self.schedule(self.now.saturating_add(waited), What::Wake(place)),
            Wait::For(task) => {
                let now = self.stamp();
                let begun = |target| self.core.wait_begins(id, target, now, &mut self.actions);
                // Its slot is lent meanwhile. A wait for what has ended is none, nor is one that would close a cycle.
                match self.runs[task].id.map(begun) {
                    Some(Ok(Some(_))) => self.runs[task].waiters.push(place),
                    _ => self.wake(place),
                }
            }
        }
    }

    fn probe_looks(&mut self, planned: Duration) {
        self.probe = self.core.wants_probe().then(|| self.now.saturating_add(PROBE_PERIOD));
        if self.probe.is_some() {
            if self.now.saturating_sub(planned) >= PROBE_LATE {
                self.core.saw_stall(Stamp::from_duration(planned), self.stamp(), None);
            }
            self.core.probe_tick(self.stamp(), &mut self.actions);
            self.apply_actions();
        }
    }

    /// Does what the core has decided.
    fn apply_actions(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        for resolve in &actions.resolve {
            self.ended(self.declared[resolve.id.place()]);
        }
        for id in actions.repoll.drain(..) {
            self.wake(self.declared[id.place()]);
        }
        self.looks |= actions.lane;
        if self.probe.is_none() && self.core.wants_probe() {
            self.probe = Some(self.now.saturating_add(PROBE_PERIOD));
        }
    }

    /// A task whose predecessor is not there yet is declared with that: whoever declared it had its handle.
    fn declare(&mut self, place: usize) {
        let script = self.script;
        let mut places = vec![place];
        while let Some(place) = places.pop() {
            let part = &script.tasks[place];
            if let Some((missing, _)) = part.after.iter().find(|(other, _)| self.runs[*other].id.is_none()) {
                self.runs[*missing].successors.push(place);
                continue;
            }
            let after = part.after.iter().filter_map(|(other, accepts_any_outcome)| {
                let id = self.runs[*other].id?;
                Some(After { id, outcome: None, accepts_any_outcome: *accepts_any_outcome })
            });
            let spec = Spec { after: after.collect(), ..part.spec.clone() };
            // Nothing is forgotten here, so an id's place is the order of declaration.
            self.declared.push(place);
            let id = self.core.declare(spec, self.stamp(), &mut self.actions);
            self.runs[place].id = Some(id);
            if self.runs[place].demanded {
                self.demand(place);
            }
            if script.victim == Some(place) {
                self.core.seal(self.stamp());
            }
            self.apply_actions();
            places.extend(self.runs[place].successors.drain(..).rev());
        }
    }

    fn demand(&mut self, place: usize) {
        match self.runs[place].id {
            Some(id) => self.core.demand(id, self.stamp(), &mut self.actions),
            // Whoever demands it has its handle, so it is declared in this moment.
            None => self.runs[place].demanded = true,
        }
    }

    fn wake(&mut self, place: usize) {
        self.looks |= self.runs[place].id.is_some_and(|id| self.core.woken(id, None));
    }

    /// Whoever waits for the task is woken before the lane looks again: it is the lane that resolves the handle.
    fn ended(&mut self, place: usize) {
        for waiter in std::mem::take(&mut self.runs[place].waiters) {
            self.wake(waiter);
        }
    }
}
