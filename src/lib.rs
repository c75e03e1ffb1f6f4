//! A startup-task governor for async Rust on tokio: the application answers first, the rest of its boot follows.
//!
//! An application can answer its first request long before it has finished starting. Indexes, caches,
//! notifications, licence checks and telemetry still want to run, and run together they freeze the very thing
//! they serve. A [`Governor`] gives each of them a tick of the event loop of its own, keeps those that can wait
//! until the application is quiet, survives their panics, and says in a [`Report`] where the time went.
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
//! governor.ready(); // our own boot is over: the quiet window begins
//! let run = governor.report();
//!
//! // Anywhere, at any time: somebody needs the index now. It starts at once, and it runs once.
//! let index = index.demand().await?;
//! assert_eq!(index.len(), 1);
//!
//! println!("{}", run.finished().await); // a table of every task
//! # Ok(())
//! # }
//! ```
//!
//! # The words
//!
//! A **task** is a named unit of startup work. It waits in one of two **queues**: *normal* tasks start as soon as
//! a slot is free, *idle* ones once the **gate** is open. A **slot** is one of `concurrency` places in flight; a
//! task holds it from its first poll to its end, awaits included. A **tick** is one pass of the event loop in
//! which I/O and timers are looked at. The **lane** is the single line that polls governed tasks, one a tick. The
//! **pulse** is the rest between two starts. A **long task** is a stretch of 50 ms or more in which a worker's
//! loop does not come round; a **quiet window** is a stretch without one. **Ready** is the application's word that
//! its own boot is over; a **demand** says that somebody needs a task now; the **monkey** delays one task on
//! purpose.
//!
//! # What happens when
//!
//! 1. [`Governor::govern`] takes a [`Task`] and returns a [`TaskHandle`] at once. No code of the task runs.
//! 2. Normal tasks start in the order of their declaration: the first after `delay`, each next one after a
//!    `pulse` and when fewer than `concurrency` are in flight. Each poll has a tick to itself.
//! 3. With the first idle task a probe begins to watch whether the workers' loops come round. When none was late
//!    for `quiet` (5 s), and at most `max_in_flight` (2) requests were held meanwhile, the gate opens. It opens
//!    after `timeout` (45 s) in any case.
//! 4. Idle tasks start behind normal ones, one a pulse and slot. Polls come in the same order: of demanded tasks and what
//!    they wait for, then of normal ones, then of idle ones; who is behind keeps a sixteenth of the time.
//! 5. [`Run::finished`] gives the [`Report`] when all have ended. Neither lane nor probe is left then.
//!
//! # Costs and limits
//!
//! - On a multi_thread runtime all governed tasks share one lane: at most one worker is busy with governed polls.
//!   CPU-bound boot work therefore takes up to as many times longer as there are workers. That is the price of
//!   workers that stay free for requests. Work that should use the other cores belongs in [`Task::blocking`].
//! - A poll that burns CPU for long holds its worker as long. Call [`yield_if_due`] in loops.
//! - What a task spawns with `tokio::spawn` escapes lane, slot and timeout; task-locals are not inherited.
//! - Blocking closures cannot be stopped from outside. With `panic = "abort"` no panic is survived, nor is a panic
//!   in a destructor that runs while another panic unwinds.
//! - tokio's timers have steps of 1 ms and round up: a pulse of 1 ms costs about 2 ms a start.
//! - Scheduling runs on tokio's clock and is deterministic under a paused one. The lengths of polls are real time;
//!   what runs on the blocking pool takes real time, of which a paused clock shows none.
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
//! | `retry` | `Task::retryable`: tried again as a policy of `afterboot-retry` says; that crate is re-exported as `retry` |
//! | `tower` | `Governor::in_flight_layer`: requests counted by a `tower` layer |
//! | `tracing-layer` | `Governor::tracing_layer`: the application's spans name what froze it |
//! | `serde` | `Serialize` and `Deserialize` for the report, `Report::to_json` and `Report::to_chrome_trace` |
//! | `page` | `Report::to_html`: the run as one self-contained page (includes `serde`) |

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
pub use model::error::{ConfigError, ReplayError, TaskError};
pub use model::event::Event;
pub use model::gate_rules::GateRules;
pub use model::gate_state::{GateState, OpenedBy, WaitReason};
pub use model::monkey::{Delivery, Monkey};
pub use model::outcome::{CancelReason, Outcome, SkipReason};
pub use model::profile::Profile;
pub use model::queue::Queue;
pub use report::{
    ApplicationOutcome, Cost, Hold, LongTask, MonkeyReport, Replay, ReplayedTask, Report, Segment, Starved,
    Stop, TaskReport, ThreadMissed,
};
pub use shell::context::yield_if_due;
pub use shell::governed::Predecessor;
pub use shell::observe::Observed;
pub use shell::output::TaskOutput;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
