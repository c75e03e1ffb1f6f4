//! Settling a request: what its outcome changes.

use std::mem;

use super::batch::Batch;
use super::core::Core;
use super::exchange::{DeadBatch, Outgoing, Posting};
use super::ledger::{DropReason, Place};
use super::time::{Moment, Now};
use super::verdict::Outcome;
use crate::wire::Verdict;

/// Dead letters that wait for the disk have this share of the memory for themselves.
const DEAD_SHARE: usize = 4;

impl Core {
    /// A request has ended.
    pub(crate) fn settle(&mut self, outgoing: Outgoing, outcome: Outcome, now: Now) {
        let Outgoing { batch, probe } = outgoing;
        let was_open = self.endpoint.is_open();
        self.in_flight -= 1;
        self.take_back(&batch);
        match outcome {
            Outcome::Settled(verdicts) => self.settled(batch, probe, &verdicts, now),
            Outcome::Retry { retry_after } => {
                self.endpoint.failed(probe, now.at, retry_after);
                self.requeue(batch);
            }
            Outcome::Held(why) => {
                self.endpoint.held(probe, now.at, why);
                self.requeue(batch);
            }
            Outcome::TooLarge => {
                self.endpoint.refused_size(probe, batch.encoded_len(Core::overhead(&batch.head)));
                self.split(batch);
            }
            Outcome::Refused { status } => {
                self.endpoint.judged_batch(probe);
                self.make_dead(batch, "refused", Some(status));
            }
        }
        if !self.endpoint.is_open() {
            self.unload_replay();
        } else if !was_open {
            // The server is back for all clients at the same moment, so the replay is spread anew.
            self.unload_replay();
            if self.replay_at.take().is_some() || self.ledger.spooled() > 0 {
                self.schedule_replay(now);
            }
        }
    }

    fn settled(&mut self, mut batch: Batch, probe: bool, verdicts: &[Verdict], now: Now) {
        let encoded = batch.encoded_len(Core::overhead(&batch.head));
        let count = |wanted: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| wanted(verdict)).count();
        let kept = count(|verdict| *verdict == Verdict::Retry);
        if kept < verdicts.len() || verdicts.is_empty() {
            self.endpoint.succeeded(probe, encoded);
        }
        let accepted = count(|verdict| *verdict == Verdict::Accepted) as u64;
        let rejected = count(|verdict| matches!(verdict, Verdict::Rejected(_))) as u64;
        self.ledger.shift(Place::InFlight, Place::Acked, accepted);
        self.ledger.shift(Place::InFlight, Place::Rejected, rejected);
        let before = batch.bytes();
        if kept == 0 {
            self.bytes -= before;
            self.forget_rows(&mut batch);
            return;
        }
        // The server asks for time: the endpoint's, as a batch owns no timer.
        self.endpoint.failed(probe && kept == verdicts.len(), now.at, None);
        if kept < verdicts.len() {
            batch.retain(|index| verdicts.get(index) == Some(&Verdict::Retry));
            batch.head.gaps.clear();
        }
        self.bytes -= before - batch.bytes();
        self.requeue(batch);
    }

    /// Back ahead of what came later.
    fn requeue(&mut self, batch: Batch) {
        if self.is_erased(&batch) {
            return self.drop_batch(batch, Place::InFlight, DropReason::Erased);
        }
        self.ledger.shift(Place::InFlight, Place::Queued, batch.events());
        self.enqueue(batch);
    }

    fn split(&mut self, mut batch: Batch) {
        if batch.len() < 2 {
            let gaps = mem::take(&mut batch.head.gaps);
            if gaps.is_empty() {
                return self.make_dead(batch, "oversize", Some(413));
            }
            // What it declares may be what is too large, and can leave with others.
            self.gaps.declare(gaps);
            batch.stale_body();
            return self.requeue(batch);
        }
        let rest = batch.split_off(batch.len().div_ceil(2));
        self.bytes += rest.own_bytes();
        self.requeue(rest);
        self.requeue(batch);
    }

    /// Becomes a dead letter: its numbers will not come by themselves.
    fn make_dead(&mut self, mut batch: Batch, reason: &'static str, status: Option<u16>) {
        if self.is_erased(&batch) {
            return self.drop_batch(batch, Place::InFlight, DropReason::Erased);
        }
        self.bytes -= batch.bytes();
        self.ledger.shift(Place::InFlight, Place::Dead, batch.events());
        self.emit_dead(reason, status, batch.events());
        self.gaps.declare(batch.gaps("dead"));
        self.gaps.declare(mem::take(&mut batch.head.gaps));
        self.forget_rows(&mut batch);
        if !batch.is_empty() {
            self.keep_dead_letter(DeadBatch { batch, reason, status });
        }
    }

    /// A disk that is slow or does not work must not make memory grow: the oldest go, and are counted.
    fn keep_dead_letter(&mut self, dead: DeadBatch) {
        self.dead_bytes += dead.batch.bytes();
        self.dead.push_back(dead);
        while self.dead.len() > 1 && self.dead_bytes > self.limits.bytes / DEAD_SHARE {
            let Some(oldest) = self.dead.pop_front() else { break };
            self.dead_bytes -= oldest.batch.bytes();
            // Without a spool none is kept, and `dead` says so of all.
            if self.keeps_dead {
                self.drop_dead_letters(DropReason::DeadFull, oldest.batch.events());
            }
        }
    }

    /// A single event that fits no batch: counted as dead when it was posted.
    pub(super) fn make_oversize_dead(&mut self, posting: &Posting<'_>, now: Now) {
        let mut batch = self.new_batch(posting.priority, now);
        batch.push(0, posting.encoded);
        (batch.newest_at, batch.life) = (now.wall, posting.expiry);
        self.number(&mut batch);
        self.gaps.declare(mem::take(&mut batch.head.gaps));
        let stream = batch.head.stream;
        self.gaps.declare(batch.slots().first().map(|slot| crate::wire::Gap {
            stream,
            first: slot.seq,
            last: slot.seq,
            why: "dead".to_owned(),
        }));
        self.emit_dead("oversize", None, 1);
        self.keep_dead_letter(DeadBatch { batch, reason: "oversize", status: None });
        self.wake_at = Moment::ZERO;
    }

    /// A request was cancelled: the server may have the events or not, and recognises them when they are sent again.
    pub(crate) fn abort(&mut self, outgoing: Outgoing) {
        let Outgoing { mut batch, probe } = outgoing;
        self.in_flight -= 1;
        self.take_back(&batch);
        if probe {
            self.endpoint.probe_aborted();
        }
        batch.attempts = batch.attempts.saturating_sub(1);
        self.requeue(batch);
    }

    /// The disk did not take them. It is asked again.
    #[cfg(feature = "spool")]
    pub(crate) fn return_dead(&mut self, dead: Vec<DeadBatch>) {
        let newer = self.take_dead();
        for dead in dead.into_iter().chain(newer) {
            self.keep_dead_letter(dead);
        }
    }

    /// Dead letters that are not yet on disk.
    pub(crate) fn take_dead(&mut self) -> Vec<DeadBatch> {
        self.dead_bytes = 0;
        mem::take(&mut self.dead).into()
    }
}
