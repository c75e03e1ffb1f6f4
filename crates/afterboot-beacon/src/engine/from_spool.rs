//! What results of the spool change, and batches that are read back.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::core::Core;
use super::endpoint::Permit;
use super::exchange::{EvictedRow, ReplayedRow};
use super::ledger::{DropReason, Place};
use super::receipt::NotDurable;
use super::time::{Moment, Now};
use crate::base::bounds::MAX_LETTER;
use crate::wire::Gap;

/// What was in the way is gone by then, or hangs.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Core {
    /// These batches are in these rows now. One with receipts stays in memory as well, to be sent in its time.
    pub(crate) fn spooled(&mut self, batches: Vec<(Batch, i64)>, now: Now) {
        for (mut batch, row) in batches {
            self.take_back(&batch);
            // Its old rows were evicted, at least in part: this one is whole. It may be one of them, unchanged.
            self.forget_rows(&mut batch);
            self.settled_rows.retain(|settled| *settled != row);
            batch.rows = vec![Arc::new(row)];
            batch.partial = false;
            let receipts = Core::receipts_of(&mut batch);
            if receipts.is_empty() || !self.endpoint.is_open() || self.is_erased(&batch) {
                self.bytes -= batch.bytes();
                self.ledger.shift(Place::Queued, Place::Spooled, batch.events());
            } else {
                self.resident.insert(row, true);
                self.enqueue(batch);
            }
            for receipt in receipts {
                self.replies.push(receipt.defer(Ok(())));
            }
        }
        if self.ledger.spooled() > 0 {
            self.schedule_replay(now);
        }
    }

    /// The disk did not take them: memory only.
    pub(crate) fn not_spooled(&mut self, batches: Vec<Batch>, why: &str) {
        for mut batch in batches {
            self.take_back(&batch);
            for receipt in Core::receipts_of(&mut batch) {
                self.replies.push(receipt.defer(Err(NotDurable::Disk(why.to_owned()))));
            }
            if self.is_erased(&batch) {
                self.drop_batch(batch, Place::Queued, DropReason::Erased);
            } else {
                self.enqueue(batch);
            }
        }
    }

    /// Rows that may be deleted.
    pub(crate) fn take_settled_rows(&mut self) -> Vec<i64> {
        mem::take(&mut self.settled_rows)
    }

    /// The spool gave rows up for room, for their age or because a user asked for it.
    pub(crate) fn evicted(&mut self, rows: &[EvictedRow]) {
        for evicted in rows {
            // It was settled while the spool was at work, and waits to be deleted: nothing of it is spooled.
            if self.settled_rows.contains(&evicted.row) {
                continue;
            }
            if let Some(alive) = self.resident.get_mut(&evicted.row) {
                // In memory as well: only the copy is gone.
                *alive = false;
                continue;
            }
            self.ledger.shift(Place::Spooled, Place::Dropped(evicted.reason), evicted.events);
            self.emit_dropped(evicted.reason, evicted.events);
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

    /// Rows, or a whole file, could not be read, with this many events in them.
    pub(crate) fn lost_on_disk(&mut self, events: u64, numbers: Vec<Gap>) {
        let lost = events.min(self.ledger.spooled());
        self.ledger.shift(Place::Spooled, Place::Dropped(DropReason::Corrupt), lost);
        self.emit_dropped(DropReason::Corrupt, lost);
        self.gaps.declare(numbers);
    }

    /// None of its rows is there any more.
    pub(crate) fn forget_file(&mut self) {
        for alive in self.resident.values_mut() {
            *alive = false;
        }
    }

    /// The disk did not delete them. It is asked again.
    pub(crate) fn return_settled_rows(&mut self, rows: Vec<i64>) {
        self.settled_rows.extend(rows);
    }

    /// A call that would delete these rows takes too long: they may be there or not.
    pub(crate) fn doubt_rows(&mut self, rows: impl Iterator<Item = i64>) {
        for row in rows {
            if let Some(alive) = self.resident.get_mut(&row) {
                *alive = false;
            }
        }
    }

    /// Batches of an abandoned call were written to these rows after all, and are in memory.
    pub(crate) fn note_late_rows(&mut self, rows: impl Iterator<Item = i64> + Clone) {
        self.doubt_rows(rows.clone());
        self.settled_rows.extend(rows);
    }

    /// The spool has gone with its thread, and there will be another one. The largest row number that is known of the old one, which the
    /// new one must not give again.
    pub(crate) fn forget_spool(&mut self) -> i64 {
        let last = self.resident.keys().chain(&self.settled_rows).max().copied();
        self.forget_file();
        self.settled_rows.clear();
        last.unwrap_or(0)
    }

    /// Another process's rows are in our spool now.
    pub(crate) fn adopted(&mut self, events: u64) {
        self.ledger.adopted(Place::Spooled, events);
    }

    /// Gaps of streams that were never in this ledger.
    pub(crate) fn declare(&mut self, gaps: impl IntoIterator<Item = Gap>) {
        self.gaps.declare(gaps);
    }

    /// Dead letters are normal rows again.
    pub(crate) fn dead_replayed(&mut self, own: u64, others: u64, now: Now) {
        self.ledger.shift(Place::Dead, Place::Spooled, own);
        self.adopted(others);
        self.replay_at = Some(now.at);
        self.wake_at = Moment::ZERO;
    }

    /// Rows whose bodies cannot be read.
    pub(crate) fn drop_unreadable_rows(&mut self, rows: &[EvictedRow]) {
        self.evicted(rows);
        self.settled_rows.extend(rows.iter().map(|damaged| damaged.row));
    }

    /// Returns whether it is time to read from the spool.
    pub(crate) fn replay_is_due(&self, now: Now) -> bool {
        self.may_replay()
            && !matches!(self.endpoint.permit(now.at), Permit::No(_))
            && self.replay_at.is_some_and(|at| at <= now.at)
    }

    /// The spool is looked through from now on, for this user. One whose name fits into no row has none.
    pub(crate) fn replay_user(&mut self) -> Option<String> {
        self.replay_again = false;
        self.user.clone().filter(|user| user.len() <= MAX_LETTER)
    }

    /// The spools of other processes could not be read because another thread was at one: mostly for a moment.
    pub(crate) fn look_again(&mut self, now: Now) {
        let soon = now.at.saturating_add(LOOK_AGAIN);
        if self.has_spool {
            self.replay_at = Some(self.replay_at.map_or(soon, |before| before.min(soon)));
        }
    }

    /// Rows in memory, which a listing leaves out.
    pub(crate) fn resident_rows(&self) -> HashSet<i64> {
        self.resident.keys().copied().chain(self.settled_rows.iter().copied()).collect()
    }

    /// What was read. Nothing: the replay is over until there is a reason for another.
    pub(crate) fn read_back(&mut self, batches: Vec<ReplayedRow>, now: Now) {
        if batches.is_empty() {
            self.replay_at = self.replay_at.filter(|_| self.replay_again);
            return;
        }
        for ReplayedRow { row, mut batch } in batches {
            // It was read for a user who has gone meanwhile.
            if !self.may_be_replayed(&batch) {
                continue;
            }
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
        if !self.endpoint.is_open() && self.endpoint.permit(now.at) != Permit::Probe {
            self.unload_replay();
        }
    }
}
