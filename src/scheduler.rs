//! The pure core: (state, event, now) -> what is to be done. It knows ids, names and times; it holds no future,
//! awaits nothing, locks nothing and reads no clock.
//!
//! Each event is a method that takes `now` and writes what follows into [`Actions`]; the shell carries it out
//! after it has let go of the lock. The files below hold one kind of event each.

mod again;
mod crowd;
mod declare;
mod demand;
mod end;
mod hold;
mod lend;
mod line;
mod loans;
#[cfg(test)]
mod laws;
mod notes;
mod quiet;
mod scope;
mod start;
mod starve;
mod stuck;
mod turn;

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::clock::Stamp;
use crate::gate::{Gate, GateRules};
use crate::monkey::Mischief;
use crate::outcome::{CancelReason, Outcome};
use crate::profile::Profile;
use crate::queue::Line;
use crate::quiet::in_flight::InFlight;
use crate::quiet::stalls::{Poll, Stalls, WORTH_REMEMBERING, Whose};
use crate::quiet::stops::Stops;
use crate::table::{Id, Table};

pub(crate) use crowd::Starved;
pub(crate) use loans::{Loan, Target};
pub(crate) use notes::Note;
pub(crate) use scope::Waits;
pub(crate) use stuck::SLOW;
pub(crate) use turn::{Class, Turn};

use notes::Cost;

/// What the shell has to do once it has let go of the lock.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    /// Handles to resolve without a further poll.
    pub(crate) resolve: Vec<Resolve>,
    /// Running tasks that the lane should poll although nothing woke them: a limit has passed.
    pub(crate) poke: Vec<Id>,
    /// Tasks whose handles are resolved and whose bodies nobody will see out: what is left of them is dropped.
    pub(crate) dropped: Vec<Id>,
    /// The lane should look again, or be started.
    pub(crate) lane: bool,
    /// To be told in the log.
    pub(crate) starved: Option<Box<Starved>>,
    /// Somebody may be waiting for `started()` or `finished()`.
    pub(crate) announce: bool,
    /// Tasks to warn of, because they run long.
    pub(crate) slow: Vec<Id>,
}

/// A handle to resolve, and whether the task's body goes on.
#[derive(Debug)]
pub(crate) struct Resolve {
    pub(crate) id: Id,
    pub(crate) name: Cow<'static, str>,
    pub(crate) outcome: Outcome,
    /// The body still runs and cannot be dropped: it blocks, or it is inside a poll.
    pub(crate) still_running: bool,
}

/// What becomes of a slot after a poll.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The task goes on.
    Keep,
    /// The task is over and its handle gets this outcome.
    Resolve(Outcome),
    /// The task is over and its handle was resolved before.
    Release,
    /// An attempt is over; the task rests without a slot.
    Rest,
}

/// When the lane has something to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A task may start now.
    Now,
    /// Nothing before this moment, unless an event comes.
    At(Stamp),
    /// Nothing unless an event comes.
    Event,
    /// Nothing is declared that has not ended.
    Over,
}

/// Whether new tasks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closed(CancelReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A task's own timeout.
    Timeout,
    /// The end of the monkey's delay.
    Monkey,
    /// An idle task's own deadline for its start.
    NoLaterThan,
    /// The end of the rest between two attempts.
    Again,
}

/// The governed poll that is running now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polling {
    pub(crate) id: Id,
    pub(crate) since: Stamp,
    /// The worker it runs on.
    pub(crate) worker: Option<usize>,
    /// When the poll was asked for, where that is recorded.
    pub(crate) woken: Option<Stamp>,
    charge: turn::Charge,
}

/// All run state of one governor.
#[derive(Debug)]
pub(crate) struct Core {
    profile: Profile,
    table: Table,
    normal: Line,
    idle: Line,
    /// In order of demand; they pass gate, pulse, slots and monkey.
    demanded: VecDeque<Id>,
    /// Who is woken, and whose turn it is.
    turns: turn::Turns,
    timers: BTreeSet<(Stamp, Id, Timer)>,
    gate: Gate,
    in_flight: InFlight,
    stalls: Stalls,
    stops: Stops,
    mischief: Option<Mischief>,
    phase: Phase,
    /// Nobody can declare a task any more.
    deserted: bool,
    /// Tasks that hold a slot.
    running: usize,
    /// Of those, the ones whose handle is resolved already.
    overdue: usize,
    /// Tasks whose handle is not resolved or whose code may still run.
    unended: usize,
    /// Idle tasks that have not started.
    idle_unstarted: usize,
    /// Idle tasks that hold a slot.
    idle_running: usize,
    /// Since when the idle queue has been kept from every slot by normal tasks.
    starving: Option<Stamp>,
    /// The same of normal tasks, which nobody helps.
    crowd: crowd::Crowd,
    /// The idle start that is due and held because the application is busy again.
    holding: Option<hold::Holding>,
    holds: VecDeque<hold::Held>,
    holds_forgotten: u64,
    /// Records to forget.
    retired: Vec<Id>,
    max_hold: Duration,
    /// No ordinary start before this moment: the delay, then the pulse.
    next_start: Option<Stamp>,
    polling: Option<Polling>,
    /// Polls that the lane has given up and that have not returned.
    stuck: Vec<Polling>,
    /// Running tasks that wait for others: they lend their slots.
    loans: loans::Loans,
    /// When each running task started, for naming the slow ones; those that have ended fall out at the front.
    starts: VecDeque<(Stamp, Id)>,
    /// Up to which place a shutdown has cancelled what was queued; none where there is nothing to cancel.
    cancelled_to: Option<usize>,
    /// What happened, for those who listen; empty where nobody does.
    notes: Vec<Note>,
    listening: bool,
    records_segments: bool,
    scope: scope::Scope,
    /// What the application itself counts: name, whether it went well, when.
    outcomes: VecDeque<(Cow<'static, str>, bool, Stamp)>,
    outcomes_forgotten: u64,
    /// What the governor itself has spent.
    cost: Cost,
    seed: u64,
}

impl Core {
    pub(crate) fn new(profile: Profile, gate: GateRules, seed: u64) -> Core {
        let max_hold = gate.max_hold;
        let mischief = profile.monkey.clone().map(|monkey| Mischief::new(monkey, seed));
        Core {
            profile,
            table: Table::default(),
            normal: Line::default(),
            idle: Line::default(),
            demanded: VecDeque::new(),
            turns: turn::Turns::default(),
            timers: BTreeSet::new(),
            gate: Gate::new(gate),
            in_flight: InFlight::default(),
            stalls: Stalls::default(),
            stops: Stops::default(),
            mischief,
            phase: Phase::Open,
            deserted: false,
            running: 0,
            overdue: 0,
            unended: 0,
            idle_unstarted: 0,
            idle_running: 0,
            starving: None,
            crowd: crowd::Crowd::default(),
            holding: None,
            holds: VecDeque::new(),
            holds_forgotten: 0,
            retired: Vec::new(),
            max_hold,
            next_start: None,
            polling: None,
            stuck: Vec::new(),
            loans: loans::Loans::default(),
            starts: VecDeque::new(),
            cancelled_to: None,
            notes: Vec::new(),
            listening: false,
            records_segments: false,
            scope: scope::Scope::default(),
            outcomes: VecDeque::new(),
            outcomes_forgotten: 0,
            cost: Cost::default(),
            seed,
        }
    }

    /// Keeps when each task was polled.
    pub(crate) fn record_segments(&mut self) {
        self.records_segments = true;
    }

    pub(crate) fn records_segments(&self) -> bool {
        self.records_segments
    }

    /// Lets time pass: limits and delays that are over, and the gate's timeout.
    pub(crate) fn advance(&mut self, now: Stamp, actions: &mut Actions) {
        while let Some(&(at, id, timer)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            match timer {
                Timer::Timeout => self.timeout_passed(id, now, actions),
                Timer::Monkey => self.delay_over(id),
                Timer::NoLaterThan => self.no_later(id, now),
                Timer::Again => self.rest_is_over(id, now),
            }
        }
        if self.idle_unstarted > 0 && self.gate.check_timeout(now) {
            self.note(Note::GateOpened);
        }
        self.watch_for_starving(now);
        self.feed_the_starving(now);
        self.watch_the_crowd(now, actions);
        self.watch_for_holds(now);
        self.name_the_slow(now, actions);
        self.cancel_piece(now, actions);
    }

    /// When there is something to do; call [`advance`](Core::advance) before.
    pub(crate) fn work(&self, now: Stamp) -> Work {
        if self.unended == 0 {
            return Work::Over;
        }
        let demanded = !self.demanded.is_empty() && self.phase == Phase::Open;
        if demanded || self.turns.anyone_woken() || self.cancelled_to.is_some() {
            return Work::Now;
        }
        let start = self.next_ordinary().and(self.next_start).filter(|_| self.has_a_slot());
        let held = start.and_then(|_| self.held_until(now)).filter(|_| self.normal.is_empty());
        let start = start.max(held);
        if start.is_some_and(|at| at <= now) {
            return Work::Now;
        }
        let timer = self.timers.first().map(|(at, ..)| *at);
        let timeout = self.gate.timeout_at().filter(|_| self.idle_unstarted > 0);
        let fed = self.starving.map(|since| since.after(self.max_hold));
        match [start, timer, timeout, fed, self.slow_at(), self.crowd_at()].into_iter().flatten().min() {
            Some(at) => Work::At(at),
            None => Work::Event,
        }
    }

    /// No ordinary start before this moment.
    pub(crate) fn next_start(&self) -> Option<Stamp> {
        self.next_start
    }

    /// The lane polls this task from now on.
    pub(crate) fn poll_begins(&mut self, id: Id, worker: Option<usize>, now: Stamp) {
        let charge = self.take_charge();
        self.polling = Some(Polling { id, since: now, worker, woken: None, charge });
    }

    /// When the poll that has just begun was asked for.
    pub(crate) fn poll_was_asked_for(&mut self, woken: Option<Stamp>) {
        if let Some(polling) = &mut self.polling {
            polling.woken = woken;
        }
    }

    /// The poll that [`poll_begins`](Core::poll_begins) announced is over; `took` is real time.
    pub(crate) fn poll_ended(
        &mut self,
        id: Id,
        took: Duration,
        outcome: Option<Outcome>,
        now: Stamp,
        actions: &mut Actions,
    ) -> Fate {
        self.cost.polls += 1;
        let was_stuck = self.is_stuck(id);
        let polling = self.poll_is_over(id);
        let (began, worker) = polling.map_or((now, None), |polling| (polling.since, polling.worker));
        let ran = self.stops.ran(began, now);
        let took = took.saturating_sub(now.since(began).saturating_sub(ran));
        if let Some(polling) = polling {
            self.charge(polling.charge, ran);
        }
        let pulse = self.profile.pulse;
        let record = self.table.live(id);
        record.polls = record.polls.saturating_add(1);
        record.longest_poll = record.longest_poll.max(took);
        if std::mem::take(&mut record.fresh) {
            // Not sooner than was promised: a demand during the delay does not end it.
            self.next_start = self.next_start.max(Some(now.after(pulse)));
        }
        if matches!(outcome, Some(Outcome::Skipped(_))) {
            // Its condition, asked in its tick, was false: none of its own code has run.
            record.started = None;
            record.polls = 0;
            record.attempts = 0;
            record.longest_poll = Duration::ZERO;
        }
        if self.records_segments {
            let woken = polling.and_then(|polling| polling.woken);
            record.ties_mut().record(began, now.since(began), woken);
        }
        if ran >= WORTH_REMEMBERING {
            let name = record.name.as_ref().into();
            let whose = Whose::Governed(record.line);
            self.stalls.poll_ended(Poll { start: began, end: Some(now), name, whose, worker });
        }
        let fate = self.after_poll(id, outcome, now, actions);
        if was_stuck && fate == Fate::Keep {
            // The lane did not poll it meanwhile: what woke it has not been answered.
            actions.poke.push(id);
        }
        fate
    }

    /// Whether a task has not ended.
    pub(crate) fn has_work(&self) -> bool {
        self.unended > 0
    }

    /// Whether the runtime is gone: nothing can be polled any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.phase == Phase::Closed(CancelReason::RuntimeGone)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase != Phase::Open
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }
}
