//! What happens in a run.

use std::sync::Arc;
use std::time::Duration;

use crate::model::gate_state::GateState;
use crate::model::outcome::Outcome;
use crate::model::queue::Queue;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Event {
    /// A task was declared.
    #[non_exhaustive]
    Declared {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
        /// In which queue it waits.
        queue: Queue,
    },
    /// A task got its slot; its first poll comes next.
    #[non_exhaustive]
    Started {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
    },
    /// The monkey's delay of a task began.
    #[non_exhaustive]
    Delayed {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
    },
    /// A task's handle is resolved.
    #[non_exhaustive]
    Ended {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
        /// How it ended.
        outcome: Outcome,
    },
    /// A governed poll has held the lane for `stuck_after`: the lane goes on without it.
    #[non_exhaustive]
    Stuck {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
    },
    /// A task has been running for 30 s.
    #[non_exhaustive]
    Slow {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
    },
    /// A normal task, the first of its queue, waits for a slot, and for a minute none of them got one: those that hold the slots may
    /// never end.
    #[non_exhaustive]
    Starved {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
        /// Since when it has waited for a slot, since `build()`.
        since: Duration,
        /// Who holds the slots, as declared: the first 16.
        behind: Vec<Arc<str>>,
    },
    /// The gate of the idle queue opened.
    #[non_exhaustive]
    GateOpened {
        /// By what, when, and what held it last.
        gate: GateState,
    },
    /// A worker's loop did not come round for 50 ms or more. Told when it is first seen: it may go on.
    #[non_exhaustive]
    LongTask {
        /// When it began, since `build()`.
        start: Duration,
        /// How long it had lasted when it was seen.
        length: Duration,
        /// Who filled most of it: a governed task, an observed future, a span; else "unknown", with the worker where that is
        /// known.
        who: Arc<str>,
    },
    /// The whole process did not run for 50 ms or more: it was stopped, or the machine was. Told when it is first seen.
    #[non_exhaustive]
    Stopped {
        /// When it began, since `build()`, to within 10 ms.
        start: Duration,
        /// How long it had lasted when it was seen.
        length: Duration,
    },
    /// A thread was wanted and could not be had; whoever wanted it waits or does without.
    #[non_exhaustive]
    NoThread {
        /// For what: the lane that goes on without a stuck poll, a blocking task, the sampler.
        wanted: Arc<str>,
    },
    /// Nothing new starts any more.
    ShuttingDown,
    /// The listener was too slow: this many events were dropped before the next one.
    #[non_exhaustive]
    Lagged {
        /// How many.
        missed: u64,
    },
}
