//! The disk of a build without the feature `spool`: there is none.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::phase::DiskScope;
use crate::engine::{Batch, Moment, Now};
use crate::state::reply::Responder;
use crate::state::settings::DiskOptions;
use crate::state::shared::Shared;

/// How long a beacon that is dropped may take to save what it has.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Disk(Arc<Shared>);

pub(super) enum Finished {}

impl Disk {
    pub(super) fn new(shared: Arc<Shared>, _: String, _: DiskOptions) -> Disk {
        Disk(shared)
    }

    pub(super) fn poll(&mut self, _: &mut Context<'_>) -> Poll<Finished> {
        Poll::Pending
    }

    pub(super) fn next_wake(&self) -> Moment {
        Moment::MAX
    }

    pub(super) fn is_busy(&self) -> bool {
        false
    }

    pub(super) fn is_late(&self) -> bool {
        false
    }

    pub(super) fn is_free(&self) -> bool {
        false
    }

    pub(super) fn forget_trouble(&mut self) {}

    pub(super) fn take_unwritten(&mut self) -> Vec<Batch> {
        Vec::new()
    }

    pub(super) fn close(&mut self, _: Now) {}

    pub(super) fn save_now(&mut self, batches: Vec<Batch>, _: Now) -> Vec<Batch> {
        batches
    }

    pub(super) fn begin_final_call(&mut self, _: Now) -> bool {
        false
    }

    pub(super) fn call_finished(&mut self, finished: Finished) {
        match finished {}
    }

    /// Durable posts have nowhere to go.
    pub(super) fn work(&mut self, _: DiskScope, now: Now) {
        let mut core = self.0.core();
        core.take_dead();
        let batches = core.take_for_disk(now);
        core.spool_is_off(batches);
    }

    pub(super) fn erase(&mut self, user: String, responder: Responder<Result<u64, String>>, now: Now) {
        let erased = self.0.core().erase_user(&user, now);
        responder.send(Ok(erased));
    }
}
