//! What knows nothing of tasks: clocks, wakers, panics, threads, text.

pub(crate) mod catch;
pub(crate) mod chunks;
pub(crate) mod clock;
#[cfg(test)]
pub(crate) mod in_time;
pub(crate) mod sync;
pub(crate) mod text;
pub(crate) mod threads;
pub(crate) mod tick;
pub(crate) mod waiters;
