//! Faults of the machine, injected by a test.

use std::sync::Arc;
#[cfg(feature = "spool")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicI64, Ordering};

/// Injects faults of the machine that a beacon runs on: a wall clock that is set, threads that cannot be spawned. Clones share
/// the faults.
#[derive(Debug, Clone, Default)]
pub struct Machine(Arc<State>);

#[derive(Debug, Default)]
struct State {
    ahead: AtomicI64,
    #[cfg(feature = "spool")]
    has_no_threads: AtomicBool,
}

impl Machine {
    /// Returns a machine without faults.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Sets the wall clock forward by this many milliseconds, or back. Repeated calls add up.
    pub fn set_wall_by(&self, milliseconds: i64) {
        let add = |ahead: i64| Some(ahead.saturating_add(milliseconds));
        let _ = self.0.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Makes spawning a thread for the disk fail, or succeed again. A running thread is not affected.
    #[cfg(feature = "spool")]
    pub fn refuse_threads(&self, refuses: bool) {
        self.0.has_no_threads.store(refuses, Ordering::Relaxed);
    }

    #[cfg(feature = "spool")]
    pub(crate) fn refuses_threads(&self) -> bool {
        self.0.has_no_threads.load(Ordering::Relaxed)
    }

    /// Returns the wall time, given that of a clock that is not set.
    pub(crate) fn wall(&self, milliseconds: u64) -> u64 {
        milliseconds.saturating_add_signed(self.0.ahead.load(Ordering::Relaxed))
    }
}
