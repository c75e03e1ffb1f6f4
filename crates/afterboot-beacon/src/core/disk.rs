//! What goes to the spool and comes back from it.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use super::{Batch, Core, LANES, Moment, Now, SPOOL_AGE, lane};
use crate::ledger::{DropReason, Place};
use crate::receipt::NotDurable;
use crate::wire::{Gap, Priority, StreamId};

/// A row that the spool gave up.
#[derive(Debug, Clone)]
pub(crate) struct Evicted {
    pub(crate) row: i64,
    pub(crate) stream: StreamId,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) events: u64,
    pub(crate) reason: DropReason,
}

/// A batch that was read back.
#[derive(Debug)]
pub(crate) struct Unlisted {
    pub(crate) row: i64,
    pub(crate) batch: Batch,
}

/// At most so many batches go to the disk in one transaction.
const PUT_AT_ONCE: usize = 50;

impl Core {
    /// Batches to be written now. They are the driver's until [`spooled`](Core::spooled) or
    /// [`not_spooled`](Core::not_spooled).
    pub(crate) fn take_for_disk(&mut self, now: Now) -> Vec<Batch> {
        self.seal_for_disk(now);
        let mut taken: Vec<Batch> = Vec::new();
        while taken.len() < PUT_AT_ONCE {
            let Some(batch) = self.for_disk.pop_front().or_else(|| self.next_for_disk(now)) else { break };
            taken.push(batch);
        }
        for batch in &taken {
            self.out.insert(batch.rank());
        }
        taken
    }

    /// So many batches of all that is in memory, for leaving: durable and vital ones first. Nothing is in flight then. One
    /// of whose row a part is settled gets a row of its own: whoever reads the old one would count that part again.
    pub(crate) fn take_to_leave(&mut self, at_most: usize, now: Now) -> Vec<Batch> {
        self.seal_all(now);
        self.unload_replay();
        let mut taken = Vec::new();
        while taken.len() < at_most
            && let Some(batch) = self.next_to_leave()
        {
            if self.is_whole_on_disk(&batch) {
                self.unload(batch);
            } else {
                self.out.insert(batch.rank());
                taken.push(batch);
            }
        }
        taken
    }

    fn next_to_leave(&mut self) -> Option<Batch> {
        let mut queues = [&mut self.for_disk].into_iter().chain(&mut self.queues).chain([&mut self.replay]);
        queues.find_map(VecDeque::pop_front)
    }

    /// Is every event of it in a row that is still there?
    fn is_on_disk(&self, batch: &Batch) -> bool {
        !batch.rows.is_empty() && batch.rows.iter().all(|row| self.resident.get(row.as_ref()) == Some(&true))
    }

    fn is_whole_on_disk(&self, batch: &Batch) -> bool {
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
    fn unload(&mut self, batch: Batch) {
        self.bytes -= batch.bytes();
        self.ledger.shift(Place::Queued, Place::Spooled, batch.events());
        for row in &batch.rows {
            self.resident.remove(row.as_ref());
        }
    }

    /// Makes room without loss: something in memory is on disk as well.
    pub(crate) fn unload_one(&mut self) -> bool {
        let whole = self.replay.back().is_some_and(|batch| self.is_whole_on_disk(batch));
        if whole && let Some(batch) = self.replay.pop_back() {
            self.unload(batch);
            return true;
        }
        let basic = lane(Priority::Basic);
        let whole = self.queues[basic].front().is_some_and(|batch| self.is_whole_on_disk(batch));
        if whole && let Some(batch) = self.queues[basic].pop_front() {
            self.unload(batch);
            return true;
        }
        false
    }

    /// The replay stops: what it has read goes back to lying on disk.
    pub(crate) fn unload_replay(&mut self) {
        let replay = mem::take(&mut self.replay);
        let mut kept = VecDeque::new();
        for batch in replay {
            if self.is_whole_on_disk(&batch) {
                self.unload(batch);
            } else {
                kept.push_back(batch);
            }
        }
        self.replay = kept;
    }

    /// These batches are in these rows now. One that somebody waits for stays in memory as well, to be sent in its time.
    pub(crate) fn spooled(&mut self, batches: Vec<(Batch, i64)>, now: Now) {
        for (mut batch, row) in batches {
            self.came_back(&batch);
            // It was in memory with another part of its old rows: this row alone is whole.
            self.forget_rows(&mut batch);
            batch.rows = vec![Arc::new(row)];
            batch.partial = false;
            let receipts = Core::receipts_of(&mut batch);
            if receipts.is_empty() || !self.endpoint.is_open() {
                self.bytes -= batch.bytes();
                self.ledger.shift(Place::Queued, Place::Spooled, batch.events());
            } else {
                self.resident.insert(row, true);
                self.enqueue(batch);
            }
            for receipt in receipts {
                receipt.written();
            }
        }
        if self.endpoint.is_open() && self.ledger.spooled() > 0 {
            self.schedule_replay(now);
        }
    }

    /// The disk did not take them: memory only.
    pub(crate) fn not_spooled(&mut self, batches: Vec<Batch>, why: &str) {
        for mut batch in batches {
            self.came_back(&batch);
            for receipt in Core::receipts_of(&mut batch) {
                receipt.failed(why);
            }
            self.enqueue(batch);
        }
    }

    /// There is no disk: who waits for it hears so.
    #[cfg_attr(feature = "spool", expect(dead_code, reason = "only a build without a spool has none at all"))]
    pub(crate) fn without_disk(&mut self, batches: Vec<Batch>) {
        for mut batch in batches {
            self.came_back(&batch);
            for receipt in Core::receipts_of(&mut batch) {
                receipt.say(Err(NotDurable::NoSpool));
            }
            self.enqueue(batch);
        }
    }

    /// Rows that may be deleted.
    pub(crate) fn take_settled_rows(&mut self) -> Vec<i64> {
        mem::take(&mut self.settled_rows)
    }

    pub(super) fn forget_rows(&mut self, batch: &mut Batch) {
        for row in batch.rows.drain(..) {
            // Another part of the batch still needs it.
            if let Some(row) = Arc::into_inner(row)
                && self.resident.remove(&row) != Some(false)
            {
                self.settled_rows.push(row);
            }
        }
    }

    /// The spool gave rows up for room, for their age or because a user asked for it.
    pub(crate) fn evicted(&mut self, rows: &[Evicted]) {
        for evicted in rows {
            if let Some(alive) = self.resident.get_mut(&evicted.row) {
                // In memory as well: only the copy is gone.
                *alive = false;
                continue;
            }
            self.ledger.shift(Place::Spooled, Place::Dropped(evicted.reason), evicted.events);
            if evicted.events > 0 {
                self.gaps.declare([Gap {
                    stream: evicted.stream,
                    first: evicted.first,
                    last: evicted.last,
                    why: evicted.reason.as_str().to_owned(),
                }]);
            }
        }
    }

    /// A damaged file was set aside, with this many events in it.
    pub(crate) fn lost_on_disk(&mut self, events: u64) {
        let lost = events.min(self.ledger.spooled());
        self.ledger.shift(Place::Spooled, Place::Dropped(DropReason::Corrupt), lost);
        // None of its rows is there any more.
        for alive in self.resident.values_mut() {
            *alive = false;
        }
    }

    /// Another process's rows are in our spool now.
    pub(crate) fn adopted(&mut self, events: u64) {
        self.ledger.adopted(Place::Spooled, events);
    }

    /// Gaps of streams that were never in this ledger.
    pub(crate) fn declare_elsewhere(&mut self, gaps: Vec<Gap>) {
        self.gaps.declare(gaps);
    }

    /// Dead letters are normal rows again.
    pub(crate) fn dead_replayed(&mut self, own: u64, others: u64, now: Now) {
        self.ledger.shift(Place::Dead, Place::Spooled, own);
        self.adopted(others);
        self.replay_at = Some(now.at);
        self.wake_at = Moment::ZERO;
    }

    /// Rows whose bodies nobody can read.
    pub(crate) fn unreadable(&mut self, rows: &[(i64, u64)]) {
        for (row, events) in rows {
            self.ledger.shift(Place::Spooled, Place::Dropped(DropReason::Corrupt), *events);
            self.settled_rows.push(*row);
        }
    }

    /// Is it time to read from the spool?
    pub(crate) fn wants_replay(&self, now: Now) -> bool {
        self.has_spool
            && self.endpoint.is_open()
            && self.replay.is_empty()
            && self.replay_at.is_some_and(|at| at <= now.at)
    }

    /// Rows in memory, which a listing leaves out.
    pub(crate) fn resident_rows(&self) -> Vec<i64> {
        self.resident.keys().copied().chain(self.settled_rows.iter().copied()).collect()
    }

    /// What was read. Nothing: the replay is over until there is a reason for another.
    pub(crate) fn listed(&mut self, batches: Vec<Unlisted>, now: Now) {
        if batches.is_empty() {
            self.replay_at = None;
            return;
        }
        for Unlisted { row, mut batch } in batches {
            batch.replayed = true;
            batch.rows = vec![Arc::new(row)];
            batch.ordinal = self.next_ordinal;
            self.next_ordinal += 1;
            batch.due = now.at;
            self.resident.insert(row, true);
            self.bytes += batch.bytes();
            self.ledger.shift(Place::Spooled, Place::Queued, batch.events());
            self.enqueue(batch);
        }
        if !self.endpoint.is_open() {
            self.unload_replay();
        }
    }

    /// Everything of this user in memory goes: what is sealed is declared.
    pub(crate) fn erase_user(&mut self, user: &str, now: Now) -> u64 {
        if self.user.as_deref() == Some(user) {
            self.seal_all(now);
        }
        let of_user = |batch: &Batch| batch.head.user.as_deref() == Some(user);
        let mut gone = Vec::new();
        let queues = self.queues.iter_mut().chain([&mut self.replay, &mut self.for_disk]);
        for queue in queues {
            let (erased, kept) = mem::take(queue).into_iter().partition(of_user);
            *queue = kept;
            let erased: VecDeque<Batch> = erased;
            gone.extend(erased);
        }
        let mut erased = 0;
        for batch in gone {
            erased += batch.events();
            self.give_up(batch, Place::Queued, DropReason::Erased);
        }
        self.dead.retain(|dead| dead.batch.head.user.as_deref() != Some(user));
        erased
    }

    /// What could not be saved when time was up: these, and what is still here.
    pub(crate) fn abandon(&mut self, mut batches: Vec<Batch>, now: Now) {
        batches.extend(self.take_to_leave(usize::MAX, now));
        for batch in batches {
            self.came_back(&batch);
            if self.is_on_disk(&batch) {
                self.unload(batch);
            } else {
                self.give_up(batch, Place::Queued, DropReason::Shutdown);
            }
        }
    }
}
