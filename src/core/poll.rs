//! The begin and the end of a governed poll.

use std::time::Duration;

use crate::base::clock::Stamp;
use crate::model::id::Id;
use crate::model::outcome::Outcome;

use super::actions::{Actions, AfterPoll};
use super::polling::Polling;
use super::scheduler::Core;
use super::stalls::{Poll, WORTH_REMEMBERING, Whose};

impl Core {
    /// The lane polls this task from now on.
    pub(crate) fn poll_begins(&mut self, id: Id, worker: Option<usize>, now: Stamp) {
        let charge = self.take_charge();
        self.polls.now = Some(Polling { id, since: now, worker, woken: None, charge });
    }

    /// When the poll that has just begun was asked for.
    pub(crate) fn poll_was_asked_for(&mut self, woken: Option<Stamp>) {
        if let Some(polling) = &mut self.polls.now {
            polling.woken = woken;
        }
    }

    /// The poll that [`poll_begins`](Core::poll_begins) announced is over; `took` is real time.
    pub(crate) fn poll_ended(
        &mut self,
        id: Id,
        took: Duration,
        outcome: Option<Outcome>,
        now: Stamp,
        actions: &mut Actions,
    ) -> AfterPoll {
        self.cost.polls += 1;
        let was_stuck = self.is_stuck(id);
        let polling = self.poll_is_over(id);
        let (began, worker) = polling.map_or((now, None), |polling| (polling.since, polling.worker));
        let ran = self.stops.ran(began, now);
        let took = took.saturating_sub(now.since(began).saturating_sub(ran));
        if let Some(polling) = polling {
            self.charge(polling.charge, ran);
        }
        let pulse = self.profile.pulse;
        let record = self.table.live(id);
        record.polls = record.polls.saturating_add(1);
        record.longest_poll = record.longest_poll.max(took);
        if std::mem::take(&mut record.awaiting_first_poll) {
            // Not sooner than was promised: a demand during the delay does not end it.
            self.next_start = self.next_start.max(Some(now.after(pulse)));
        }
        if matches!(outcome, Some(Outcome::Skipped(_))) {
            // Its condition, asked in its tick, was false: none of its own code has run.
            record.started = None;
            record.polls = 0;
            record.attempts = 0;
            record.longest_poll = Duration::ZERO;
        }
        if self.records_segments {
            let woken = polling.and_then(|polling| polling.woken);
            record.ties_mut().record(began, now.since(began), woken);
        }
        if ran >= WORTH_REMEMBERING {
            let name = record.name.shared();
            let whose = Whose::Governed(record.line);
            self.stalls.poll_ended(Poll { start: began, end: Some(now), name, whose, worker });
        }
        let after_poll = self.after_poll(id, outcome, now, actions);
        if was_stuck && after_poll == AfterPoll::Keep {
            // The lane did not poll it meanwhile: what woke it has not been answered.
            actions.repoll.push(id);
        }
        after_poll
    }
}
