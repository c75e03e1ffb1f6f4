//! The report, copied out of the core.

use std::sync::Arc;

use crate::base::clock::Stamp;
use crate::core::Core;
use crate::core::stalls::{self, LONG_TASK};
use crate::core::table::Record;
use crate::shell::shared::Shared;

use super::{
    ApplicationOutcome, Cost, Hold, LongTask, MonkeyReport, Report, Segment, Starved, Stop, TaskReport,
    ThreadMissed,
};

impl Report {
    /// Under the lock everything is only copied; sorting comes after it.
    pub(crate) fn of(shared: &Shared) -> Report {
        let mut report = {
            let state = shared.lock();
            let mut report = Report::copied(&state.core, shared.name.as_ref(), shared.clock.now());
            report.threads_missed = state.threads_missed.iter().map(missed).collect();
            report
        };
        report.put_in_order();
        report
    }

    fn copied(core: &Core, governor: &str, now: Stamp) -> Report {
        let monkey = core.mischief().map(|mischief| MonkeyReport {
            asked: mischief.monkey.to_string(),
            victim: mischief.victim.and_then(|id| Some(core.table().get(id)?.name.to_string())),
            victim_number: mischief.victim.and_then(|id| Some(core.table().get(id)?.number)),
            delay: mischief.monkey.delay,
            delivery: mischief.delivery.clone(),
        });
        let long_tasks: Vec<LongTask> = core.stalls().seen().map(long_task).collect();
        let (tasks, late_tasks): (Vec<&Record>, Vec<&Record>) =
            core.table().iter().map(|(_, record)| record).partition(|record| record.in_scope);
        let tasks: Vec<TaskReport> = tasks.into_iter().map(task).collect();
        Report {
            version: 1,
            governor: governor.to_owned(),
            profile: core.profile().to_string(),
            seed: core.seed(),
            monkey,
            gate: core.gate().state(now),
            gate_rules: core.gate().rules().clone(),
            ready: core.gate().ready_at().map(Stamp::as_duration),
            taken: now.as_duration(),
            last_start: tasks.iter().filter_map(|task| task.started).max(),
            last_finish: tasks
                .iter()
                .filter(|task| task.started.is_some())
                .filter_map(|task| task.finished)
                .max(),
            tasks,
            late: core.scope().late(),
            late_tasks: late_tasks.into_iter().map(task).collect(),
            forgotten: core.scope().forgotten(),
            interactive_failed: core.gate().fallback().map(ToOwned::to_owned),
            outcomes: core
                .application_outcomes()
                .map(|(name, ok, at)| ApplicationOutcome {
                    name: name.to_string(),
                    ok: *ok,
                    at: at.as_duration(),
                })
                .collect(),
            holds: core
                .holds()
                .iter()
                .map(|held| Hold {
                    task: core
                        .table()
                        .get(held.task)
                        .map_or_else(String::new, |record| record.name.to_string()),
                    number: held.number,
                    since: held.since.as_duration(),
                    until: held.until.as_duration(),
                    why: held.why.clone(),
                })
                .collect(),
            starved: core.starved().map(Starved::of).collect(),
            holds_forgotten: core.holds().forgotten(),
            outcomes_forgotten: core.application_outcomes_forgotten(),
            cost: Cost {
                polls: core.cost().polls,
                looks: core.cost().looks,
                lane_time: core.cost().lane_time(),
            },
            blocking_time: long_tasks.iter().map(|long| long.length.saturating_sub(LONG_TASK)).sum(),
            long_tasks,
            stops: core
                .stops()
                .seen()
                .map(|stop| Stop { start: stop.start.as_duration(), length: stop.length() })
                .collect(),
            threads_missed: Vec::new(),
            long_tasks_forgotten: core.stalls().forgotten(),
        }
    }

    fn put_in_order(&mut self) {
        self.tasks.sort_unstable_by_key(|task| task.number);
        self.late_tasks.sort_unstable_by_key(|task| task.number);
    }
}

fn task(record: &Record) -> TaskReport {
    let ties = record.ties.as_deref();
    TaskReport {
        name: record.name.to_string(),
        number: record.number,
        queue: record.queue,
        blocking: record.blocking,
        drawn: record.line != record.queue || record.head,
        demanded: record.demanded,
        held_too_long: record.held_too_long,
        declared: record.declared.as_duration(),
        declared_in: ties.and_then(|ties| ties.declared_in),
        demanded_at: ties.and_then(|ties| ties.demanded_at).map(Stamp::as_duration),
        no_later_than: ties.and_then(|ties| ties.no_later_than),
        queued: record.queued.map(Stamp::as_duration),
        started: record.started.map(Stamp::as_duration),
        finished: record.finished.map(Stamp::as_duration),
        outcome: record.outcome.clone(),
        waited_for: ties.into_iter().flat_map(|ties| &ties.waited_for).map(ToString::to_string).collect(),
        after: ties.map_or(Vec::new(), |ties| ties.after.clone()),
        after_settled: ties.map_or(Vec::new(), |ties| ties.after_settled.clone()),
        segments: ties.into_iter().flat_map(|ties| &ties.segments).map(segment).collect(),
        awaited: ties.into_iter().flat_map(|ties| &ties.awaited).map(ToString::to_string).collect(),
        stuck: record.was_stuck,
        slow: record.slow,
        polls: record.polls,
        longest_poll: record.longest_poll,
        attempts: record.attempts,
    }
}

fn segment(segment: &crate::core::table::Segment) -> Segment {
    let crate::core::table::Segment { start, busy, waited, polls, rests } = *segment;
    Segment { start: start.as_duration(), busy, waited, polls, rests }
}

fn long_task(stall: &stalls::Stall) -> LongTask {
    let who: Option<&Arc<str>> = stall.who.as_ref();
    LongTask {
        start: stall.start.as_duration(),
        length: stall.end.since(stall.start),
        who: who.map(ToString::to_string),
        worker: stall.worker,
    }
}

fn missed((wanted, first, times): (&'static str, Stamp, u64)) -> ThreadMissed {
    ThreadMissed { wanted: wanted.to_owned(), first: first.as_duration(), times }
}
