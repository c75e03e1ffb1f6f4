//! What a report is made of, copied out of the core: a bounded piece each time the lock is held, however many tasks there are.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::holds::Held;
use crate::core::stalls::{LONG_TASK, Stall};
use crate::core::stops;
use crate::core::table::{self, ComesAfter, Record, Stuck};
use crate::core::{self, Core};
use crate::model::name::Name;

use super::{
    ApplicationOutcome, Cost, Hold, LongTask, MonkeyReport, Report, Segment, Starved, Stop, TaskReport,
};

/// How much is copied before the lock is let go: records, and what is in their lists.
pub(super) const AT_ONCE: usize = 256;

/// The lists beside the tasks. None of them grows with the run, and what is in them is shared or has to be written out
/// without the lock.
pub(super) struct Lists {
    outcomes: Vec<(Cow<'static, str>, bool, Stamp)>,
    holds: Vec<Held>,
    starved: Vec<Arc<core::Starved>>,
    long_tasks: Vec<Stall>,
    stops: Vec<stops::Stop>,
}

impl Lists {
    fn of(core: &Core) -> Lists {
        Lists {
            outcomes: core.application_outcomes().iter().cloned().collect(),
            holds: core.holds().iter().cloned().collect(),
            starved: core.starved().cloned().collect(),
            long_tasks: core.stalls().seen().cloned().collect(),
            stops: core.stops().seen().copied().collect(),
        }
    }

    pub(super) fn written_into(self, report: &mut Report) {
        let Lists { outcomes, holds, starved, long_tasks, stops } = self;
        report.outcomes = outcomes.into_iter().map(outcome).collect();
        report.holds = holds.into_iter().map(hold).collect();
        report.starved = starved.iter().map(|starved| Starved::of(starved)).collect();
        report.long_tasks = long_tasks.iter().map(long_task).collect();
        report.blocking_time =
            report.long_tasks.iter().map(|long| long.length.saturating_sub(LONG_TASK)).sum();
        report.stops = stops
            .iter()
            .map(|stop| Stop { start: stop.start.as_duration(), length: stop.length() })
            .collect();
    }
}

/// A report without its tasks and lists, as it stands now.
pub(super) fn begun(core: &Core, governor: &str, now: Stamp) -> (Report, Lists) {
    let victim = |delay_injector: &core::delay::DelayInjector| core.table().get(delay_injector.victim?);
    let monkey = core.delay_injector().map(|delay_injector| MonkeyReport {
        asked: delay_injector.monkey.to_string(),
        victim: victim(delay_injector).map(|record| record.name.to_string()),
        victim_number: victim(delay_injector).map(|record| record.number),
        delay: delay_injector.monkey.delay,
        delivery: delay_injector.delivery.clone(),
    });
    let report = Report {
        version: 1,
        governor: governor.to_owned(),
        profile: core.profile().to_string(),
        seed: core.seed(),
        monkey,
        gate: core.gate().state(now),
        gate_rules: core.gate().rules().clone(),
        ready: core.gate().ready_at().map(Stamp::as_duration),
        taken: now.as_duration(),
        last_start: None,
        last_finish: None,
        tasks: Vec::new(),
        late: core.scope().late(),
        late_tasks: Vec::new(),
        forgotten: core.scope().forgotten(),
        interactive_failed: core.gate().fallback().map(ToOwned::to_owned),
        outcomes: Vec::new(),
        outcomes_forgotten: core.application_outcomes().forgotten(),
        cost: Cost { polls: core.cost().polls, looks: core.cost().looks, lane_time: core.cost().lane_time() },
        holds: Vec::new(),
        holds_forgotten: core.holds().forgotten(),
        long_tasks: Vec::new(),
        long_tasks_forgotten: core.stalls().forgotten(),
        stops: Vec::new(),
        starved: Vec::new(),
        threads_missed: Vec::new(),
        blocking_time: Duration::ZERO,
    };
    (report, Lists::of(core))
}

/// A walk through the tasks that were declared when it began.
#[derive(Debug)]
pub(super) struct Walk {
    taken: Duration,
    declared: u64,
    places: usize,
    /// Up to which place they are copied.
    to: usize,
}

impl Walk {
    pub(super) fn begin(core: &Core, now: Stamp) -> Walk {
        let table = core.table();
        Walk { taken: now.as_duration(), declared: table.declared(), places: table.places(), to: 0 }
    }

    /// Copies the next piece; true where there is more. A place that was used anew meanwhile is passed over.
    pub(super) fn piece(&mut self, core: &Core, piece: &mut Vec<Copied>) -> bool {
        let mut left = AT_ONCE;
        while left > 0 && self.to < self.places {
            let record = core.table().at(self.to).filter(|record| record.number < self.declared);
            let copied = record.map(Copied::of);
            left = left.saturating_sub(copied.as_ref().map_or(1, Copied::weight));
            piece.extend(copied);
            self.to += 1;
        }
        self.to < self.places
    }

    /// How many of the tasks that were declared when it began are not among those that were copied.
    pub(super) fn unlisted(&self, listed: usize) -> u64 {
        self.declared.saturating_sub(listed as u64)
    }

    /// How many tasks are still to be copied, at most.
    pub(super) fn left(&self) -> usize {
        self.places - self.to
    }

    /// The task as it stood when the walk began: what is known to have come later is left out. How often and how long it
    /// was polled is not taken back.
    pub(super) fn as_of_then(&self, mut task: TaskReport) -> TaskReport {
        let later = |at: Option<Duration>| at.is_some_and(|at| at > self.taken);
        if later(task.finished) {
            task.finished = None;
            task.outcome = None;
        }
        if later(task.started) {
            task.started = None;
            (task.polls, task.attempts, task.longest_poll) = (0, 0, Duration::ZERO);
        }
        task.queued = task.queued.filter(|at| *at <= self.taken);
        task.demanded_at = task.demanded_at.filter(|at| *at <= self.taken);
        task.segments.retain(|segment| segment.start <= self.taken);
        task
    }
}

/// A task as it was copied; names are written out without the lock.
pub(super) struct Copied {
    task: TaskReport,
    pub(super) in_scope: bool,
    name: Name,
    comes_after: Option<Arc<ComesAfter>>,
    segments: Vec<table::Segment>,
    awaited: Vec<Name>,
}

impl Copied {
    fn of(record: &Record) -> Copied {
        let ties = record.ties.as_deref();
        let task = TaskReport {
            name: String::new(),
            number: record.number,
            queue: record.queue,
            blocking: record.blocking,
            promoted: record.line != record.queue || record.head,
            demanded: record.demanded,
            demanded_by_governor: record.demanded_by_governor,
            declared: record.declared.as_duration(),
            declared_in: ties.and_then(|ties| ties.declared_in),
            demanded_at: ties.and_then(|ties| ties.demanded_at).map(Stamp::as_duration),
            no_later_than: ties.and_then(|ties| ties.no_later_than),
            queued: record.queued.map(Stamp::as_duration),
            started: record.started.map(Stamp::as_duration),
            finished: record.finished.map(Stamp::as_duration),
            outcome: record.outcome.clone(),
            waited_for: Vec::new(),
            after: Vec::new(),
            after_settled: Vec::new(),
            segments: Vec::new(),
            awaited: Vec::new(),
            stuck: record.stuck != Stuck::Never,
            slow: record.slow,
            polls: record.polls,
            longest_poll: record.longest_poll,
            attempts: record.attempts,
        };
        Copied {
            task,
            in_scope: record.in_scope,
            name: record.name.clone(),
            comes_after: ties.and_then(|ties| ties.comes_after.clone()),
            segments: ties.map_or(Vec::new(), |ties| ties.segments.clone()),
            awaited: ties.map_or(Vec::new(), |ties| ties.awaited.clone()),
        }
    }

    fn weight(&self) -> usize {
        1 + self.segments.len() + self.awaited.len()
    }

    pub(super) fn written(self) -> TaskReport {
        let Copied { mut task, name, comes_after, segments, awaited, .. } = self;
        task.name = name.to_string();
        if let Some(comes_after) = comes_after {
            task.waited_for = comes_after.names.iter().map(ToString::to_string).collect();
            task.after.clone_from(&comes_after.numbers);
            task.after_settled.clone_from(&comes_after.accepts_any_outcome);
        }
        task.segments = segments.iter().map(segment).collect();
        task.awaited = awaited.iter().map(ToString::to_string).collect();
        task
    }
}

fn segment(segment: &table::Segment) -> Segment {
    let table::Segment { start, busy, waited, polls, rests } = *segment;
    Segment { start: start.as_duration(), busy, waited, polls, rests }
}

fn outcome((name, ok, at): (Cow<'static, str>, bool, Stamp)) -> ApplicationOutcome {
    ApplicationOutcome { name: name.into_owned(), ok, at: at.as_duration() }
}

fn hold(held: Held) -> Hold {
    let Held { task, number, since, until, why } = held;
    Hold { task: task.to_string(), number, since: since.as_duration(), until: until.as_duration(), why }
}

fn long_task(stall: &Stall) -> LongTask {
    let who: Option<&Arc<str>> = stall.who.as_ref();
    LongTask {
        start: stall.start.as_duration(),
        length: stall.end.since(stall.start),
        who: who.map(ToString::to_string),
        worker: stall.worker,
    }
}

#[cfg(test)]
mod tests {
    use crate::core::Actions;
    use crate::core::table::Spec;
    use crate::model::gate_rules::GateRules;
    use crate::model::profile::Profile;
    use crate::model::queue::Queue;

    use super::*;

    /// I40: whoever reports copies a bounded piece each time the lock is held, and everybody once.
    #[test]
    fn a_piece_is_bounded_and_all_pieces_together_are_all_tasks() {
        const TASKS: u64 = 10_000;
        let mut core = Core::new(Profile::default(), GateRules::defaults(), 0);
        let now = Stamp::from_duration(Duration::ZERO);
        for _ in 0..TASKS {
            core.declare(spec(), now, &mut Actions::default());
        }
        let mut walk = Walk::begin(&core, now);
        // Declared after the walk began: none of this report's.
        core.declare(spec(), now, &mut Actions::default());
        let mut numbers = Vec::new();
        loop {
            let mut piece = Vec::new();
            let more = walk.piece(&core, &mut piece);
            assert!(piece.len() <= 256, "{} records in one hold of the lock", piece.len());
            numbers.extend(piece.into_iter().map(|copied| copied.written().number));
            if !more {
                break;
            }
        }
        assert_eq!(numbers, Vec::from_iter(0..TASKS));
    }

    fn spec() -> Spec {
        Spec {
            name: "task".into(),
            queue: Queue::Normal,
            condition: true,
            blocking: false,
            timeout: None,
            no_later_than: None,
            never_delay: false,
            after: Vec::new(),
            declared_in: None,
            invalid: None,
        }
    }
}
