//! What one attempt is told, and what it may tell: that the work moves on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// One run of the operation. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Attempt {
    number: u32,
    progress: Progress,
}

impl Attempt {
    pub(crate) fn new(number: u32, progress: Progress) -> Attempt {
        Attempt { number, progress }
    }

    /// Which run this is, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The work moved on: a chunk was stored, a page was read. If this attempt fails later, the first delay is waited
    /// again. See [`Retry::on_progress`](crate::Retry::on_progress).
    pub fn on_progress(&self) {
        let now = self.progress.clock.now();
        *self.progress.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}

/// When the work last moved on, written by attempts and read by the loop between them.
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
