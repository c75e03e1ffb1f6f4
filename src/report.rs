//! The report: what every task of a run did, what the gate did, what froze the application.

#[cfg(feature = "serde")]
mod json;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Stamp;
use crate::gate::GateState;
use crate::monkey::Delivery;
use crate::outcome::Outcome;
use crate::queue::Queue;
use crate::quiet::stalls::{self, LONG_TASK};
use crate::scheduler::Core;
use crate::shared::Shared;
use crate::table::{Id, Record};

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
    /// Whether somebody demanded it before it had started.
    pub demanded: bool,
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
    /// How often it was polled.
    pub polls: u32,
    /// Its longest poll, in real time. For a blocking task this is not the closure's own time.
    pub longest_poll: Duration,
    /// How often its code was begun.
    pub attempts: u32,
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

impl Report {
    /// The first task of this name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == name)
    }

    pub(crate) fn of(shared: &Shared) -> Report {
        let state = shared.lock();
        Report::of_core(&state.core, shared.name.as_ref(), shared.clock.now())
    }

    pub(crate) fn of_core(core: &Core, governor: &str, now: Stamp) -> Report {
        let mut records: Vec<(Id, &Record)> = core.table().iter().filter(|(_, record)| record.in_scope).collect();
        records.sort_by_key(|(_, record)| record.number);
        let mut shown = Shown::default();
        let tasks = records.iter().map(|(id, record)| shown.report(*id, record)).collect();
        let monkey = core.mischief().map(|mischief| MonkeyReport {
            asked: mischief.monkey.to_string(),
            victim: mischief.victim.and_then(|id| shown.names.get(&id).cloned()),
            delay: mischief.monkey.delay,
            delivery: mischief.delivery.clone(),
        });
        let long_tasks: Vec<LongTask> = core.stalls().seen().map(long_task).collect();
        Report {
            version: 1,
            governor: governor.to_owned(),
            profile: core.profile().to_string(),
            seed: core.seed(),
            monkey,
            gate: core.gate().state(now),
            taken: now.as_duration(),
            last_start: core.scope().last_start().map(Stamp::as_duration),
            last_finish: core.scope().last_finish().map(Stamp::as_duration),
            tasks,
            late: core.scope().late(),
            blocking_time: long_tasks.iter().map(|long| long.length.saturating_sub(LONG_TASK)).sum(),
            long_tasks,
            long_tasks_forgotten: core.stalls().forgotten(),
        }
    }
}

/// Gives each task the name it is shown under.
#[derive(Default)]
struct Shown {
    names: HashMap<Id, String>,
    used: HashMap<String, usize>,
}

impl Shown {
    fn report(&mut self, id: Id, record: &Record) -> TaskReport {
        let used = self.used.entry(record.name.to_string()).or_insert(0);
        *used += 1;
        let name = if *used == 1 { record.name.to_string() } else { format!("{}#{used}", record.name) };
        self.names.insert(id, name.clone());
        let ties = record.ties.as_deref();
        TaskReport {
            name,
            number: record.number,
            queue: record.queue,
            blocking: record.blocking,
            demanded: record.demanded,
            declared: record.declared.as_duration(),
            queued: record.queued.map(Stamp::as_duration),
            started: record.started.map(Stamp::as_duration),
            finished: record.finished.map(Stamp::as_duration),
            outcome: record.outcome.clone(),
            waited_for: ties.into_iter().flat_map(|ties| &ties.waited_for).map(ToString::to_string).collect(),
            polls: record.polls,
            longest_poll: record.longest_poll,
            attempts: u32::from(record.started.is_some()),
        }
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
