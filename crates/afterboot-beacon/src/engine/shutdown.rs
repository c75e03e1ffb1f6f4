//! Flush, checkpoint and shutdown: everything is due at once.

use std::collections::VecDeque;
use std::mem;

use super::core::Core;
use super::time::{Moment, Now};
use crate::base::bounds::EXPIRY;
use crate::wire::Priority;

impl Core {
    /// Returns whether no batch is left in memory, apart from those that were read back and are safe in the spool.
    pub(crate) fn is_drained(&self) -> bool {
        let queues = self.queues.iter().chain([&self.for_disk]);
        self.out.is_empty()
            && self.open.iter().all(Option::is_none)
            && queues.into_iter().all(VecDeque::is_empty)
    }

    /// Everything is due, and the open batches are sealed: for a flush, a checkpoint and a shutdown. Returns the
    /// first ordinal that is not included.
    pub(crate) fn make_all_due(&mut self, now: Now) -> u64 {
        self.seal_all(now);
        for queue in &mut self.queues {
            for batch in queue {
                batch.due = batch.due.min(now.at);
            }
        }
        for batch in &mut self.for_disk {
            batch.due = batch.due.min(now.at);
        }
        self.wake_at = Moment::ZERO;
        self.next_ordinal
    }

    /// Returns whether a batch that was sealed before this ordinal is in memory.
    pub(crate) fn holds_before(&self, ordinal: u64) -> bool {
        let queued = self.queues.iter().filter_map(VecDeque::front).chain(self.for_disk.front());
        let first = queued.map(|batch| batch.ordinal).chain(self.out.iter().copied()).min();
        first.is_some_and(|first| first < ordinal)
    }

    /// Ends the stream: its last batch or, if none is left, one without events marks the end.
    pub(crate) fn end_stream(&mut self, now: Now) {
        if mem::replace(&mut self.ended, true) || !self.ledger.has_posted() {
            return;
        }
        self.make_all_due(now);
        let end = Some(self.next_seq);
        let last = self.queues.iter_mut().filter_map(VecDeque::back_mut).max_by_key(|batch| batch.ordinal);
        match last {
            Some(batch) if batch.head.stream == self.stream && self.gaps.is_empty() => {
                batch.head.end = end;
                batch.stale_body();
            }
            _ => {
                let mut marker = self.new_batch(Priority::Vital, now);
                // It concerns the stream and no user: a name of any length stays out of it.
                (marker.head.user, marker.head.session) = (None, None);
                marker.head.end = end;
                marker.due = now.at;
                marker.newest_at = now.wall;
                marker.expires = now.after(EXPIRY);
                marker.life = EXPIRY;
                self.number(&mut marker);
                self.bytes += marker.bytes();
                self.enqueue(marker);
            }
        }
    }
}
