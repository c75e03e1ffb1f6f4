//! What is saved when there is no runtime any more.

use std::time::Duration;

use super::call::{Call, CallResult};
use super::payload::Payload;
use super::rows;
use super::state::{Disk, TIME_LIMIT};
use crate::engine::{Batch, Now};
use crate::spool::RowId;

/// A runtime that goes away waits this long for a call that is under way.
const LAST_MOMENT: Duration = Duration::from_millis(200);

impl Disk {
    /// Writes what the disk takes now, without a runtime. Returns the rest.
    pub(in crate::driver) fn save_now(&mut self, mut batches: Vec<Batch>, now: Now) -> Vec<Batch> {
        if let Some(pending) = self.pending.take() {
            if let Payload::Batches(unwritten) = pending.payload {
                batches.extend(unwritten);
            }
            // Rows that it writes are found again by their numbers.
            if pending.done.wait_blocking(LAST_MOMENT).is_none() {
                return batches;
            }
        }
        let Some(worker) = self.worker.take().filter(|_| self.is_open) else { return batches };
        let (mut dead, gone) = {
            let mut core = self.shared.core();
            (core.take_dead(), core.take_settled_rows())
        };
        let dead = rows::letters_of(&mut self.shared.core(), &mut dead, now);
        let mut gone: Vec<_> = gone.into_iter().map(RowId).collect();
        gone.extend(rows::replaced(&batches));
        let rows = batches.iter_mut().map(rows::row_of).collect();
        let done = worker.call(Call::Last { gone, rows, dead }, self.options.durability, rows::stamp(now));
        match done.wait_blocking(TIME_LIMIT).map(|done| done.result) {
            Some(CallResult::Written(Ok(put))) => {
                rows::spooled(&mut self.shared.core(), batches, &put, now);
                Vec::new()
            }
            _ => batches,
        }
    }
}
