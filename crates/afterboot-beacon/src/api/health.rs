//! The state of the endpoint and of the spool.

use std::time::Duration;

use serde::Serialize;

use crate::engine::endpoint::{HeldReason, State};
use crate::engine::{Core, Now};
use crate::state::quality::Quality;

/// Whether requests are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndpointState {
    /// Requests are sent.
    Healthy,
    /// A request failed. Nothing is sent until the next attempt.
    #[non_exhaustive]
    Backoff {
        /// The time until the next attempt.
        retry_in: Duration,
    },
    /// The endpoint refuses requests for a reason that a retry alone does not mend.
    #[non_exhaustive]
    Held {
        /// The cause.
        reason: HeldReason,
        /// The time until the next attempt.
        retry_in: Duration,
    },
    /// [`notify_offline`](crate::Beacon::notify_offline) was called.
    Offline,
    /// The beacon has shut down, or its runtime is gone. Nothing is sent any more.
    Ended,
}

/// Whether batches are kept on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpoolState {
    /// The beacon has no spool, or has ended.
    Off,
    /// The spool works, or is being opened.
    Working,
    /// The spool does not work, and why. Events stay in memory, and it is tried again.
    Failing(String),
}

/// A snapshot of the endpoint and the spool, returned by [`Beacon::health`](crate::Beacon::health).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// Whether requests are sent.
    pub endpoint: EndpointState,
    /// The share of the last 20 requests that got a valid response, from 0 to 1. `None` before the first.
    pub quality: Option<f64>,
    /// The median round trip of those that did.
    pub round_trip: Option<Duration>,
    /// The last failure, as text. `None` once a request succeeds.
    pub last_error: Option<String>,
    /// Whether batches are kept on disk.
    pub spool: SpoolState,
    /// The number of keys that the allow-lists removed from events.
    pub keys_removed: u64,
}

pub(crate) fn health(quality: &Quality, core: &Core, has_ended: bool, now: Now) -> Health {
    let mut times: Vec<Duration> = quality.tries.iter().flatten().copied().collect();
    times.sort_unstable();
    let endpoint = if has_ended {
        EndpointState::Ended
    } else if core.endpoint().is_offline() {
        EndpointState::Offline
    } else {
        match core.endpoint().state() {
            State::Healthy => EndpointState::Healthy,
            State::Backoff { until, .. } => EndpointState::Backoff { retry_in: until.saturating_sub(now.at) },
            State::Held { why, until, .. } => {
                EndpointState::Held { reason: why.clone(), retry_in: until.saturating_sub(now.at) }
            }
        }
    };
    let spool = match &quality.spool_trouble {
        _ if has_ended => SpoolState::Off,
        Some(why) => SpoolState::Failing(why.clone()),
        None if core.has_spool() => SpoolState::Working,
        None => SpoolState::Off,
    };
    Health {
        endpoint,
        quality: (!quality.tries.is_empty()).then(|| times.len() as f64 / quality.tries.len() as f64),
        round_trip: times.get(times.len() / 2).copied(),
        last_error: quality.last_error.clone(),
        spool,
        keys_removed: quality.keys_removed,
    }
}
