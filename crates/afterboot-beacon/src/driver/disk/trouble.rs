//! A disk that does not work, and when it is tried again.

use std::time::Duration;

use crate::engine::{Moment, Now};

/// Within this time after a failure a request for the disk is refused; later, the disk is tried.
const REFUSED_FOR: Duration = Duration::from_millis(500);

/// A disk that nothing is wanted of is tried again after a second, then 2, 4 … 30 s.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// The disk failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    refuses_until: Moment,
    retry_at: Moment,
}

/// What a disk in trouble is asked for at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    Refused,
    /// What is wanted, if something is.
    IfWanted,
    /// Whatever there is, or else a probe.
    Due,
}

impl Trouble {
    pub(super) fn attempt(&self, now: Now) -> Attempt {
        if now.at >= self.retry_at {
            Attempt::Due
        } else if now.at >= self.refuses_until {
            Attempt::IfWanted
        } else {
            Attempt::Refused
        }
    }

    pub(super) fn retry_at(&self) -> Moment {
        self.retry_at
    }
}

/// How long the next trouble lasts before the disk is tried again.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) fn new() -> Backoff {
        Backoff(FIRST_RETRY)
    }

    pub(super) fn failed(&mut self, now: Now) -> Trouble {
        let (refuses_until, retry_at) = (now.at.saturating_add(REFUSED_FOR), now.at.saturating_add(self.0));
        self.grow();
        Trouble { refuses_until, retry_at }
    }

    /// A call that hangs: its thread says when it is back, and until then the disk is not tried at all.
    pub(super) fn hung(&mut self) -> Trouble {
        self.grow();
        Trouble { refuses_until: Moment::MAX, retry_at: Moment::MAX }
    }

    fn grow(&mut self) {
        self.0 = (self.0 * 2).min(LAST_RETRY);
    }
}
