//! What lies in the spool comes back from it: when, and for whom.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use super::disk::Unlisted;
use super::{Core, Moment, Now};
use crate::endpoint::Answer;
use crate::ledger::Place;

impl Core {
    /// The moment at which the spool should be looked through, at the start and after every recovery: a random one, so
    /// that replicas that came back together do not send their backlogs together.
    pub(crate) fn begin(&mut self, now: Now) {
        self.schedule_replay(now);
    }

    pub(super) fn schedule_replay(&mut self, now: Now) {
        self.replay_again = true;
        if self.has_spool && self.replay_at.is_none() {
            let wait = self.endpoint.some_time_within(self.limits.replay_spread);
            self.replay_at = Some(now.at + wait);
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

    /// Is it time to read from the spool?
    pub(crate) fn wants_replay(&self, now: Now) -> bool {
        self.wants_to_replay()
            && !matches!(self.endpoint.ask(now.at), Answer::No(_))
            && self.replay_at.is_some_and(|at| at <= now.at)
    }

    /// Would it read from the spool, if it was time? A shut gate opens for one probe, and where nothing new is there to
    /// be it, something on disk is.
    pub(super) fn wants_to_replay(&self) -> bool {
        let may = self.endpoint.is_open() || self.ledger.in_memory() == 0;
        self.has_spool && self.replay.is_empty() && may
    }

    /// The spool is looked through from now on, for this user.
    pub(crate) fn begin_replay(&mut self) -> Option<String> {
        self.replay_again = false;
        self.user.clone()
    }

    /// Rows in memory, which a listing leaves out.
    pub(crate) fn resident_rows(&self) -> Vec<i64> {
        self.resident.keys().copied().chain(self.settled_rows.iter().copied()).collect()
    }

    /// What was read. Nothing: the replay is over until there is a reason for another.
    pub(crate) fn listed(&mut self, batches: Vec<Unlisted>, now: Now) {
        if batches.is_empty() {
            self.replay_at = self.replay_at.filter(|_| self.replay_again);
            return;
        }
        for Unlisted { row, mut batch } in batches {
            // It was read for a user who has gone meanwhile.
            if batch.head.user.is_some() && batch.head.user != self.user {
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
        if !self.endpoint.is_open() && self.endpoint.ask(now.at) != Answer::Probe {
            self.unload_replay();
        }
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
