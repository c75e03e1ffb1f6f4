//! A user who was erased while batches were under way.

use super::batch::Batch;

/// What is under way of a user who was erased: with a request, or with the disk.
#[derive(Debug)]
pub(super) struct Erasure {
    pub(super) user: String,
    /// Only what was sealed or read before this ordinal.
    pub(super) before: u64,
    /// Only what was read back from the spool: what was posted after the erasure is not meant.
    pub(super) replayed: bool,
}

impl Erasure {
    pub(super) fn means(&self, batch: &Batch) -> bool {
        batch.head.user.as_deref() == Some(&*self.user)
            && batch.ordinal < self.before
            && (batch.replayed || !self.replayed)
    }
}
