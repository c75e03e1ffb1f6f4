//! What the log says of an endpoint that takes nothing: when it begins and when it is over, not at each try.

use super::event_loop::Driver;
use crate::engine::endpoint::{HeldReason, State};
use crate::engine::verdict::Outcome;
use crate::engine::{Moment, Now};

/// Since when nothing arrives.
#[derive(Debug)]
pub(super) struct Outage {
    since: Moment,
    /// The last one that the log was told: each has another remedy.
    held: Option<HeldReason>,
}

impl Driver {
    pub(super) fn note_outage(&mut self, outcome: &Outcome, why: &str, state: &State, now: Now) {
        let held = match outcome {
            Outcome::Held(held) => Some(held),
            Outcome::Retry { .. } => None,
            // Whatever else a server answers, it is there.
            _ => return self.note_end(state, now),
        };
        let waiting = self.waiting();
        let outage = match &mut self.outage {
            None => self.outage.insert(Outage { since: now.at, held: None }),
            Some(outage) if held.is_some() && outage.held.as_ref() != held => outage,
            Some(_) => return,
        };
        outage.held = held.cloned();
        match held {
            Some(_) => {
                tracing::warn!(%why, waiting, "the endpoint is held: events wait until it takes them");
            }
            None => tracing::warn!(%why, waiting, "the endpoint does not answer: events wait until it does"),
        }
    }

    fn note_end(&mut self, state: &State, now: Now) {
        if *state != State::Healthy {
            return;
        }
        if let Some(outage) = self.outage.take() {
            let (after, waiting) = (now.at.saturating_sub(outage.since), self.waiting());
            tracing::warn!(?after, waiting, "the outage is over: the endpoint takes events again");
        }
    }

    /// Events that are to arrive yet.
    fn waiting(&self) -> u64 {
        let counters = self.shared.core().ledger.counters();
        counters.queued + counters.in_flight + counters.spooled
    }
}
