//! The disk of a build without the feature `spool`: there is none.

use std::task::{Context, Poll};
use std::time::Duration;

use super::event_loop::Driver;
use crate::engine::{Batch, Moment, Now};
use crate::state::reply::Answerer;
use crate::state::settings::DiskOptions;
use crate::state::shared::Shared;

/// How long a beacon that is dropped may take to save what it has.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Disk;

pub(super) enum Finished {}

impl Disk {
    pub(super) fn new(_: String, _: DiskOptions) -> Disk {
        Disk
    }

    pub(super) fn poll(&mut self, _: &mut Context<'_>) -> Poll<Finished> {
        Poll::Pending
    }

    pub(super) fn looks_again(&self) -> Moment {
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

    pub(super) fn last_chance(&mut self) {}

    pub(super) fn give_up_writing(&mut self) -> Vec<Batch> {
        Vec::new()
    }

    pub(super) fn close(&mut self, _: Now) {}

    pub(super) fn save_now(&mut self, _: &Shared, batches: Vec<Batch>, _: Now) -> Vec<Batch> {
        batches
    }
}

impl Driver {
    pub(super) fn begin_parting_call(&mut self, _: Now) -> bool {
        false
    }

    pub(super) fn disk_finished(&mut self, finished: Finished) {
        match finished {}
    }

    /// Durable posts have nowhere to go.
    pub(super) fn work_on_disk(&mut self, now: Now) {
        let mut core = self.shared.core();
        core.take_dead();
        let batches = core.take_for_disk(now);
        core.without_disk(batches);
    }

    pub(super) fn erase(&mut self, user: String, answer: Answerer<Result<u64, String>>, now: Now) {
        let erased = self.shared.core().erase_user(&user, now);
        answer.say(Ok(erased));
    }
}
