//! What polls, locks and reads clocks: it tells the core what happened and carries out what follows.

pub(crate) mod context;
pub(crate) mod output;
pub(crate) mod governed;
pub(crate) mod attempt;
pub(crate) mod blocking;
#[cfg(feature = "retry")]
pub(crate) mod retryable;
pub(crate) mod cell;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod ready;
pub(crate) mod lane;
pub(crate) mod watchdog;
pub(crate) mod lender;
pub(crate) mod leave;
pub(crate) mod start;
pub(crate) mod signals;
pub(crate) mod signal_tasks;
pub(crate) mod event_ring;
pub(crate) mod observe;
pub(crate) mod probe;
pub(crate) mod workers;
pub(crate) mod witness;
pub(crate) mod sampler;
