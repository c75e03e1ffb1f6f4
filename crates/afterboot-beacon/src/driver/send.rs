//! Requests.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task;
use tokio::time::Instant;

use super::event_loop::Driver;
use crate::base::lock::lock;
use crate::base::quiet::quiet;
use crate::base::within::within;
use crate::engine::endpoint::{HeldReason, State};
use crate::engine::verdict::{Outcome, judge};
use crate::engine::{BeaconEvent, Now, Outgoing};
use crate::transport::{Request, Response};
use crate::wire::{Headers, StreamId, Verdict};

/// How a request ended.
#[derive(Debug)]
pub(super) struct Sent {
    /// What the try was called.
    name: String,
    result: Result<Response, NotSent>,
    took: Duration,
}

/// Why there is no answer.
#[derive(Debug)]
enum NotSent {
    Failed(String),
    /// It could not even leave: no retry mends that.
    Token,
}

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
            (core.ledger.counters(), core.stream())
        };
        let name = self.next_name(sender);
        let headers = Headers {
            batch: Some(name.clone()),
            sent_at: now.wall,
            mono: now.mono,
            boot: crate::base::machine::boot_id().to_string(),
            events_boot: batch.boot.to_string(),
            attempt: batch.attempts,
            sender,
            counters,
        };
        let (events, bytes, attempt) = (batch.len(), body.len(), batch.attempts);
        self.tell(|| BeaconEvent::Sent { priority: outgoing.batch.priority(), events, bytes, attempt });

        let transport = Arc::clone(&self.transport);
        let tokens = self.tokens.clone();
        let time_limit = self.time_limit;
        let sending = async move {
            let begun = Instant::now();
            let sent = within(time_limit, async {
                let token = tokens.get().await;
                if token.as_ref().is_some_and(|token| !token.is_sendable()) {
                    return Err(NotSent::Token);
                }
                let sent = transport.send(Request { body, headers, token }).await;
                sent.map_err(|error| NotSent::Failed(error.to_string()))
            });
            let late = || Err(NotSent::Failed(format!("no answer within {time_limit:?}")));
            let result = sent.await.unwrap_or_else(late);
            Sent { name, result, took: begun.elapsed() }
        };
        let handle = self.requests.spawn(quiet(sending));
        self.out.insert(handle.id(), outgoing);
    }

    pub(super) fn answered(&mut self, answered: Result<(task::Id, Sent), task::JoinError>) {
        let (id, sent) = match answered {
            Ok((id, sent)) => (id, sent),
            Err(error) => {
                let why =
                    if error.is_panic() { "the transport panicked" } else { "the request was called off" };
                (
                    error.id(),
                    Sent {
                        name: String::new(),
                        result: Err(NotSent::Failed(why.to_owned())),
                        took: Duration::ZERO,
                    },
                )
            }
        };
        let Some(outgoing) = self.out.remove(&id) else { return };
        let now = self.shared.now();
        let events = outgoing.batch.len();
        let status = sent.result.as_ref().ok().map(|response| response.status);
        let (outcome, kill, why) = match &sent.result {
            Ok(response) => {
                let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(now.wall);
                let (outcome, kill) = judge(response, &sent.name, events, wall);
                let why = match outcome {
                    Outcome::Retry { .. } if response.status < 300 => {
                        "the answer to another batch".to_owned()
                    }
                    _ => format!("status {}", response.status),
                };
                (outcome, kill, why)
            }
            Err(NotSent::Failed(why)) => (Outcome::Retry { retry_after: None }, None, why.clone()),
            Err(NotSent::Token) => (Outcome::Held(HeldReason::Token), None, HeldReason::Token.to_string()),
        };
        self.note_quality(&outcome, &why, sent.took);
        if matches!(outcome, Outcome::Held(_)) {
            self.tokens.forget();
        }
        let said = outcome.clone();
        let (state, was_healthy, limit) = {
            let mut core = self.shared.core();
            let was_healthy = *core.endpoint.state() == State::Healthy;
            core.settle(outgoing, outcome, now);
            (core.endpoint.state().clone(), was_healthy, core.endpoint.limit())
        };
        self.note_outage(&said, &why, &state, now);
        self.tell_outcome(&said, status, why, limit, &state, now);
        if !was_healthy && state == State::Healthy {
            self.tell(|| BeaconEvent::Recovered);
        }
        if let Some(epoch) = kill {
            self.tell(|| BeaconEvent::Kill { epoch });
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

    fn tell_outcome(
        &self,
        outcome: &Outcome,
        status: Option<u16>,
        why: String,
        limit: usize,
        state: &State,
        now: Now,
    ) {
        let wait = match state {
            State::Healthy => Duration::ZERO,
            State::Backoff { until, .. } | State::Held { until, .. } => until.saturating_sub(now.at),
        };
        match outcome {
            Outcome::Settled(verdicts) => {
                let count = |wanted: fn(&Verdict) -> bool| verdicts.iter().filter(|v| wanted(v)).count();
                let accepted = count(|verdict| *verdict == Verdict::Accepted);
                let again = count(|verdict| *verdict == Verdict::Retry);
                let rejected = verdicts.len() - accepted - again;
                self.tell(|| BeaconEvent::Acked { accepted, rejected, again });
            }
            Outcome::Retry { .. } => self.tell(|| BeaconEvent::Failed { status, why, wait }),
            Outcome::TooLarge => self.tell(|| BeaconEvent::Split { limit }),
            // The core tells of dead letters.
            Outcome::Refused { .. } => {}
            Outcome::Held(why) => {
                self.tell(|| BeaconEvent::Held { why: why.clone(), wait });
            }
        }
    }

    /// Calls off what is under way. The batches are back in their queues.
    pub(super) fn abort_requests(&mut self) {
        self.requests.abort_all();
        self.requests.detach_all();
        let mut core = self.shared.core();
        for (_, outgoing) in self.out.drain() {
            core.aborted(outgoing);
        }
    }
}
