//! The report of a run: its tasks, its gate, its long tasks.

mod copied;
mod made;
pub(crate) mod pace;
mod table;
#[cfg(feature = "serde")]
mod json;
mod chain;
mod headlines;
#[cfg(feature = "serde")]
mod trace;
#[cfg(feature = "page")]
mod page;
#[cfg(feature = "replay")]
mod replay;

#[cfg(feature = "replay")]
pub use replay::{Replay, ReplayedTask};
pub(crate) use table::fit;

use std::time::Duration;

use crate::model::gate_rules::GateRules;
use crate::model::gate_state::{GateState, WaitReason};
use crate::model::monkey::Delivery;
use crate::model::outcome::Outcome;
use crate::model::queue::Queue;

/// The report of a run, as of the time when it was taken. All times are since `build()`, on tokio's clock; the lengths
/// of polls are measured in real time.
///
/// `Display` prints a table of at most 100 columns.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Report {
    /// The version of the report's format, currently 1. Incremented when a field changes its meaning or is removed.
    pub version: u32,
    /// The governor's name.
    pub governor: String,
    /// The profile in its text form.
    pub profile: String,
    /// The seed of the governor's random choices.
    pub seed: u64,
    /// What the monkey did, if there was one.
    pub monkey: Option<MonkeyReport>,
    /// The state of the gate.
    pub gate: GateState,
    /// The gate's configuration.
    pub gate_rules: GateRules,
    /// When [`Governor::ready`](crate::Governor::ready) was first called.
    pub ready: Option<Duration>,
    /// When the report was taken.
    pub taken: Duration,
    /// When the last task in scope started.
    pub last_start: Option<Duration>,
    /// When the last started task in scope ended.
    pub last_finish: Option<Duration>,
    /// Every task in scope, in order of declaration.
    pub tasks: Vec<TaskReport>,
    /// The number of late tasks: declared after [`Governor::report`](crate::Governor::report), and not by a task in
    /// scope.
    pub late: u64,
    /// The late tasks that have not ended, and the last 1,000 that have, in order of declaration.
    pub late_tasks: Vec<TaskReport>,
    /// The number of ended tasks that are not listed. If [`Governor::report`](crate::Governor::report) is never called,
    /// only the last 10,000 ended tasks are kept.
    pub forgotten: u64,
    /// Why the quiet window was used although `interactive_when` was set.
    pub interactive_failed: Option<String>,
    /// Outcomes that the application recorded; see [`Governor::outcome`](crate::Governor::outcome). The last 1,000.
    pub outcomes: Vec<ApplicationOutcome>,
    /// The number of the application's outcomes that are not listed.
    pub outcomes_forgotten: u64,
    /// The governor's own overhead.
    pub cost: Cost,
    /// Idle starts that were held after the opening of the gate because the application was busy again. The last 1,000.
    pub holds: Vec<Hold>,
    /// The number of holds that are not listed.
    pub holds_forgotten: u64,
    /// Periods of 50 ms or more in which a worker was blocked while the probe ran. The last 1,000.
    pub long_tasks: Vec<LongTask>,
    /// The number of long tasks that are not listed.
    pub long_tasks_forgotten: u64,
    /// Periods of 50 ms or more in which the whole process did not run, because of `SIGSTOP`, a debugger or a lack of
    /// CPU time, as detected by the witness thread. They are not attributed to tasks. The last 256.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub stops: Vec<Stop>,
    /// Starved normal tasks: each was the first of its queue while no task of the queue got a slot for a minute. The
    /// last 256.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub starved: Vec<Starved>,
    /// Threads that could not be obtained because the pool was full or the system refused, one entry per component.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub threads_missed: Vec<ThreadMissed>,
    /// The total time by which the listed long tasks exceeded 50 ms, as in Lighthouse's total blocking time.
    pub blocking_time: Duration,
}

/// A task in a [`Report`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TaskReport {
    /// Its name; a second task of the same name is shown as `name#2`.
    pub name: String,
    /// The number of tasks declared before it.
    pub number: u64,
    /// The queue it was declared for.
    pub queue: Queue,
    /// Whether it is a blocking task.
    pub blocking: bool,
    /// Whether it was promoted to the normal queue: a normal task comes after it, or its own `no_later_than` passed.
    pub promoted: bool,
    /// Whether it was demanded before it had started.
    pub demanded: bool,
    /// Whether the governor itself demanded it, because normal tasks had occupied every slot for `max_hold`.
    pub demanded_by_governor: bool,
    /// When it was declared.
    pub declared: Duration,
    /// The number of the governed task that declared it. Recorded with
    /// [`record_segments`](crate::Builder::record_segments).
    pub declared_in: Option<u64>,
    /// When it was first demanded, also while it was running. Recorded with
    /// [`record_segments`](crate::Builder::record_segments).
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub demanded_at: Option<Duration>,
    /// The deadline for its start, counted from its declaration; see
    /// [`Task::no_later_than`](crate::Task::no_later_than).
    pub no_later_than: Option<Duration>,
    /// When it entered its queue, after its predecessors had ended.
    pub queued: Option<Duration>,
    /// When its first poll began.
    pub started: Option<Duration>,
    /// When it ended. If its code was still running after its outcome was decided, when that code returned.
    pub finished: Option<Duration>,
    /// How it ended; `None` if it has not.
    pub outcome: Option<Outcome>,
    /// The names of its predecessors.
    pub waited_for: Vec<String>,
    /// The numbers of its predecessors.
    pub after: Vec<u64>,
    /// The numbers of those predecessors that may end with any outcome; see
    /// [`Task::after_settled`](crate::Task::after_settled).
    pub after_settled: Vec<u64>,
    /// When it was polled. Recorded with [`record_segments`](crate::Builder::record_segments).
    pub segments: Vec<Segment>,
    /// The names of the tasks whose handles it waited for while it ran; it lent its slot meanwhile.
    pub awaited: Vec<String>,
    /// Whether one of its polls blocked the lane for `stuck_after`, so that the lane was replaced.
    pub stuck: bool,
    /// Whether it was reported as slow because it ran for 30 s.
    pub slow: bool,
    /// The number of its polls.
    pub polls: u32,
    /// The length of its longest poll, in real time. For a blocking task this does not include the closure.
    pub longest_poll: Duration,
    /// The number of its attempts.
    pub attempts: u32,
}

/// An idle start that was held after the opening of the gate.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Hold {
    /// The name of the task that started when the hold was over.
    pub task: String,
    /// The number of tasks declared before it.
    pub number: u64,
    /// When its start was due.
    pub since: Duration,
    /// When it started.
    pub until: Duration,
    /// The first reason of the hold.
    pub why: WaitReason,
}

/// A normal task that has waited long for a slot, and the running tasks, which may never end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Starved {
    /// Its name.
    pub task: String,
    /// The number of tasks declared before it.
    pub number: u64,
    /// When it entered its queue.
    pub since: Duration,
    /// When it was reported: a minute after the last start of a normal task, or after the last slot was taken.
    pub named: Duration,
    /// The names of the tasks that were running then; the first 16.
    pub behind: Vec<String>,
    /// The numbers of its predecessors.
    pub behind_numbers: Vec<u64>,
    /// The number of further running tasks.
    pub more: usize,
}

impl Starved {
    pub(crate) fn of(starved: &crate::core::Starved) -> Starved {
        let crate::core::Starved { name, number, since, reported_at, behind, more } = starved;
        Starved {
            task: name.to_string(),
            number: *number,
            since: since.as_duration(),
            named: reported_at.as_duration(),
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

/// The governor's own overhead in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cost {
    /// The number of governed polls, each in a tick of its own.
    pub polls: u64,
    /// The number of times the probe ran.
    pub looks: u64,
    /// The real time spent in the lane, without the tasks' own polls. Measured in one turn of 64 and extrapolated.
    pub lane_time: Duration,
}

/// An outcome that the application recorded; see [`Governor::outcome`](crate::Governor::outcome).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ApplicationOutcome {
    /// Its name.
    pub name: String,
    /// Whether it was a success.
    pub ok: bool,
    /// When it was recorded.
    pub at: Duration,
}

/// One poll of a task, or several that were merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Segment {
    /// When the first poll began.
    pub start: Duration,
    /// The total length of the polls, without the time between them.
    pub busy: Duration,
    /// How long the task itself waited before these polls: from the end of the previous poll to the wake. The time it
    /// then waited for the lane is not included.
    pub waited: Duration,
    /// The number of polls.
    pub polls: u32,
    /// How long the task waits without a slot before its next attempt, if these polls ended a failed attempt.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub rests: Option<Duration>,
}

/// What the monkey did.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MonkeyReport {
    /// The configured monkey, in the profile's text form.
    pub asked: String,
    /// The name of the selected task.
    pub victim: Option<String>,
    /// The number of tasks declared before it.
    pub victim_number: Option<u64>,
    /// The configured delay.
    pub delay: Duration,
    /// The result.
    pub delivery: Delivery,
}

/// A period of 50 ms or more in which a worker was blocked, by one long poll or by many short ones.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LongTask {
    /// When it began.
    pub start: Duration,
    /// How long it lasted, as far as it was observed.
    pub length: Duration,
    /// The governed task, observed future or span that accounts for at least half of it, if there is one.
    pub who: Option<String>,
    /// The index of the worker, if known.
    pub worker: Option<usize>,
}

/// A period in which the whole process did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stop {
    /// When it began, to within 10 ms.
    pub start: Duration,
    /// How long it lasted.
    pub length: Duration,
}

/// A component for which no thread could be obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ThreadMissed {
    /// The component: "the lane" that was to replace a stuck one; "a blocking task", which waited; "the sampler", which
    /// was left out.
    pub wanted: String,
    /// When it first happened.
    pub first: Duration,
    /// How often it happened.
    pub times: u64,
}

impl TaskReport {
    /// Returns the time from its entry into the queue to its start.
    pub fn waited(&self) -> Option<Duration> {
        Some(self.started?.saturating_sub(self.queued?))
    }

    /// Returns the time from its start to its end.
    pub fn ran(&self) -> Option<Duration> {
        Some(self.finished?.saturating_sub(self.started?))
    }
}

impl LongTask {
    /// Returns what it is attributed to: a governed task, an observed future or a span. Otherwise "unknown", with the
    /// worker if known.
    pub fn culprit(&self) -> String {
        match (&self.who, self.worker) {
            (Some(name), _) => name.clone(),
            (None, Some(worker)) => format!("unknown (worker {worker})"),
            (None, None) => "unknown".to_owned(),
        }
    }
}

impl Report {
    /// Returns the first task of this name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == name)
    }
}
