//! The events of a run.

use std::sync::Arc;
use std::time::Duration;

use crate::model::gate_state::GateState;
use crate::model::outcome::Outcome;
use crate::model::queue::Queue;

/// An event of a run; see [`Governor::events`](crate::Governor::events).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Event {
    /// A task was declared.
    #[non_exhaustive]
    Declared {
        /// The task's name, as shown in the report.
        task: Arc<str>,
        /// The number of tasks declared before it.
        number: u64,
        /// The queue it waits in.
        queue: Queue,
    },
    /// A task got a slot; its first poll follows.
    #[non_exhaustive]
    Started {
        /// The task's name, as shown in the report.
        task: Arc<str>,
        /// The number of tasks declared before it.
        number: u64,
    },
    /// The monkey's delay of a task began.
    #[non_exhaustive]
    Delayed {
        /// The task's name, as shown in the report.
        task: Arc<str>,
        /// The number of tasks declared before it.
        number: u64,
    },
    /// A task's handle was resolved.
    #[non_exhaustive]
    Ended {
        /// The task's name, as shown in the report.
        task: Arc<str>,
        /// The number of tasks declared before it.
        number: u64,
        /// The task's outcome.
        outcome: Outcome,
    },
    /// A governed poll has blocked the lane for `stuck_after`; another lane continues without it.
    #[non_exhaustive]
    Stuck {
        /// The task's name, as shown in the report.
        task: Arc<str>,
        /// The number of tasks declared before it.
        number: u64,
    },
    /// A task has been running for 30 s.
    #[non_exhaustive]
    Slow {
        /// The task's name, as shown in the report.
        task: Arc<str>,
        /// The number of tasks declared before it.
        number: u64,
    },
    /// The first task of the normal queue waits for a slot, and no task of that queue has got one for a minute: the
    /// running tasks may never end.
    #[non_exhaustive]
    Starved {
        /// The task's name, as shown in the report.
        task: Arc<str>,
        /// The number of tasks declared before it.
        number: u64,
        /// When it began to wait for a slot, since `build()`.
        since: Duration,
        /// The names of the running tasks; the first 16.
        behind: Vec<Arc<str>>,
    },
    /// The gate of the idle queue opened.
    #[non_exhaustive]
    GateOpened {
        /// The gate's state: what opened it and when, and what had kept it shut.
        gate: GateState,
    },
    /// A worker was blocked for 50 ms or more. Sent when it is first detected; the worker may still be blocked.
    #[non_exhaustive]
    LongTask {
        /// When it began, since `build()`.
        start: Duration,
        /// How long it had lasted when it was detected.
        length: Duration,
        /// What it is attributed to: the governed task, observed future or span that accounts for at least half of it.
        /// Otherwise "unknown", with the worker if known.
        who: Arc<str>,
    },
    /// The whole process was stopped for 50 ms or more, or did not get the CPU. Sent when it is first detected.
    #[non_exhaustive]
    Stopped {
        /// When it began, since `build()`, to within 10 ms.
        start: Duration,
        /// How long it had lasted when it was detected.
        length: Duration,
    },
    /// A thread could not be obtained. The component that needs it waits or works without it.
    #[non_exhaustive]
    NoThread {
        /// The component that needs it: the lane that replaces a stuck one, a blocking task, or the sampler.
        wanted: Arc<str>,
    },
    /// The governor is shutting down; no further task starts.
    ShuttingDown,
    /// The listener was too slow: events were lost before the next one.
    #[non_exhaustive]
    Lagged {
        /// The number of lost events.
        missed: u64,
    },
}
