//! How the network and the disk fare, from results.

use std::time::Duration;

use serde::Serialize;

use crate::engine::endpoint::{HeldReason, State};
use crate::engine::{Core, Now};
use crate::state::quality::Quality;

/// May requests leave?
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndpointState {
    /// They may.
    Healthy,
    /// The server failed, or did not answer.
    Backoff {
        /// Until one request tries again.
        left: Duration,
    },
    /// Something is wrong that a retry does not mend.
    Held {
        /// What.
        why: HeldReason,
        /// Until one request tries again.
        left: Duration,
    },
    /// [`notify_offline`](crate::Beacon::notify_offline) was called.
    Offline,
    /// The beacon has ended, whether it was asked to or its runtime went away: nothing is sent any more.
    Ended,
}

/// Does the spool work?
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpoolState {
    /// There is none, or the beacon has ended.
    Off,
    /// It works, or is being opened.
    Working,
    /// It does not. Events stay in memory meanwhile, and it is tried again.
    Trouble(String),
}

/// One look at the beacon's surroundings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// May requests leave?
    pub endpoint: EndpointState,
    /// The share of the last 20 requests that got an answer the server meant, from 0 to 1. None before the first.
    pub quality: Option<f64>,
    /// The median time to an answer among them.
    pub round_trip: Option<Duration>,
    /// What the last failure was, in words, until a request succeeds.
    pub last_error: Option<String>,
    /// Does the spool work?
    pub spool: SpoolState,
    /// Keys that the allow-lists took out of events.
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
            State::Backoff { until, .. } => EndpointState::Backoff { left: until.saturating_sub(now.at) },
            State::Held { why, until, .. } => {
                EndpointState::Held { why: why.clone(), left: until.saturating_sub(now.at) }
            }
        }
    };
    let spool = match &quality.spool_trouble {
        _ if has_ended => SpoolState::Off,
        Some(why) => SpoolState::Trouble(why.clone()),
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
