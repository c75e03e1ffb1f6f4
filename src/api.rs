//! The public API, in the order in which a user meets it.

pub(crate) mod builder;
pub(crate) mod governor;
pub(crate) mod plan;
pub(crate) mod task;
pub(crate) mod task_list;
#[cfg(feature = "retry")]
mod retryable;
pub(crate) mod handle;
pub(crate) mod local;
pub(crate) mod quiet;
pub(crate) mod guard;
#[cfg(feature = "tower")]
pub(crate) mod tower;
#[cfg(feature = "tracing-layer")]
pub(crate) mod layer;
pub(crate) mod events;
pub(crate) mod snapshot;
pub(crate) mod run;
mod reporting;
