//! The handle that an operation receives for one attempt: its number, and how it reports progress.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// One attempt of the operation. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Attempt {
    number: u32,
    progress: Progress,
}

impl Attempt {
    pub(crate) fn new(number: u32, progress: Progress) -> Attempt {
        Attempt { number, progress }
    }

    /// Returns the number of this attempt, counted from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Reports progress: a chunk was stored, a page was read. If this attempt fails afterwards, the schedule restarts at
    /// its first delay. See [`Retry::on_progress`](crate::Retry::on_progress).
    pub fn on_progress(&self) {
        let now = self.progress.clock.now();
        *self.progress.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}

/// The time of the last progress, written by attempts and read by the loop between them.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    clock: Clock,
    at: Arc<Mutex<Option<Duration>>>,
}

impl Progress {
    pub(crate) fn new(clock: Clock) -> Progress {
        Progress { clock, at: Arc::default() }
    }

    pub(crate) fn take(&self) -> Option<Duration> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
