//! What a test does to the machine under a beacon.

use std::sync::Arc;
#[cfg(feature = "spool")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicI64, Ordering};

/// The machine that a beacon runs on, as a test wants it: its wall clock is set, and it gives no thread. Cheap to clone; all
/// clones are one.
#[derive(Debug, Clone, Default)]
pub struct Machine(Arc<State>);

#[derive(Debug, Default)]
struct State {
    ahead: AtomicI64,
    #[cfg(feature = "spool")]
    has_no_threads: AtomicBool,
}

impl Machine {
    /// One that nothing was done to.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Sets the wall clock forward by so many milliseconds, or back. What it was set by before stays.
    pub fn set_wall_by(&self, milliseconds: i64) {
        let add = |ahead: i64| Some(ahead.saturating_add(milliseconds));
        let _ = self.0.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// From now on no new thread is to be had for the disk, or one is again. One that runs goes on.
    #[cfg(feature = "spool")]
    pub fn refuse_threads(&self, refuses: bool) {
        self.0.has_no_threads.store(refuses, Ordering::Relaxed);
    }

    #[cfg(feature = "spool")]
    pub(crate) fn refuses_threads(&self) -> bool {
        self.0.has_no_threads.load(Ordering::Relaxed)
    }

    /// What the wall clock says at this time of a clock that nobody sets.
    pub(crate) fn wall(&self, milliseconds: u64) -> u64 {
        milliseconds.saturating_add_signed(self.0.ahead.load(Ordering::Relaxed))
    }
}
