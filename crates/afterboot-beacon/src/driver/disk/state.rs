//! What the driver knows of the disk.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Call, Done};
use super::payload::Payload;
use super::rows;
use super::trouble::{Backoff, Trouble};
use super::worker::Worker;
use crate::engine::{Batch, Moment, Now};
use crate::state::command::DeadCommand;
use crate::state::reply::{ReplyReceiver, Responder};
use crate::state::settings::DiskOptions;
use crate::state::shared::Shared;

/// A call that takes longer than this is abandoned.
pub(in crate::driver) const TIME_LIMIT: Duration = Duration::from_secs(5);

/// How often expired rows, and rows of processes that have died, are looked for.
pub(super) const TIDY_EVERY: Duration = Duration::from_secs(600);

/// A user whose events in memory are gone, and whose rows are to go.
pub(super) struct Erasing {
    pub(super) user: String,
    pub(super) responder: Responder<Result<u64, String>>,
    pub(super) in_memory: u64,
}

/// A call under way.
pub(super) struct PendingCall {
    pub(super) done: ReplyReceiver<Done>,
    pub(super) payload: Payload,
    pub(super) deadline: Moment,
    /// The deadline has passed. What it carried went on without it, and no other call is made before it is back.
    pub(super) is_late: bool,
}

pub(in crate::driver) struct Disk {
    pub(super) shared: Arc<Shared>,
    pub(super) app: String,
    pub(super) options: DiskOptions,
    pub(super) worker: Option<Worker>,
    /// The worker has the spool.
    pub(super) is_open: bool,
    /// Of a spool that went with its thread.
    pub(super) last_row: i64,
    pub(super) pending: Option<PendingCall>,
    pub(super) trouble: Option<Trouble>,
    pub(super) backoff: Backoff,
    pub(super) commands: Vec<DeadCommand>,
    pub(super) erasing: Vec<Erasing>,
    pub(super) tidy_at: Moment,
    pub(super) closing: bool,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("options", &self.options)
            .field("pending", &self.pending.is_some())
            .finish_non_exhaustive()
    }
}

/// A call that ended, with what it carried. None: its thread ended with it.
pub(in crate::driver) struct Finished(pub(super) Option<Done>, pub(super) Payload);

impl Disk {
    pub(in crate::driver) fn new(shared: Arc<Shared>, app: String, options: DiskOptions) -> Disk {
        Disk {
            shared,
            app,
            options,
            worker: None,
            is_open: false,
            last_row: 0,
            pending: None,
            trouble: None,
            backoff: Backoff::new(),
            commands: Vec::new(),
            erasing: Vec::new(),
            tidy_at: TIDY_EVERY,
            closing: false,
        }
    }

    pub(in crate::driver) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Finished> {
        let Some(pending) = &mut self.pending else { return Poll::Pending };
        let Poll::Ready(done) = pending.done.poll(cx) else {
            // A paused clock jumps as soon as its runtime has nothing to do, and the disk's thread is none of it.
            if !pending.is_late && clock_stands_still() {
                std::thread::yield_now();
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        };
        let payload = self.pending.take().map_or(Payload::Nothing, |pending| pending.payload);
        Poll::Ready(Finished(done, payload))
    }

    /// When the disk has something to do by itself.
    pub(in crate::driver) fn next_wake(&self) -> Moment {
        if !self.options.has_spool() {
            return Moment::MAX;
        }
        match (&self.pending, &self.trouble) {
            (Some(pending), _) if pending.is_late => Moment::MAX,
            (Some(pending), _) => pending.deadline,
            (None, Some(trouble)) => trouble.retry_at(),
            (None, None) => self.tidy_at,
        }
    }

    pub(in crate::driver) fn is_busy(&self) -> bool {
        self.pending.is_some()
    }

    pub(in crate::driver) fn is_late(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_late)
    }

    /// It works, and no call is under way.
    pub(in crate::driver) fn is_free(&self) -> bool {
        self.is_open && self.trouble.is_none() && !self.is_busy()
    }

    /// Before a shutdown, a disk that did not work is tried once more.
    pub(in crate::driver) fn forget_trouble(&mut self) {
        self.trouble = None;
    }

    /// Takes back what is being written: it counts as lost.
    pub(in crate::driver) fn take_unwritten(&mut self) -> Vec<Batch> {
        match self.pending.take() {
            Some(PendingCall { payload: Payload::Batches(batches), .. }) => batches,
            other => {
                self.pending = other;
                Vec::new()
            }
        }
    }

    pub(in crate::driver) fn close(&mut self, now: Now) {
        self.closing = true;
        if self.is_late() {
            // It closes by itself, if its call ever ends.
            (self.pending, self.worker) = (None, None);
        }
        if self.is_busy() {
            return;
        }
        if let Some(worker) = self.worker.take().filter(|_| self.is_open) {
            let done = worker.call(Call::Close, self.options.durability, rows::stamp(now));
            let payload = Payload::Nothing;
            self.pending = Some(PendingCall { done, payload, deadline: Moment::MAX, is_late: false });
        }
    }
}

/// Returns whether tokio's clock is paused. A clock that runs shows two moments, and one that is too coarse for it costs nothing but a
/// look more.
fn clock_stands_still() -> bool {
    Instant::now() == Instant::now()
}
