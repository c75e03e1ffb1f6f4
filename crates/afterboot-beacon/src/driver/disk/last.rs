//! What is saved when there is no runtime any more.

use std::time::Duration;

use super::calls::{Answer, Call};
use super::{InHand, rows};
use crate::driver::disk::{Disk, TIME_LIMIT};
use crate::engine::{Batch, Now};
use crate::spool::RowId;
use crate::state::shared::Shared;

/// A runtime that goes away waits this long for a call that is under way.
const LAST_MOMENT: Duration = Duration::from_millis(200);

impl Disk {
    /// Without a runtime: what the disk takes in this moment. The rest comes back.
    pub(in crate::driver) fn save_now(
        &mut self,
        shared: &Shared,
        mut batches: Vec<Batch>,
        now: Now,
    ) -> Vec<Batch> {
        if let Some(busy) = self.busy.take() {
            if let InHand::Batches(in_hand) = busy.in_hand {
                batches.extend(in_hand);
            }
            // Rows that it writes are found again by their numbers.
            if busy.done.wait_blocking(LAST_MOMENT).is_none() {
                return batches;
            }
        }
        let Some(worker) = self.worker.take().filter(|_| self.is_open) else { return batches };
        let (mut dead, gone) = {
            let mut core = shared.core();
            (core.take_dead(), core.take_settled_rows())
        };
        let dead = rows::letters_of(&mut shared.core(), &mut dead, now);
        let mut gone: Vec<_> = gone.into_iter().map(RowId).collect();
        gone.extend(rows::replaced(&batches));
        let rows = batches.iter_mut().map(rows::row_of).collect();
        let asked = worker.ask(Call::Last { gone, rows, dead }, self.options.durability, rows::stamp(now));
        match asked.wait_blocking(TIME_LIMIT).map(|done| done.answer) {
            Some(Answer::Written(Ok(put))) => {
                rows::spooled(&mut shared.core(), batches, &put, now);
                Vec::new()
            }
            _ => batches,
        }
    }
}
