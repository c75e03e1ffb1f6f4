//! Requests: sent as long as the engine hands out batches, and settled as they end.

use std::sync::Arc;
use std::time::Duration;

use tokio::task;

use super::event_loop::Driver;
use super::request::{self, Judged, Sent};
use crate::base::lock::lock;
use crate::base::machine::boot_id;
use crate::base::quiet::quiet;
use crate::engine::endpoint::State;
use crate::engine::{BeaconEvent, Now, Outcome, Outgoing};
use crate::wire::{Headers, StreamId, Verdict};

impl Driver {
    pub(super) fn send_all(&mut self, now: Now) {
        loop {
            let taken = self.shared.core().take(now);
            let Some(outgoing) = taken else { return };
            self.send(outgoing, now);
        }
    }

    fn send(&mut self, mut outgoing: Outgoing, now: Now) {
        let batch = &mut outgoing.batch;
        let body = batch.body();
        let (counters, sender) = {
            let core = self.shared.core();
            (core.counters(), core.stream())
        };
        let headers = Headers {
            batch: Some(self.next_name(sender)),
            sent_at: now.wall,
            mono: now.mono,
            boot: boot_id().to_string(),
            events_boot: batch.boot.to_string(),
            attempt: batch.attempts,
            sender,
            counters,
        };
        let (events, bytes, attempt) = (batch.len(), body.len(), batch.attempts);
        self.emit(|| BeaconEvent::Sent { priority: outgoing.batch.priority(), events, bytes, attempt });
        let (transport, tokens) = (Arc::clone(&self.transport), self.tokens.clone());
        let sending = request::send(transport, tokens, self.time_limit, body, headers);
        let handle = self.requests.spawn(quiet(sending));
        self.out.insert(handle.id(), outgoing);
    }

    pub(super) fn request_ended(&mut self, ended: Result<(task::Id, Sent), task::JoinError>) {
        let (id, sent) = ended.unwrap_or_else(|error| {
            let why = if error.is_panic() { "the transport panicked" } else { "the request was cancelled" };
            (error.id(), Sent::failed(why))
        });
        let Some(outgoing) = self.out.remove(&id) else { return };
        let now = self.shared.now();
        let took = sent.took;
        let Judged { outcome, status, why, kill } = sent.judge(outgoing.batch.len(), now.wall);
        self.note_quality(&outcome, &why, took);
        if matches!(outcome, Outcome::Held(_)) {
            self.tokens.forget();
        }
        let (state, was_healthy, limit, waiting) = {
            let mut core = self.shared.core();
            let was_healthy = *core.endpoint().state() == State::Healthy;
            core.settle(outgoing, outcome.clone(), now);
            (core.endpoint().state().clone(), was_healthy, core.endpoint().limit(), core.undelivered())
        };
        self.outages.note(&outcome, &why, &state, waiting, now);
        self.emit_outcome(&outcome, status, why, limit, &state, now);
        if !was_healthy && state == State::Healthy {
            self.emit(|| BeaconEvent::Recovered);
        }
        if let Some(epoch) = kill {
            self.emit(|| BeaconEvent::Kill { epoch });
        }
    }

    /// No two requests of all beacons have the same.
    fn next_name(&mut self, sender: StreamId) -> String {
        self.tries += 1;
        format!("{sender}-{}", self.tries)
    }

    fn note_quality(&self, outcome: &Outcome, why: &str, took: Duration) {
        let mut quality = lock(&self.shared.quality);
        match outcome {
            Outcome::Settled(_) | Outcome::TooLarge | Outcome::Refused { .. } => quality.answered(took),
            Outcome::Retry { .. } => quality.failed(why.to_owned()),
            Outcome::Held(why) => quality.failed(why.to_string()),
        }
    }

    fn emit_outcome(
        &self,
        outcome: &Outcome,
        status: Option<u16>,
        reason: String,
        limit: usize,
        state: &State,
        now: Now,
    ) {
        let retry_in = match state {
            State::Healthy => Duration::ZERO,
            State::Backoff { until, .. } | State::Held { until, .. } => until.saturating_sub(now.at),
        };
        match outcome {
            Outcome::Settled(verdicts) => {
                let count = |wanted: fn(&Verdict) -> bool| verdicts.iter().filter(|v| wanted(v)).count();
                let accepted = count(|verdict| *verdict == Verdict::Accepted);
                let retried = count(|verdict| *verdict == Verdict::Retry);
                let rejected = verdicts.len() - accepted - retried;
                self.emit(|| BeaconEvent::Acked { accepted, rejected, retried });
            }
            Outcome::Retry { .. } => self.emit(|| BeaconEvent::Failed { status, reason, retry_in }),
            Outcome::TooLarge => self.emit(|| BeaconEvent::Split { limit }),
            // The engine emits the event for dead letters.
            Outcome::Refused { .. } => {}
            Outcome::Held(held) => {
                self.emit(|| BeaconEvent::Held { reason: held.clone(), retry_in });
            }
        }
    }

    /// Calls off what is under way. The batches are back in their queues.
    pub(super) fn abort_requests(&mut self) {
        self.requests.abort_all();
        self.requests.detach_all();
        let mut core = self.shared.core();
        for (_, outgoing) in self.out.drain() {
            core.abort(outgoing);
        }
    }
}
