//! How far a checkpoint or a shutdown has come.

use crate::engine::Moment;
use crate::state::reply::Responder;
use crate::state::signal::{ShutDownResult, Signal};
use crate::wire::Counters;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Sending,
    Spooling,
    Closing,
}

/// A checkpoint or a shutdown under way: one total budget.
#[derive(Debug)]
pub(super) struct Draining {
    pub(super) deadline: Moment,
    pub(super) send_until: Moment,
    pub(super) marker_until: Moment,
    pub(super) ends: bool,
    pub(super) responders: Vec<Responder<Counters>>,
    pub(super) on_signal: Vec<(Signal, Option<Responder<ShutDownResult>>)>,
    pub(super) phase: Phase,
}

impl Draining {
    pub(super) fn sends_until(&self, is_idle: bool) -> Moment {
        if is_idle { self.send_until.min(self.marker_until) } else { self.send_until }
    }
}

/// What the disk may be used for at this moment.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "spool"), expect(dead_code, reason = "without a spool there is no disk"))]
pub(super) struct DiskScope {
    /// Calls of its own accord. While a drain writes, it makes them.
    pub(super) works: bool,
    pub(super) replays: bool,
    /// Taking over what other processes left.
    pub(super) adopts: bool,
}
