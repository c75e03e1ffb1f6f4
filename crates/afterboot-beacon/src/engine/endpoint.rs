//! The state of the endpoint, which every request asks for permission: live, replayed and urgent batches alike.

use std::fmt;
use std::mem;
use std::time::Duration;

use afterboot_retry::{BackoffPolicy, Jitter, JitterRng, Schedule};
use serde::Serialize;

use super::time::Moment;
use crate::wire::MAX_BODY;

/// 1, 2, 4 … 32 s: from a published rewrite of Facebook's Banzai client.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(32));
/// A held endpoint needs a person, or a new token: 30 s, 1, 2 … 10 min.
const HELD_BACKOFF: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// Less up to a quarter of each.
const JITTER: Jitter = Jitter::Scale { lo: 0.75, hi: 1.0 };
/// A server may ask for an hour and not for longer: `Retry-After: 99999999999` is no reason to be silent for ever.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// What is added to it at random, as afterboot-retry does.
const RETRY_AFTER_SPREAD: Duration = Duration::from_secs(3);
/// So many batches in a row must be taken before a larger one is tried again, twice as many after each refusal.
const REGROW_AFTER: u32 = 8;
const REGROW_AFTER_MAX: u32 = 512;
/// Smaller than this a limit never gets: an event alone is larger, and has its own end.
const SMALLEST_BODY: usize = 512;

/// Why an endpoint is held. A retry alone does not mend it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HeldReason {
    /// The endpoint responded with this status: a redirect, a refused token, a proxy's own page.
    Status(u16),
    /// The endpoint responded 2xx without an ack that accounts for every event, as a captive portal does. Names the fault.
    NoAck(String),
    /// The application's token holds a character that is not allowed in a header.
    Token,
    /// The endpoint uses another version of the wire format.
    WireVersion(String),
}

impl fmt::Display for HeldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldReason::Status(status) => write!(f, "status {status}"),
            HeldReason::Token => f.write_str("the token holds a character that is not allowed in a header"),
            HeldReason::NoAck(why) | HeldReason::WireVersion(why) => f.write_str(why),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Healthy,
    Backoff { until: Moment, step: u32 },
    Held { why: HeldReason, until: Moment, step: u32 },
}

/// Whether a request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    Go,
    /// One request, whose outcome decides.
    Probe,
    /// Not before this moment or, without one, before another event changes the state.
    No(Option<Moment>),
}

#[derive(Debug)]
pub(crate) struct Endpoint {
    state: State,
    offline: bool,
    probing: bool,
    backoff: BackoffPolicy,
    held_backoff: BackoffPolicy,
    rng: JitterRng,
    /// The largest body that the server is assumed to take.
    limit: usize,
    taken: u32,
    regrow_after: u32,
    /// The limit was raised last, so a refusal speaks of that.
    grown: bool,
}

fn doubling((first, max): (Duration, Duration)) -> BackoffPolicy {
    let schedule = Schedule::Exponential { initial: Duration::ZERO, base: first, multiplier: 2.0 };
    let policy = BackoffPolicy::builder().schedule(schedule).max_delay(max).jitter(JITTER);
    policy.build().expect("the bounds of both backoffs are in order")
}

impl Endpoint {
    pub(crate) fn new(seed: u64) -> Endpoint {
        Endpoint {
            state: State::Healthy,
            offline: false,
            probing: false,
            backoff: doubling(BACKOFF),
            held_backoff: doubling(HELD_BACKOFF),
            rng: JitterRng::seeded(seed),
            limit: MAX_BODY,
            taken: 0,
            regrow_after: REGROW_AFTER,
            grown: false,
        }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.offline
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.offline && self.state == State::Healthy
    }

    pub(crate) fn permit(&self, now: Moment) -> Permit {
        if self.offline {
            return Permit::No(None);
        }
        match self.state {
            State::Healthy => Permit::Go,
            _ if self.probing => Permit::No(None),
            State::Backoff { until, .. } | State::Held { until, .. } if until > now => {
                Permit::No(Some(until))
            }
            _ => Permit::Probe,
        }
    }

    /// When a shut gate opens for a probe, as far as that is known.
    pub(crate) fn opens_at(&self) -> Option<Moment> {
        match self.state {
            _ if self.offline => None,
            State::Healthy => Some(Moment::ZERO),
            State::Backoff { until, .. } | State::Held { until, .. } => Some(until),
        }
    }

    pub(crate) fn probe_left(&mut self) {
        self.probing = true;
    }

    /// The probe was cancelled and decides nothing.
    pub(crate) fn probe_aborted(&mut self) {
        self.probing = false;
    }

    /// A response that settles events. Only the probe's leads out of a backoff: a request that left before the failure
    /// says nothing of what came after it.
    pub(crate) fn succeeded(&mut self, probe: bool, body_len: usize) {
        if probe {
            self.probing = false;
            self.state = State::Healthy;
        }
        if self.limit >= MAX_BODY || body_len * 2 < self.limit {
            return;
        }
        self.taken += 1;
        if self.taken >= self.regrow_after {
            self.taken = 0;
            self.limit = (self.limit * 2).min(MAX_BODY);
            self.grown = true;
        }
    }

    /// No response, or one that a retry may mend. [`Core::take`](super::core::Core::take) sends nothing until the wait is over:
    /// the backoff or, where that is longer, `retry_after` with its spread.
    pub(crate) fn failed(&mut self, probe: bool, now: Moment, retry_after: Option<Duration>) {
        // Clients that got the same time do not come back together.
        let asked = retry_after.map_or(Duration::ZERO, |after| {
            after.min(RETRY_AFTER_MAX) + self.some_time_within(RETRY_AFTER_SPREAD)
        });
        let step = match &mut self.state {
            State::Backoff { step, .. } if probe => step.saturating_add(1),
            // The second of two requests that failed together is no second failure.
            State::Backoff { until, .. } => return *until = (*until).max(now.saturating_add(asked)),
            State::Held { until, .. } if !probe => return *until = (*until).max(now.saturating_add(asked)),
            _ => 1,
        };
        self.probing = self.probing && !probe;
        let wait = self.backoff.delay(step, None, &mut self.rng).unwrap_or(BACKOFF.1);
        self.state = State::Backoff { until: now.saturating_add(wait.max(asked)), step };
    }

    /// A response that says something is wrong with the endpoint itself.
    pub(crate) fn held(&mut self, probe: bool, now: Moment, why: HeldReason) {
        let (step, asked) = match self.state {
            State::Held { step, until, .. } if probe => (step.saturating_add(1), until),
            State::Held { .. } => return,
            // The other of two requests may have brought a `Retry-After`.
            State::Backoff { until, .. } => (1, until),
            State::Healthy => (1, now),
        };
        self.probing = self.probing && !probe;
        let wait = self.held_backoff.delay(step, None, &mut self.rng).unwrap_or(HELD_BACKOFF.1);
        self.state = State::Held { why, until: asked.max(now.saturating_add(wait)), step };
    }

    /// A response that judges the batch: the endpoint is healthy.
    pub(crate) fn judged_batch(&mut self, probe: bool) {
        if probe {
            self.probing = false;
            self.state = State::Healthy;
        }
    }

    /// A body of this size was refused as too large.
    pub(crate) fn refused_size(&mut self, probe: bool, body_len: usize) {
        self.judged_batch(probe);
        self.taken = 0;
        if mem::take(&mut self.grown) {
            self.regrow_after = (self.regrow_after * 2).min(REGROW_AFTER_MAX);
        }
        self.limit = self.limit.min(body_len / 2).max(SMALLEST_BODY);
    }

    /// The largest body to send now.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The network is back: a backoff is over. What holds the endpoint is no matter of the network.
    pub(crate) fn online(&mut self, now: Moment) {
        self.offline = false;
        if let State::Backoff { until, .. } = &mut self.state {
            *until = (*until).min(now);
        }
    }

    pub(crate) fn offline(&mut self) {
        self.offline = true;
    }

    /// A random part of `spread`, for something that others would do at the same time.
    pub(crate) fn some_time_within(&mut self, spread: Duration) -> Duration {
        self.rng.within(spread)
    }
}

#[cfg(test)]
mod tests;
