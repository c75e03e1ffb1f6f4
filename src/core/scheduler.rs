//! The state of the core, and what changes by time alone.

use std::collections::{BTreeSet, VecDeque};

use crate::base::clock::Stamp;
use crate::model::gate_rules::GateRules;
use crate::model::id::Id;
use crate::model::outcome::CancelReason;
use crate::model::profile::Profile;

use super::actions::{Actions, Work};
use super::delay::DelayInjector;
use super::gate::Gate;
use super::holds::Holds;
use super::in_flight::InFlight;
use super::lifecycle::{Lifecycle, Phase};
use super::loans::Loans;
use super::notes::{Cost, Journal, Note};
use super::outcomes::Outcomes;
use super::polling::Polls;
use super::ready_queue::ReadyQueue;
use super::scope::Scope;
use super::stalls::Stalls;
use super::starved::{IdleTasks, Starvation};
use super::stops::Stops;
use super::table::Table;
use super::turn::Turns;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A task's own timeout.
    Timeout,
    /// The end of the monkey's delay.
    Monkey,
    /// An idle task's own deadline for its start.
    NoLaterThan,
    /// The end of the rest between two attempts.
    Again,
}

/// All run state of one governor.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) profile: Profile,
    pub(super) table: Table,
    pub(super) normal: ReadyQueue,
    pub(super) idle: ReadyQueue,
    /// In order of demand; they pass gate, pulse, slots and monkey.
    pub(super) demanded: VecDeque<Id>,
    /// Who is woken, and whose turn it is.
    pub(super) turns: Turns,
    pub(super) timers: BTreeSet<(Stamp, Id, Timer)>,
    pub(super) gate: Gate,
    pub(super) in_flight: InFlight,
    pub(super) stalls: Stalls,
    pub(super) stops: Stops,
    pub(super) delay_injector: Option<DelayInjector>,
    pub(super) lifecycle: Lifecycle,
    pub(super) idle_tasks: IdleTasks,
    pub(super) starvation: Starvation,
    pub(super) holds: Holds,
    /// Records to forget.
    pub(super) retired: Vec<Id>,
    /// No ordinary start before this moment: the delay, then the pulse.
    pub(super) next_start: Option<Stamp>,
    pub(super) polls: Polls,
    /// Running tasks that wait for others: they lend their slots.
    pub(super) loans: Loans,
    /// When each running task started, for naming the slow ones; those that have ended fall out at the front.
    pub(super) starts: VecDeque<(Stamp, Id)>,
    pub(super) journal: Journal,
    pub(super) records_segments: bool,
    pub(super) scope: Scope,
    pub(super) outcomes: Outcomes,
    /// What the governor itself has spent.
    pub(super) cost: Cost,
    pub(super) seed: u64,
}

impl Core {
    pub(crate) fn new(profile: Profile, gate: GateRules, seed: u64) -> Core {
        let max_hold = gate.max_hold;
        let delay_injector = profile.monkey.clone().map(|monkey| DelayInjector::new(monkey, seed));
        Core {
            profile,
            table: Table::default(),
            normal: ReadyQueue::default(),
            idle: ReadyQueue::default(),
            demanded: VecDeque::new(),
            turns: Turns::default(),
            timers: BTreeSet::new(),
            gate: Gate::new(gate),
            in_flight: InFlight::default(),
            stalls: Stalls::default(),
            stops: Stops::default(),
            delay_injector,
            lifecycle: Lifecycle::default(),
            idle_tasks: IdleTasks::default(),
            starvation: Starvation::default(),
            holds: Holds::new(max_hold),
            retired: Vec::new(),
            next_start: None,
            polls: Polls::default(),
            loans: Loans::default(),
            starts: VecDeque::new(),
            journal: Journal::default(),
            records_segments: false,
            scope: Scope::default(),
            outcomes: Outcomes::default(),
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
        if self.idle_tasks.unstarted > 0 && self.gate.check_timeout(now) {
            self.note(Note::GateOpened);
        }
        self.watch_idle_starvation(now);
        self.promote_starved(now);
        self.watch_normal_starvation(now, actions);
        self.watch_for_holds(now);
        self.report_slow(now, actions);
        self.cancel_piece(now, actions);
    }

    /// When there is something to do; call [`advance`](Core::advance) before.
    pub(crate) fn work(&self, now: Stamp) -> Work {
        if self.table.unended() == 0 {
            return Work::Over;
        }
        let demanded = !self.demanded.is_empty() && self.lifecycle.phase == Phase::Open;
        if demanded || self.turns.anyone_woken() || self.lifecycle.cancelled_to.is_some() {
            return Work::Now;
        }
        let start = self.next_ordinary().and(self.next_start).filter(|_| self.has_a_slot());
        let held = start.and_then(|_| self.held_until(now)).filter(|_| self.normal.is_empty());
        let start = start.max(held);
        if start.is_some_and(|at| at <= now) {
            return Work::Now;
        }
        let timer = self.timers.first().map(|(at, ..)| *at);
        let timeout = self.gate.timeout_at().filter(|_| self.idle_tasks.unstarted > 0);
        let starved_at = self.starvation.idle_since.map(|since| since.after(self.holds.longest));
        match [start, timer, timeout, starved_at, self.slow_at(), self.normal_starvation_at()]
            .into_iter()
            .flatten()
            .min()
        {
            Some(at) => Work::At(at),
            None => Work::Event,
        }
    }

    /// Whether a task has not ended.
    pub(crate) fn has_work(&self) -> bool {
        self.table.unended() > 0
    }

    /// Whether the runtime is gone: nothing can be polled any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.lifecycle.phase == Phase::Closed(CancelReason::RuntimeGone)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lifecycle.phase != Phase::Open
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }
}
