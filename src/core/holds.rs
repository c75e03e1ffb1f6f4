//! The current hold and the recorded ones.

use std::collections::VecDeque;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::model::gate_state::WaitReason;
use crate::model::name::Name;

/// An idle start that is due and held.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    pub(super) since: Stamp,
    pub(super) why: WaitReason,
}

/// An idle start that was held.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) task: Name,
    pub(crate) number: u64,
    pub(crate) since: Stamp,
    pub(crate) until: Stamp,
    pub(crate) why: WaitReason,
}

/// How many holds are kept for the report.
const KEPT: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Holds {
    /// The idle start that is due and held because the application is busy again.
    pub(super) now: Option<Holding>,
    /// No start is held for longer than this.
    pub(super) longest: Duration,
    kept: VecDeque<Held>,
    forgotten: u64,
}

impl Holds {
    pub(super) fn new(longest: Duration) -> Holds {
        Holds { now: None, longest, kept: VecDeque::new(), forgotten: 0 }
    }

    /// The start that was held, if one was, has come: this task's.
    pub(super) fn over(&mut self, task: Name, number: u64, now: Stamp) {
        let Some(Holding { since, why }) = self.now.take() else { return };
        if self.kept.len() == KEPT {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back(Held { task, number, since, until: now, why });
    }

    /// Those that are over; the last 1,000.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.kept.iter()
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
