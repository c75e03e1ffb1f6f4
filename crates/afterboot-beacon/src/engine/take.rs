//! What is sent next.

use super::batch::Batch;
use super::core::Core;
use super::endpoint::Permit;
use super::exchange::Outgoing;
use super::ledger::{DropReason, Place};
use super::limits::{LANES, MAX_IN_FLIGHT, SPOOL_AGE, lane};
use super::time::{Moment, Now};
use crate::wire::Priority;

impl Core {
    /// Takes the next batch to send, if the endpoint permits one.
    pub(crate) fn take(&mut self, now: Now) -> Option<Outgoing> {
        if self.in_flight >= MAX_IN_FLIGHT {
            return None;
        }
        let probe = match self.endpoint.permit(now.at) {
            Permit::No(_) => return None,
            // What left before the failure is still under way: its outcome is not the probe's.
            Permit::Probe if self.in_flight > 0 => return None,
            answer => answer == Permit::Probe,
        };
        loop {
            let mut batch = self.next_batch(now)?;
            if batch.expires <= now.mono && !batch.is_empty() {
                self.drop_batch(batch, Place::Queued, DropReason::Expired);
                continue;
            }
            if batch.is_empty() && batch.head.gaps.is_empty() && batch.head.end.is_none() {
                self.drop_batch(batch, Place::Queued, DropReason::Displaced);
                continue;
            }
            self.fit(&mut batch);
            batch.attempts += 1;
            self.ledger.shift(Place::Queued, Place::InFlight, batch.events());
            self.out.push(batch.ordinal);
            self.in_flight += 1;
            if probe {
                self.endpoint.probe_left();
            }
            return Some(Outgoing { batch, probe });
        }
    }

    fn next_batch(&mut self, now: Now) -> Option<Batch> {
        for priority in LANES {
            let due = self.open[lane(priority)].as_ref().is_some_and(|open| open.batch.due <= now.at);
            if due {
                self.seal(priority);
            }
        }
        let due = |batch: &Batch| batch.due <= now.at;
        let vital = lane(Priority::Vital);
        if self.queues[vital].front().is_some_and(due) {
            return self.queues[vital].pop_front();
        }
        let basic = lane(Priority::Basic);
        let live = self.queues[basic].front().is_some_and(due);
        // In turn: a backlog holds up nothing new, and a steady stream does not hold up the backlog.
        self.replay_turn = !self.replay_turn && !self.replay.is_empty();
        if (self.replay_turn || !live)
            && let Some(batch) = self.next_replayed()
        {
            return Some(batch);
        }
        if live { self.queues[basic].pop_front() } else { None }
    }

    /// A batch that was read back is sent only for the current user, unless it is anonymous.
    fn next_replayed(&mut self) -> Option<Batch> {
        let at = self.replay.iter().position(|batch| self.may_be_replayed(batch))?;
        self.replay.remove(at)
    }

    /// As many events as one request may carry: small batches join, and one that the server would find too large is split.
    fn fit(&mut self, batch: &mut Batch) {
        let limit = self.endpoint.limit().min(self.limits.batch_bytes);
        let overhead = Core::overhead(&batch.head);
        if !batch.replayed {
            let queue = &mut self.queues[lane(batch.priority())];
            while let Some(next) = queue.front() {
                let fits = batch.len() + next.len() <= self.limits.batch_events
                    && batch.encoded_len(overhead) + next.encoded_len(Core::overhead(&next.head)) <= limit;
                if !fits || !batch.may_absorb(next) {
                    break;
                }
                if let Some(next) = queue.pop_front() {
                    self.bytes -= next.own_bytes();
                    batch.absorb(next);
                }
            }
        }
        if batch.len() > 1 && batch.encoded_len(overhead) > limit {
            let fitting = batch.fitting(overhead, limit).max(1);
            if fitting < batch.len() {
                let rest = batch.split_off(fitting);
                self.bytes += rest.own_bytes();
                self.enqueue(rest);
            }
        }
    }

    /// When the driver has to look again, if nothing happens before.
    pub(crate) fn next_wake(&self, now: Now) -> Moment {
        // What is due and still here waits for something else, whose end wakes the driver.
        let later = |at: Moment| if at > now.at { at } else { Moment::MAX };
        let mut wake = Moment::MAX;
        let open = || self.open.iter().flatten().map(|open| &open.batch).filter(|batch| !batch.is_empty());
        let fronts = || self.queues.iter().filter_map(|queue| queue.front());
        if self.in_flight < MAX_IN_FLIGHT {
            let due = open().chain(fronts()).map(|batch| batch.due);
            let due = due.chain(self.replay.front().map(|_| Moment::ZERO)).min();
            let opens = match self.endpoint.permit(now.at) {
                Permit::Go | Permit::Probe => Some(Moment::ZERO),
                Permit::No(until) => until,
            };
            if let (Some(due), Some(opens)) = (due, opens) {
                wake = wake.min(later(due.max(opens)));
            }
        }
        let expiry = fronts().filter(|batch| !batch.is_empty()).map(|batch| batch.expires).min();
        if let Some(at) = expiry {
            let left = Moment::from_millis(at.saturating_sub(now.mono));
            wake = wake.min(now.at.saturating_add(left));
        }
        wake
    }

    /// When the disk has something to do, if it is free and nothing happens before.
    pub(crate) fn next_disk_wake(&self, now: Now) -> Moment {
        let replay = self.replay_at.filter(|_| self.may_replay());
        let replay = match (replay, self.endpoint.permit(now.at)) {
            (Some(at), Permit::Go | Permit::Probe) => at,
            (Some(at), Permit::No(Some(until))) => at.max(until),
            (None, _) | (_, Permit::No(None)) => Moment::MAX,
        };
        let mut wake = if replay > now.at { replay } else { Moment::MAX };
        if self.has_spool && !self.endpoint.is_open() {
            let open = self.open.iter().flatten().map(|open| &open.batch).filter(|batch| !batch.is_empty());
            let fronts = self.queues.iter().filter_map(|queue| queue.front());
            let old = open.chain(fronts).map(|batch| batch.since + SPOOL_AGE).filter(|old| *old > now.at);
            wake = wake.min(old.min().unwrap_or(Moment::MAX));
        }
        wake
    }

    /// Drops expired batches. The fronts are the oldest.
    pub(crate) fn expire(&mut self, now: Now) {
        for lane in 0..self.queues.len() {
            while let Some(batch) = self.queues[lane].pop_front() {
                if batch.expires > now.mono || batch.is_empty() {
                    self.queues[lane].push_front(batch);
                    break;
                }
                self.drop_batch(batch, Place::Queued, DropReason::Expired);
            }
        }
    }
}
