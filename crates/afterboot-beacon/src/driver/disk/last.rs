//! What is saved when there is no runtime any more.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use super::{Disk, InHand, rows};
use crate::core::{Batch, Now};
use crate::shared::Shared;
use crate::spool::{Change, RowId, Spool};

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
        if let Some((call, in_hand, _)) = self.busy.take() {
            call.abort();
            if let InHand::Batches(in_hand) = in_hand {
                batches.extend(in_hand);
            }
        }
        let Some(spool) = self.spool.take() else { return batches };
        // A call that is under way holds the lock. Rows that it writes are found again by their numbers.
        let Some(mut locked) = lock_within(&spool, LAST_MOMENT) else { return batches };
        let (mut dead, gone) = {
            let mut core = shared.core();
            (core.take_dead(), core.take_settled_rows())
        };
        let dead = rows::letters_of(&mut shared.core(), &mut dead, now);
        let mut gone: Vec<_> = gone.into_iter().map(RowId).collect();
        gone.extend(rows::replaced(&batches));
        let rows: Vec<_> = batches.iter_mut().map(|batch| rows::row_of(batch, now)).collect();
        let change = Change { gone: &gone, rows: &rows, dead: &dead };
        match locked.change(change, self.options.durability, &rows::stamp(now)) {
            Ok(put) => {
                rows::spooled(&mut shared.core(), batches, &put, now);
                Vec::new()
            }
            Err(_) => batches,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime any more whose time could pass")]
fn lock_within(spool: &Mutex<Spool>, limit: Duration) -> Option<MutexGuard<'_, Spool>> {
    const STEP: Duration = Duration::from_millis(1);
    for _ in 0..limit.as_millis() {
        match spool.try_lock() {
            Ok(locked) => return Some(locked),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(STEP),
        }
    }
    None
}
