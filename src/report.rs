//! The report: what every task of a run did, what the gate did, what froze the application.

#[cfg(feature = "serde")]
mod json;
mod table;

pub(crate) use table::fit;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Stamp;
use crate::gate::{GateState, HeldBy};
use crate::monkey::Delivery;
use crate::outcome::Outcome;
use crate::queue::Queue;
use crate::quiet::stalls::{self, LONG_TASK};
use crate::scheduler::Core;
use crate::shared::Shared;
use crate::table::Record;

/// What happened in a run, as it stood when the report was taken. All times are since `build()`, on tokio's
/// clock; the lengths of polls are real time.
///
/// `Display` prints a table of at most 100 columns.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Report {
    /// Of this form; it grows when a field changes its meaning or goes. Now 1.
    pub version: u32,
    /// The governor's name.
    pub governor: String,
    /// The profile's text form.
    pub profile: String,
    /// The seed of whatever was random.
    pub seed: u64,
    /// What the monkey did, where there was one.
    pub monkey: Option<MonkeyReport>,
    /// How the gate stood.
    pub gate: GateState,
    /// When the report was taken.
    pub taken: Duration,
    /// When the last task in scope started.
    pub last_start: Option<Duration>,
    /// When the last task in scope that had started ended.
    pub last_finish: Option<Duration>,
    /// Every task in scope, in order of declaration.
    pub tasks: Vec<TaskReport>,
    /// How many tasks were declared after `report()` by nobody in scope.
    pub late: u64,
    /// Those of them that have not ended, and the last 1,000 that have, in order of declaration.
    pub late_tasks: Vec<TaskReport>,
    /// How many tasks ended and are not listed. Where `report()` is never called, only the last 10,000 that
    /// ended are kept.
    pub forgotten: u64,
    /// Why the quiet window decided although `interactive_when` was given.
    pub interactive_failed: Option<String>,
    /// What the application itself counted; see [`Governor::outcome`](crate::Governor::outcome).
    pub outcomes: Vec<ApplicationOutcome>,
    /// How many of the application's outcomes are not listed: only the last 1,000 are.
    pub outcomes_forgotten: u64,
    /// What afterboot itself has spent.
    pub cost: Cost,
    /// Idle starts that were held after the opening because the application was busy again; the last 1,000.
    pub holds: Vec<Hold>,
    /// Holds that are not listed.
    pub holds_forgotten: u64,
    /// Stretches of 50 ms or more in which a worker's loop did not come round, while the probe watched.
    pub long_tasks: Vec<LongTask>,
    /// Long tasks that are not listed: only the last 1,000 are.
    pub long_tasks_forgotten: u64,
    /// The sum over the listed long tasks of what went beyond 50 ms.
    pub blocking_time: Duration,
}

/// One task in a [`Report`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TaskReport {
    /// Its name; a second task of the same name is `name#2`.
    pub name: String,
    /// How many tasks were declared before it.
    pub number: u64,
    /// In which queue it waited.
    pub queue: Queue,
    /// Whether it ran on the blocking pool.
    pub blocking: bool,
    /// Whether it was moved into the normal queue: somebody more urgent comes after it, or its own
    /// `no_later_than` passed.
    pub drawn: bool,
    /// Whether somebody demanded it before it had started.
    pub demanded: bool,
    /// Whether the governor itself demanded it, because normal tasks had left it no slot for `max_hold`.
    pub held_too_long: bool,
    /// When it was declared.
    pub declared: Duration,
    /// When nothing but its queue held it any more: its predecessors had completed.
    pub queued: Option<Duration>,
    /// When its first poll began.
    pub started: Option<Duration>,
    /// When it ended; for code that outlived its outcome, when that returned.
    pub finished: Option<Duration>,
    /// How it ended; none where it has not.
    pub outcome: Option<Outcome>,
    /// The tasks it was declared to come after.
    pub waited_for: Vec<String>,
    /// The tasks whose handles it waited for while it ran; its slot was lent meanwhile.
    pub awaited: Vec<String>,
    /// Whether one of its polls held the lane for `stuck_after`, so that the lane went on without it.
    pub stuck: bool,
    /// Whether it was named because it ran for 30 s.
    pub slow: bool,
    /// How often it was polled.
    pub polls: u32,
    /// Its longest poll, in real time. For a blocking task this is not the closure's own time.
    pub longest_poll: Duration,
    /// How often its code was begun.
    pub attempts: u32,
}

/// An idle start that was held after the opening.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Hold {
    /// The task that started when the hold was over.
    pub task: String,
    /// How many tasks were declared before it.
    pub number: u64,
    /// When its start was due.
    pub since: Duration,
    /// When it came.
    pub until: Duration,
    /// What held it first.
    pub why: HeldBy,
}

/// What afterboot itself has spent in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cost {
    /// Governed polls, each with a tick to itself.
    pub polls: u64,
    /// Looks of the probe.
    pub looks: u64,
    /// Real time that the lane's own work took, the polls of the tasks left out: measured in one turn of 64 and
    /// scaled up.
    pub lane_time: Duration,
}

/// Something that the application itself counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ApplicationOutcome {
    /// What it is called.
    pub name: String,
    /// Whether it went well.
    pub ok: bool,
    /// When it was told.
    pub at: Duration,
}

/// What the monkey did.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MonkeyReport {
    /// What was asked, in the profile's text form.
    pub asked: String,
    /// The task that was picked.
    pub victim: Option<String>,
    /// How many tasks were declared before it.
    pub victim_number: Option<u64>,
    /// For how long it was to be delayed.
    pub delay: Duration,
    /// What became of it.
    pub delivery: Delivery,
}

/// A stretch of 50 ms or more in which a worker's loop did not come round: one long poll or many short ones.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LongTask {
    /// When it began.
    pub start: Duration,
    /// How long it lasted, as far as it was seen.
    pub length: Duration,
    /// The governed task that filled most of it, if one did.
    pub who: Option<String>,
    /// Which worker, where that is known.
    pub worker: Option<usize>,
}

impl TaskReport {
    /// From the moment at which only its queue held it to its start.
    pub fn waited(&self) -> Option<Duration> {
        Some(self.started?.saturating_sub(self.queued?))
    }

    /// From its start to its end.
    pub fn ran(&self) -> Option<Duration> {
        Some(self.finished?.saturating_sub(self.started?))
    }
}

impl LongTask {
    /// The governed task, or the worker, or "a worker".
    pub fn culprit(&self) -> String {
        match (&self.who, self.worker) {
            (Some(name), _) => name.clone(),
            (None, Some(worker)) => format!("worker {worker}"),
            (None, None) => "a worker".to_owned(),
        }
    }
}

impl Report {
    /// The first task of this name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Under the lock everything is only copied; sorting and naming come after it.
    pub(crate) fn of(shared: &Shared) -> Report {
        let mut report = {
            let state = shared.lock();
            Report::copied(&state.core, shared.name.as_ref(), shared.clock.now())
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
            holds_forgotten: core.holds_forgotten(),
            outcomes_forgotten: core.application_outcomes_forgotten(),
            cost: Cost {
                polls: core.cost().polls,
                looks: core.cost().looks,
                lane_time: core.cost().lane_time(),
            },
            blocking_time: long_tasks.iter().map(|long| long.length.saturating_sub(LONG_TASK)).sum(),
            long_tasks,
            long_tasks_forgotten: core.stalls().forgotten(),
        }
    }

    /// In order of declaration, each task under a name of its own.
    fn put_in_order(&mut self) {
        self.tasks.sort_unstable_by_key(|task| task.number);
        self.late_tasks.sort_unstable_by_key(|task| task.number);
        let mut used: HashMap<String, usize> = HashMap::new();
        for task in self.tasks.iter_mut().chain(&mut self.late_tasks) {
            let declared = task.name.clone();
            let mut nth = *used.get(&declared).unwrap_or(&0);
            // Somebody may have declared `a#2` in so many words.
            while used.contains_key(&task.name) {
                nth += 1;
                task.name = format!("{declared}#{}", nth + 1);
            }
            if nth > 0 {
                used.insert(declared, nth);
            }
            used.insert(task.name.clone(), 0);
        }
        for hold in &mut self.holds {
            if let Some(task) = self.tasks.iter().find(|task| task.number == hold.number) {
                hold.task.clone_from(&task.name);
            }
        }
        if let Some(monkey) = &mut self.monkey {
            let victim = self.tasks.iter().find(|task| Some(task.number) == monkey.victim_number);
            monkey.victim = victim.map(|task| task.name.clone()).or(monkey.victim.take());
        }
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
        queued: record.queued.map(Stamp::as_duration),
        started: record.started.map(Stamp::as_duration),
        finished: record.finished.map(Stamp::as_duration),
        outcome: record.outcome.clone(),
        waited_for: ties.into_iter().flat_map(|ties| &ties.waited_for).map(ToString::to_string).collect(),
        awaited: ties.into_iter().flat_map(|ties| &ties.awaited).map(ToString::to_string).collect(),
        stuck: record.was_stuck,
        slow: record.slow,
        polls: record.polls,
        longest_poll: record.longest_poll,
        attempts: u32::from(record.started.is_some()),
    }
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
