//! Which batches go to the spool, and when.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::Batch;
use super::core::Core;
use super::ledger::{DropReason, Place};
use super::limits::{LANES, SPOOL_AGE, lane};
use super::receipt::NotDurable;
use super::time::Now;

/// At most so many batches go to the disk in one transaction.
const PUT_AT_ONCE: usize = 50;

impl Core {
    /// Takes the batches to be written now: those with receipts, those that are ten seconds old while nothing can be sent, and
    /// the oldest where memory is half full. The driver owns them until [`spooled`](Core::spooled) or
    /// [`not_spooled`](Core::not_spooled).
    pub(crate) fn take_for_disk(&mut self, now: Now) -> Vec<Batch> {
        self.seal_for_disk(now);
        let mut taken: Vec<Batch> = Vec::new();
        while taken.len() < PUT_AT_ONCE {
            let Some(batch) = self.for_disk.pop_front().or_else(|| self.next_for_disk(now)) else { break };
            taken.push(batch);
        }
        self.out.extend(taken.iter().map(|batch| batch.ordinal));
        taken
    }

    /// So many batches of all that is in memory, for leaving: durable and vital ones first. Nothing is in flight then.
    ///
    /// The rest of one that was settled in part gets a row of its own instead of the old one, which would come back with
    /// all of its events, and so does each part of one that was split. The old row goes with the last of them.
    pub(crate) fn take_for_shutdown(&mut self, at_most: usize, now: Now) -> Vec<Batch> {
        self.seal_all(now);
        self.unload_replay();
        let mut taken = Vec::new();
        while taken.len() < at_most
            && let Some(batch) = self.next_for_shutdown()
        {
            if self.is_whole_on_disk(&batch) {
                self.unload(batch);
            } else {
                self.out.push(batch.ordinal);
                taken.push(batch);
            }
        }
        taken
    }

    /// Returns whether receipts are pending.
    #[cfg(feature = "spool")]
    pub(crate) fn has_pending_receipts(&self) -> bool {
        let mut open = self.open.iter().flatten();
        !self.for_disk.is_empty() || open.any(|open| !open.batch.receipts.is_empty())
    }

    fn next_for_shutdown(&mut self) -> Option<Batch> {
        let mut queues = [&mut self.for_disk].into_iter().chain(&mut self.queues).chain([&mut self.replay]);
        queues.find_map(VecDeque::pop_front)
    }

    /// Returns whether every event of it is in a row that still exists.
    pub(super) fn is_on_disk(&self, batch: &Batch) -> bool {
        !batch.rows.is_empty() && batch.rows.iter().all(|row| self.resident.get(row.as_ref()) == Some(&true))
    }

    pub(super) fn is_whole_on_disk(&self, batch: &Batch) -> bool {
        !batch.partial && self.is_on_disk(batch)
    }

    fn seal_for_disk(&mut self, now: Now) {
        let shut = !self.endpoint.is_open();
        for priority in LANES {
            let Some(open) = &self.open[lane(priority)] else { continue };
            let old = shut && self.has_spool && open.batch.since + SPOOL_AGE <= now.at;
            if !open.batch.receipts.is_empty() || old {
                self.seal(priority);
            }
        }
    }

    fn next_for_disk(&mut self, now: Now) -> Option<Batch> {
        if !self.has_spool {
            return None;
        }
        let shut = !self.endpoint.is_open();
        // Basic first where room is short: a vital event is the last to wait for a replay.
        for priority in LANES.into_iter().rev() {
            let room = self.wants_disk_for_room();
            let queue = lane(priority);
            while let Some(front) = self.queues[queue].front() {
                if !(room || shut && front.since + SPOOL_AGE <= now.at) {
                    break;
                }
                if self.is_on_disk(front) {
                    if front.partial {
                        break;
                    }
                    let batch = self.queues[queue].pop_front()?;
                    self.unload(batch);
                    self.schedule_replay(now);
                    continue;
                }
                return self.queues[queue].pop_front();
            }
        }
        None
    }

    /// Half of what memory may hold is in use, and something of it could be on disk.
    pub(crate) fn wants_disk_for_room(&self) -> bool {
        self.has_spool
            && (self.ledger.in_memory() as usize > self.limits.events / 2
                || self.bytes > self.limits.bytes / 2)
            && self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// A batch leaves memory and stays on disk.
    pub(super) fn unload(&mut self, batch: Batch) {
        self.bytes -= batch.bytes();
        self.ledger.shift(Place::Queued, Place::Spooled, batch.events());
        for row in batch.rows {
            // Another part of it may still be in memory.
            if let Some(row) = Arc::into_inner(row) {
                self.resident.remove(&row);
            }
        }
    }

    /// Makes room without loss: something in memory is on disk as well.
    pub(crate) fn unload_one(&mut self, now: Now) -> bool {
        let whole = self.replay.back().is_some_and(|batch| self.is_whole_on_disk(batch));
        if whole && let Some(batch) = self.replay.pop_back() {
            self.unload(batch);
            return true;
        }
        for priority in LANES.into_iter().rev() {
            let queue = lane(priority);
            let whole = self.queues[queue].iter().position(|batch| self.is_whole_on_disk(batch));
            if let Some(batch) = whole.and_then(|at| self.queues[queue].remove(at)) {
                self.unload(batch);
                self.schedule_replay(now);
                return true;
            }
        }
        false
    }

    /// There is no spool: receipts fail.
    pub(crate) fn spool_is_off(&mut self, batches: Vec<Batch>) {
        for mut batch in batches {
            self.take_back(&batch);
            for receipt in Core::receipts_of(&mut batch) {
                self.replies.push(receipt.defer(Err(NotDurable::NoSpool)));
            }
            self.enqueue(batch);
        }
    }

    pub(super) fn forget_rows(&mut self, batch: &mut Batch) {
        for row in batch.rows.drain(..) {
            // Not one that another part of the batch still needs. But one that is believed to be gone: to delete it again
            // costs nothing, to find it again would be wrong.
            if let Some(row) = Arc::into_inner(row)
                && self.resident.remove(&row).is_some()
            {
                self.settled_rows.push(row);
            }
        }
    }

    /// What could not be saved when time was up: these, and what is still here.
    pub(crate) fn drop_unsaved(&mut self, mut batches: Vec<Batch>, now: Now) {
        batches.extend(self.take_for_shutdown(usize::MAX, now));
        for batch in batches {
            self.take_back(&batch);
            if self.is_on_disk(&batch) {
                self.unload(batch);
            } else {
                self.drop_batch(batch, Place::Queued, DropReason::Shutdown);
            }
        }
    }
}
