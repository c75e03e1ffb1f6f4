//! The scope of the report, and how many of its tasks have not started or ended.

use std::collections::VecDeque;

use crate::base::clock::Stamp;
use crate::model::id::Id;

use super::table::{Record, Start};

/// Counters over the tasks in scope.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(super) sealed: Option<Stamp>,
    /// Not started, and neither the monkey's victim nor after it.
    pub(super) unstarted: usize,
    /// Not ended, and neither waiting for the end of the run nor after one that does.
    pub(super) unfinished: usize,
    /// Declared after `report()` by nobody in scope.
    late: u64,
    /// Ended and outside the scope: the last of them are kept.
    late_ended: VecDeque<Id>,
    /// Ended in a scope that nobody has sealed: the last of them are kept.
    pub(super) ended: VecDeque<Id>,
    /// Records that have been forgotten.
    forgotten: u64,
}

/// How many ended tasks outside the scope are kept.
const LATE_KEPT: usize = 1_000;
/// How many ended tasks are kept while nobody has asked for a report.
const ENDED_KEPT: usize = 10_000;

impl Scope {
    /// Whether a task that is declared now is in scope: before `report()` all are, afterwards those that a
    /// task in scope declares.
    pub(super) fn takes(&self, declared_in: Option<&Record>) -> bool {
        self.sealed.is_none() || declared_in.is_some_and(|record| record.in_scope)
    }

    pub(super) fn declared(&mut self, record: &Record) {
        if !record.in_scope {
            self.late += 1;
            return;
        }
        if !record.awaits_the_end {
            self.unfinished += 1;
        }
        if record.start == Start::Awaited {
            self.unstarted += 1;
        }
    }

    /// True where somebody who waits should look.
    pub(super) fn started(&mut self, record: &mut Record) -> bool {
        if record.start == Start::Awaited {
            record.start = Start::Come;
            self.unstarted -= usize::from(record.in_scope);
        }
        self.unstarted == 0
    }

    /// True where somebody who waits should look.
    pub(super) fn ended(&mut self, record: &Record) -> bool {
        if !record.in_scope {
            return false;
        }
        if record.start == Start::Awaited {
            self.unstarted -= 1;
        }
        if !record.awaits_the_end {
            self.unfinished -= 1;
        }
        self.unstarted == 0 || self.unfinished == 0
    }

    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Takes an ended task into its ring and gives what falls out.
    pub(super) fn retire(&mut self, id: Id, in_scope: bool) -> Option<Id> {
        let (ring, kept) = match (in_scope, self.sealed) {
            (false, _) => (&mut self.late_ended, LATE_KEPT),
            (true, None) => (&mut self.ended, ENDED_KEPT),
            (true, Some(_)) => return None,
        };
        ring.push_back(id);
        let out = if ring.len() > kept { ring.pop_front() } else { None };
        self.forgotten += u64::from(out.is_some());
        out
    }
}
