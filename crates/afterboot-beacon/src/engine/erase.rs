//! Erasing a user's events: those in memory at once, those under way when they come back.

use std::collections::VecDeque;
use std::mem;

use super::batch::Batch;
use super::core::Core;
use super::erasure::Erasure;
use super::ledger::{DropReason, Place};
use super::time::Now;

impl Core {
    /// Everything of this user in memory goes: what is sealed is declared.
    pub(crate) fn erase_user(&mut self, user: &str, now: Now) -> u64 {
        if self.user.as_deref() == Some(user) {
            self.seal_all(now);
        }
        self.dead.retain(|dead| dead.batch.head.user.as_deref() != Some(user));
        self.dead_bytes = self.dead.iter().map(|dead| dead.batch.bytes()).sum();
        self.erase(Erasure { user: user.to_owned(), before: self.next_ordinal, replayed: false })
    }

    /// The disk is about to erase this user's rows. What was read of them since the user was erased here goes too.
    #[cfg(feature = "spool")]
    pub(crate) fn erase_replayed(&mut self, user: &str) {
        self.erase(Erasure { user: user.to_owned(), before: self.next_ordinal, replayed: true });
    }

    fn erase(&mut self, erasure: Erasure) -> u64 {
        let mut gone = Vec::new();
        let queues = self.queues.iter_mut().chain([&mut self.replay, &mut self.for_disk]);
        for queue in queues {
            let (erased, kept) = mem::take(queue).into_iter().partition(|batch| erasure.means(batch));
            *queue = kept;
            let erased: VecDeque<Batch> = erased;
            gone.extend(erased);
        }
        if self.out.iter().any(|ordinal| *ordinal < erasure.before) {
            self.erasures.push(erasure);
        }
        let mut erased = 0;
        for batch in gone {
            erased += batch.events();
            self.drop_batch(batch, Place::Queued, DropReason::Erased);
        }
        erased
    }

    /// Returns whether its user was erased while it was under way. It is neither sent again nor kept then.
    pub(super) fn is_erased(&self, batch: &Batch) -> bool {
        self.erasures.iter().any(|erasure| erasure.means(batch))
    }

    /// Erasures of which nothing is under way any more are forgotten.
    pub(super) fn forget_erasures(&mut self) {
        let Core { erasures, out, .. } = self;
        erasures.retain(|erasure| out.iter().any(|ordinal| *ordinal < erasure.before));
    }
}
