//! One endpoint, one state: may a request leave now? The same answer for live events, for replay and for a signal.

use std::fmt;
use std::mem;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use super::time::Moment;
use crate::wire::MAX_BODY;

/// 1, 2, 4 … 32 s: from a published rewrite of Facebook's Banzai client.
const BACKOFF_MAX: Duration = Duration::from_secs(32);
/// A held endpoint needs a person, or a new token: 30 s, 1, 2 … 10 min.
const HELD_FIRST: Duration = Duration::from_secs(30);
const HELD_MAX: Duration = Duration::from_secs(600);
/// A server may ask for an hour and not for longer: `Retry-After: 99999999999` is no reason to be silent for ever.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// What is added to it at random, as afterboot-retry does.
const RETRY_AFTER_SPREAD: Duration = Duration::from_secs(3);
/// So many batches in a row must be taken before a larger one is tried again, twice as many after each refusal.
const REGROW_AFTER: u32 = 8;
const REGROW_AFTER_MAX: u32 = 512;
/// Smaller than this a limit never gets: an event alone is larger, and has its own end.
const SMALLEST_BODY: usize = 512;

/// Why an endpoint is held: something a retry does not mend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HeldReason {
    /// The endpoint answered with this status: a redirect, a refused token, a proxy's own page.
    Status(u16),
    /// It answered 2xx with something that is not an ack of every event, as a captive portal does. Says what was wrong.
    NoAck(String),
    /// The token that the application gave holds a character that no header may hold.
    Token,
    /// It speaks another version of the wire format.
    WireVersion(String),
}

impl fmt::Display for HeldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldReason::Status(status) => write!(f, "status {status}"),
            HeldReason::Token => f.write_str("the token holds a character that no header may hold"),
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

/// May a request leave?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Go,
    /// One, and its outcome decides.
    Probe,
    /// Not before this moment; without one, not before something else happens.
    No(Option<Moment>),
}

#[derive(Debug)]
pub(crate) struct Endpoint {
    state: State,
    offline: bool,
    probing: bool,
    rng: StdRng,
    /// The largest body that the server is believed to take.
    limit: usize,
    taken: u32,
    regrow_after: u32,
    /// The limit was raised last, so a refusal speaks of that.
    grown: bool,
}

impl Endpoint {
    pub(crate) fn new(seed: u64) -> Endpoint {
        Endpoint {
            state: State::Healthy,
            offline: false,
            probing: false,
            rng: StdRng::seed_from_u64(seed),
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

    pub(crate) fn ask(&self, now: Moment) -> Answer {
        if self.offline {
            return Answer::No(None);
        }
        match self.state {
            State::Healthy => Answer::Go,
            _ if self.probing => Answer::No(None),
            State::Backoff { until, .. } | State::Held { until, .. } if until > now => {
                Answer::No(Some(until))
            }
            _ => Answer::Probe,
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

    /// The probe was called off: nothing was learnt.
    pub(crate) fn probe_aborted(&mut self) {
        self.probing = false;
    }

    /// An answer that settles events. Only the probe's leads out of a backoff: a request that left before the failure
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

    /// No answer, or one that a retry may mend.
    pub(crate) fn failed(&mut self, probe: bool, now: Moment, retry_after: Option<Duration>) {
        // Clients that are told the same do not come back together.
        let asked = retry_after.map_or(Duration::ZERO, |after| {
            after.min(RETRY_AFTER_MAX) + self.some_time_within(RETRY_AFTER_SPREAD)
        });
        let step = match &mut self.state {
            State::Backoff { step, .. } if probe => (*step + 1).min(5),
            // The second of two requests that failed together is no second failure.
            State::Backoff { until, .. } => return *until = (*until).max(now.saturating_add(asked)),
            State::Held { until, .. } if !probe => return *until = (*until).max(now.saturating_add(asked)),
            _ => 0,
        };
        self.probing = self.probing && !probe;
        let wait = Duration::from_secs(1 << step).min(BACKOFF_MAX).mul_f64(self.rng.random_range(0.75..=1.0));
        self.state = State::Backoff { until: now.saturating_add(wait.max(asked)), step };
    }

    /// An answer that says something is wrong with the endpoint itself.
    pub(crate) fn held(&mut self, probe: bool, now: Moment, why: HeldReason) {
        let (step, asked) = match self.state {
            State::Held { step, until, .. } if probe => ((step + 1).min(5), until),
            State::Held { .. } => return,
            // The other of two requests may have been told how long to wait.
            State::Backoff { until, .. } => (0, until),
            State::Healthy => (0, now),
        };
        self.probing = self.probing && !probe;
        let wait = (HELD_FIRST * (1 << step)).min(HELD_MAX).mul_f64(self.rng.random_range(0.75..=1.0));
        self.state = State::Held { why, until: asked.max(now.saturating_add(wait)), step };
    }

    /// An answer that judges the batch: the endpoint is there and well.
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

    /// A moment within the next `spread`, for something that others would do at the same time.
    pub(crate) fn some_time_within(&mut self, spread: Duration) -> Duration {
        let part = spread.as_secs_f64() * self.rng.random_range(0.0..=1.0);
        Duration::try_from_secs_f64(part).unwrap_or(spread)
    }
}

#[cfg(test)]
mod tests;
