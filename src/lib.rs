//! afterboot
#![doc(html_no_source)]

mod clock;
mod catch;
mod error;
mod outcome;

// In the order in which a task travels.
mod task;
mod profile;
mod plan;
mod table;
mod queue;
mod gate;
mod quiet;
mod scheduler;
mod shared;
mod ready;
mod tick;
mod lane;
mod context;
mod attempt;
mod cell;
mod governor;
mod handle;
mod monkey;
mod run;
mod report;

pub use context::yield_if_due;
pub use error::{ConfigError, TaskError};
pub use gate::{GateState, HeldBy, OpenedBy};
pub use governor::{Builder, Governor};
pub use handle::{TaskHandle, TaskRef};
pub use monkey::{Delivery, Monkey};
pub use outcome::{CancelReason, Outcome, SkipReason};
pub use profile::Profile;
pub use queue::Queue;
pub use quiet::in_flight::InFlightGuard;
pub use report::{LongTask, MonkeyReport, Report, TaskReport};
pub use run::Run;
pub use task::{Task, TaskOutput};
