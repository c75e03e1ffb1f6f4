//! The report: what every task of a run did, what the gate did, what froze the application.

mod copied;
mod made;
pub(crate) mod pace;
mod replay;
mod table;
#[cfg(feature = "serde")]
mod json;
mod chain;
mod headlines;
#[cfg(feature = "serde")]
mod trace;
#[cfg(feature = "page")]
mod page;

pub use replay::{Replay, ReplayedTask};
pub(crate) use table::fit;

use std::time::Duration;

use crate::model::gate_rules::GateRules;
use crate::model::gate_state::{GateState, WaitReason};
use crate::model::monkey::Delivery;
use crate::model::outcome::Outcome;
use crate::model::queue::Queue;

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
    /// By which rules it opens.
    pub gate_rules: GateRules,
    /// When [`Governor::ready`](crate::Governor::ready) was first said.
    pub ready: Option<Duration>,
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
    /// Stretches of 50 ms or more in which the whole process did not run, as a witness saw that sleeps on a thread of its own:
    /// `SIGSTOP`, a debugger, a machine that gave no time. The last 256; no task is blamed for them.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub stops: Vec<Stop>,
    /// Normal tasks that waited for a slot while for a minute none of their queue got one; the first of the queue, each once. The last
    /// 256.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub starved: Vec<Starved>,
    /// Threads that were wanted and could not be had, a line for each thing that wanted them: the pool was full, or the system
    /// refused.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub threads_missed: Vec<ThreadMissed>,
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
    pub promoted: bool,
    /// Whether somebody demanded it before it had started.
    pub demanded: bool,
    /// Whether the governor itself demanded it, because normal tasks had left it no slot for `max_hold`.
    pub demanded_by_governor: bool,
    /// When it was declared.
    pub declared: Duration,
    /// The number of the governed task that declared it, where
    /// [`record_segments`](crate::Builder::record_segments) asked for it.
    pub declared_in: Option<u64>,
    /// When it was first demanded, also while it ran, where [`record_segments`](crate::Builder::record_segments) asked for it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub demanded_at: Option<Duration>,
    /// Its own deadline, counted from its declaration; see [`Task::no_later_than`](crate::Task::no_later_than).
    pub no_later_than: Option<Duration>,
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
    /// Their numbers.
    pub after: Vec<u64>,
    /// Those of them that only had to end; see [`Task::after_settled`](crate::Task::after_settled).
    pub after_settled: Vec<u64>,
    /// When it was polled, where [`record_segments`](crate::Builder::record_segments) asked for it.
    pub segments: Vec<Segment>,
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
    pub why: WaitReason,
}

/// A normal task that waited for a slot for long, and behind whom: they may never end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Starved {
    /// Its name.
    pub task: String,
    /// How many tasks were declared before it.
    pub number: u64,
    /// When nothing but its queue held it any more.
    pub since: Duration,
    /// When it was named: a minute after the last start of a normal task, or after the last slot was taken.
    pub named: Duration,
    /// The names of those that held the slots then, of the first 16.
    pub behind: Vec<String>,
    /// Their numbers.
    pub behind_numbers: Vec<u64>,
    /// How many more held one.
    pub more: usize,
}

impl Starved {
    pub(crate) fn of(starved: &crate::core::Starved) -> Starved {
        let crate::core::Starved { name, number, since, told, behind, more } = starved;
        Starved {
            task: name.to_string(),
            number: *number,
            since: since.as_duration(),
            named: told.as_duration(),
            behind: behind.iter().map(|(_, name)| name.to_string()).collect(),
            behind_numbers: behind.iter().map(|(number, _)| *number).collect(),
            more: *more,
        }
    }

    /// "since 1.2 s behind "a", "b" and 3 more", for a line of text.
    pub(crate) fn words(&self) -> String {
        let names: Vec<String> = self.behind.iter().map(|name| format!("{name:?}")).collect();
        let more = if self.more > 0 { format!(" and {} more", self.more) } else { String::new() };
        format!(
            "{:?} has waited for a slot since {} behind {}{more}",
            self.task,
            fit(self.since),
            names.join(", ")
        )
    }
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

/// One poll of a task, or several that were merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Segment {
    /// When the first of them began.
    pub start: Duration,
    /// The polls' own time; what lay between them is left out.
    pub busy: Duration,
    /// The task's own waiting before these polls: from the end of the poll before to the wake that asked for the
    /// next. What it then waited for the lane is left out.
    pub waited: Duration,
    /// How many polls.
    pub polls: u32,
    /// How long the task then rests without a slot, where this ended an attempt that is tried again.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub rests: Option<Duration>,
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
    /// The governed task, observed future or span that filled most of it, if one did.
    pub who: Option<String>,
    /// Which worker, where that is known.
    pub worker: Option<usize>,
}

/// A stretch in which the whole process did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stop {
    /// When it began, to within 10 ms.
    pub start: Duration,
    /// How long it lasted.
    pub length: Duration,
}

/// Threads that could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ThreadMissed {
    /// For what: "the lane" that was to go on without a stuck poll, and came too late or never; "a blocking task", which
    /// waited; "the sampler", without which the probe sees what it sees.
    pub wanted: String,
    /// When first.
    pub first: Duration,
    /// How often.
    pub times: u64,
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
    /// Who filled most of it: a governed task, an observed future, a span; else "unknown", with the worker where that is known.
    pub fn culprit(&self) -> String {
        match (&self.who, self.worker) {
            (Some(name), _) => name.clone(),
            (None, Some(worker)) => format!("unknown (worker {worker})"),
            (None, None) => "unknown".to_owned(),
        }
    }
}

impl Report {
    /// The first task of this name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == name)
    }
}
