//! Replay: when the spool is read, and for which user.

use std::collections::VecDeque;
use std::mem;

use super::batch::Batch;
use super::core::Core;
use super::time::{Moment, Now};

impl Core {
    /// Replays the spool from a random moment on, after the start and after every recovery: replicas that come back
    /// together do not send their backlogs together.
    pub(crate) fn schedule_replay(&mut self, now: Now) {
        self.replay_again = true;
        if self.has_spool && self.replay_at.is_none() {
            let wait = self.endpoint.some_time_within(self.limits.replay_spread);
            self.replay_at = Some(now.at.saturating_add(wait));
            self.wake_at = Moment::ZERO;
        }
    }

    /// There is no network: what was read back from the spool goes back to lying there.
    pub(crate) fn offline(&mut self) {
        self.endpoint.offline();
        self.unload_replay();
    }

    /// There is a network: what was spooled without one is sent.
    pub(crate) fn online(&mut self, now: Now) {
        self.endpoint.online(now.at);
        if self.ledger.spooled() > 0 {
            self.schedule_replay(now);
        }
    }

    /// A shutdown with time to send: the beacon's own spooled batches are sent now, if the endpoint is healthy.
    pub(crate) fn replay_now(&mut self, now: Now) {
        if self.has_spool && self.endpoint.is_open() && self.ledger.spooled() > 0 {
            self.replay_at = Some(now.at);
            self.wake_at = Moment::ZERO;
        }
    }

    /// Returns whether a spooled batch is about to be sent.
    pub(crate) fn has_pending_backlog(&self) -> bool {
        let read = self.replay.iter().any(|batch| self.may_be_replayed(batch));
        let asked = self.replay_at.is_some() && self.ledger.spooled() > 0;
        self.has_spool && self.endpoint.is_open() && (read || asked)
    }

    /// Returns whether there is nothing to send, now or soon.
    pub(crate) fn is_idle(&self) -> bool {
        self.ledger.in_memory() == 0 && !self.has_pending_backlog()
    }

    /// Returns whether it would read from the spool if it was time. While the endpoint is in a backoff, a spooled batch may be
    /// the probe where no new one is there.
    pub(super) fn may_replay(&self) -> bool {
        // A part of another user's row waits in memory for that user's return, and delays no other batch.
        let others = self.replay.iter().filter(|batch| !self.may_be_replayed(batch));
        let read = self.replay.len() > others.clone().count();
        let waiting: u64 = others.map(Batch::events).sum();
        let may = self.endpoint.is_open() || self.ledger.in_memory() == waiting;
        self.has_spool && !read && may
    }

    /// Only for the same user, unless it is anonymous.
    pub(super) fn may_be_replayed(&self, batch: &Batch) -> bool {
        batch.head.user.is_none() || batch.head.user == self.user
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
}
