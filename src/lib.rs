//! A startup-task governor for async Rust on tokio: the application serves its first request first, and the rest of its
//! boot follows.
//!
//! An application can often answer its first request long before it has finished starting. Building indexes, warming
//! caches, checking licences and sending telemetry still have to happen, and if they all run at once they block the very
//! workers that serve requests. A [`Governor`] polls such tasks one per tick of the event loop, holds back those that can
//! wait until the application is quiet, contains their panics, and returns a [`Report`] of where the time went.
//!
//! ```
//! use std::time::Duration;
//! use afterboot::{Governor, Task};
//!
//! # async fn load_index() -> Result<Vec<String>, std::io::Error> { Ok(vec!["fn main".to_owned()]) }
//! # async fn fetch_notifications() {}
//! # fn build_thumbnails() -> Result<(), std::io::Error> { Ok(()) }
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let governor = Governor::builder().await_ready().build()?; // spawns nothing yet
//!
//! let index = governor.govern(Task::new("search index", load_index).idle());
//! governor.govern(Task::new("notifications", fetch_notifications));
//! governor.govern(Task::new("thumbnails", || async { Ok::<_, std::io::Error>(()) }).idle().after(&index));
//!
//! governor.ready(); // the application's own boot is over: the quiet window starts
//! let run = governor.report();
//!
//! // Anywhere, at any time: the index is needed now. It starts at once, and it runs once.
//! let index = index.demand().await?;
//! assert_eq!(index.len(), 1);
//!
//! println!("{}", run.finished().await); // a table of every task
//! # Ok(())
//! # }
//! ```
//!
//! # Terms
//!
//! - A **task** is a named unit of startup work. It waits in one of two **queues**: *normal* tasks start as soon as a slot
//!   is free, *idle* tasks once the gate is open.
//! - A **slot** is one of `concurrency` places for running tasks. A task occupies it from its first poll to its end, also
//!   while it awaits something.
//! - A **tick** is one pass of the event loop in which I/O and timers are polled.
//! - The **lane** is the one tokio task that polls governed tasks, one poll per tick.
//! - The **pulse** is the pause between two starts.
//! - A **long task** is a period of 50 ms or more in which a worker is blocked: it does not return to its event loop. A
//!   **quiet window** is a period without one, and with few requests **in flight**.
//! - The **gate** of the idle queue opens after a quiet window, or after a timeout. **Ready** marks the end of the
//!   application's own boot, at which the window starts.
//! - An idle start is **held** if the application gets busy again after the gate has opened.
//! - A **demand** starts a task next, because its result is needed.
//! - The **monkey** delays one task on purpose, to test whether it must run early.
//!
//! # How a run proceeds
//!
//! 1. [`Governor::govern`] takes a [`Task`] and returns a [`TaskHandle`] at once. None of the task's code runs yet.
//! 2. Normal tasks start in the order of their declaration: the first after `delay`, each further one after a `pulse` and
//!    when fewer than `concurrency` tasks are running. Each poll has a tick of its own.
//! 3. With the first idle task a probe starts, which detects blocked workers. The gate opens when there was no long task
//!    for `quiet` (5 s) and at most `max_in_flight` (2) requests were in flight meanwhile, and after `gate_timeout` (45 s)
//!    in any case.
//! 4. Idle tasks start behind normal ones, limited by the same pulse and slots. Polls have the same priorities: demanded
//!    tasks and their dependencies first, then normal tasks, then idle ones. The lower classes keep one sixteenth of the
//!    time.
//! 5. [`Run::finished`] returns the [`Report`] when all tasks have ended. Then neither lane nor probe is left.
//!
//! # Costs and limits
//!
//! - On a multi_thread runtime all governed tasks share one lane, so governed polls occupy at most one worker. CPU-bound
//!   startup work therefore takes up to as many times longer as there are workers; in return the other workers stay free
//!   for requests. Work that should use the other cores belongs in [`Task::blocking`].
//! - A poll that computes for long blocks its worker for as long. Call [`yield_if_due`] in loops.
//! - Work that a task spawns with `tokio::spawn` is not subject to lane, slot or timeout. Task-locals are not inherited.
//! - Blocking closures cannot be stopped from outside. With `panic = "abort"` no panic is contained, nor is a panic in a
//!   destructor that runs during another panic.
//! - tokio's timers have a resolution of 1 ms and round up: a pulse of 1 ms takes about 2 ms per start.
//! - Scheduling uses tokio's clock and is deterministic while that is paused. Poll lengths are measured in real time, and
//!   the blocking pool runs in real time, none of which a paused clock shows.
//!
//! # Further
//!
//! [Test your boot under a paused clock](guide::testing) · [Why not …](guide::why_not) ·
//! [Not promised](guide::not_promised)
//!
//! # Features
//!
//! | Feature | Adds |
//! | --- | --- |
//! | `retry` | `Task::retryable`: retries by a policy of `afterboot-retry`, which is re-exported as `retry` |
//! | `tower` | `Governor::in_flight_layer`: a `tower` layer that counts requests in flight |
//! | `tracing-layer` | `Governor::tracing_layer`: attributes long tasks to the application's spans |
//! | `serde` | `Serialize` and `Deserialize` for the report, `Report::to_json` and `Report::to_chrome_trace` |
//! | `page` | `Report::to_html`: the report as one self-contained HTML page (includes `serde`) |
//! | `replay` | `Report::replay`: simulates a recorded run under another profile, in virtual time |

pub mod guide;

#[cfg(afterboot_internals)]
#[doc(hidden)]
pub mod internals;

mod base;
mod model;
mod core;
mod shell;
mod report;
mod api;

/// The retry policies that [`Task::retryable`] takes.
#[cfg(feature = "retry")]
pub use afterboot_retry as retry;
#[cfg(all(test, afterboot_loom))]
mod loom_models;

pub use api::builder::Builder;
pub use api::events::Events;
pub use api::governor::Governor;
pub use api::guard::InFlightGuard;
pub use api::handle::{TaskHandle, TaskRef};
#[cfg(feature = "tracing-layer")]
pub use api::layer::ObserveLayer;
pub use api::local::{LocalGovernor, LocalTask, LocalTaskHandle, LocalTaskRef};
pub use api::quiet::Quiet;
pub use api::run::Run;
pub use api::snapshot::{RunningTask, Snapshot};
pub use api::task::Task;
pub use api::task_list::TaskList;
#[cfg(feature = "tower")]
pub use api::tower::{CountInFlight, Counted, InFlightLayer};
pub use model::error::{ConfigError, TaskError};
pub use model::event::Event;
pub use model::gate_rules::GateRules;
pub use model::gate_state::{GateState, OpenedBy, WaitReason};
pub use model::monkey::{Delivery, Monkey};
pub use model::outcome::{CancelReason, Outcome, SkipReason};
pub use model::profile::Profile;
pub use model::queue::Queue;
#[cfg(feature = "replay")]
pub use model::replay_error::ReplayError;
pub use report::{
    ApplicationOutcome, Cost, Hold, LongTask, MonkeyReport, Report, Segment, Starved, Stop, TaskReport,
    ThreadMissed,
};
#[cfg(feature = "replay")]
pub use report::{Replay, ReplayedTask};
pub use shell::context::yield_if_due;
pub use shell::governed::Predecessor;
pub use shell::observe::Observed;
pub use shell::output::TaskOutput;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
