//! What the log says of an endpoint that takes nothing: when it begins and when it is over, not at each try.

use crate::engine::endpoint::{HeldReason, State};
use crate::engine::{Moment, Now, Outcome};

/// Since when nothing arrives.
#[derive(Debug)]
struct Outage {
    since: Moment,
    /// The last reason that was logged: each has another remedy.
    held: Option<HeldReason>,
}

#[derive(Debug, Default)]
pub(super) struct OutageLog(Option<Outage>);

impl OutageLog {
    /// `waiting`: events that are to arrive yet.
    pub(super) fn note(&mut self, outcome: &Outcome, why: &str, state: &State, waiting: u64, now: Now) {
        let held = match outcome {
            Outcome::Held(held) => Some(held),
            Outcome::Retry { .. } => None,
            // Whatever else a server answers, it is there.
            _ => return self.note_end(state, waiting, now),
        };
        let outage = match &mut self.0 {
            None => self.0.insert(Outage { since: now.at, held: None }),
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

    fn note_end(&mut self, state: &State, waiting: u64, now: Now) {
        if *state != State::Healthy {
            return;
        }
        if let Some(outage) = self.0.take() {
            let after = now.at.saturating_sub(outage.since);
            tracing::warn!(?after, waiting, "the outage is over: the endpoint takes events again");
        }
    }
}
