//! Leaving, and the checkpoint that is leaving without going: one total budget.

use std::process;
use std::time::Duration;

use super::event_loop::{Another, Driver, OnSignal};
use super::listen::listen;
use crate::engine::{BeaconEvent, Moment, Now};
use crate::state::command::{Command, Leave};
use crate::state::reply::Answerer;
use crate::state::signal::{Left, LeftAnswer, Signal};
use crate::wire::Counters;

/// So much of the budget, and no more than this, is kept for writing what could not be sent.
const RESERVE_SHARE: u32 = 4;
const RESERVE_AT_MOST: Duration = Duration::from_millis(500);

/// The mark that the stream is over is worth waiting for, where nothing else is left, for this long.
const MARK_AT_MOST: Duration = Duration::from_millis(500);

/// What a second signal leaves for saving.
const SAVED_AT_ONCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Leaving {
    deadline: Moment,
    send_until: Moment,
    mark_until: Moment,
    ends: bool,
    answers: Vec<Answerer<Counters>>,
    on_signal: Vec<(Signal, Option<Answerer<LeftAnswer>>)>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Sending,
    Spooling,
    Closing,
}

impl Leaving {
    fn sends_until(&self, nothing_left: bool) -> Moment {
        if nothing_left { self.send_until.min(self.mark_until) } else { self.send_until }
    }
}

impl Driver {
    pub(super) fn begin_leaving(&mut self, leave: Leave, now: Now) {
        let Leave { deadline, ends, sends, answer } = leave;
        let mut core = self.shared.core();
        if ends {
            core.close();
            core.end_stream(now);
        }
        core.hurry(now);
        if ends && sends {
            core.hurry_replay(now);
        }
        let reserve = (deadline.saturating_sub(now.at) / RESERVE_SHARE).min(RESERVE_AT_MOST);
        let reserve = if core.has_spool() { reserve } else { Duration::ZERO };
        drop(core);
        let send_until = if sends { deadline.saturating_sub(reserve) } else { now.at };
        let mark_until = now.at + MARK_AT_MOST;
        match &mut self.leaving {
            // A second wish: the earlier deadline holds, and leaving for good outdoes a checkpoint.
            Some(leaving) => {
                leaving.deadline = leaving.deadline.min(deadline);
                leaving.send_until = leaving.send_until.min(send_until);
                leaving.ends |= ends;
                leaving.answers.extend(answer);
            }
            None => {
                let answers = answer.into_iter().collect();
                let on_signal = Vec::new();
                let phase = Phase::Sending;
                self.leaving =
                    Some(Leaving { deadline, send_until, mark_until, ends, answers, on_signal, phase });
            }
        }
    }

    /// The process is asked to go.
    pub(super) fn leave_on_signal(&mut self, which: usize, signal: Signal) {
        let now = self.shared.now();
        // Whoever asks twice does not want to wait. Listened to before the first is dropped: between them it would end us.
        self.another = listen().ok().map(Another);
        let OnSignal { deadline, answer, .. } = self.signals.swap_remove(which);
        let deadline = now.at.saturating_add(deadline);
        self.begin_leaving(Leave { deadline, ends: true, sends: true, answer: None }, now);
        if let Some(leaving) = &mut self.leaving {
            leaving.on_signal.push((signal, answer));
        }
    }

    /// A second signal: nothing more is sent, and what can be saved quickly is.
    pub(super) fn leave_at_once(&mut self) {
        self.another = None;
        let now = self.shared.now();
        if let Some(leaving) = &mut self.leaving {
            leaving.deadline = leaving.deadline.min(now.at.saturating_add(SAVED_AT_ONCE));
            leaving.send_until = now.at;
        }
    }

    /// Every handle is gone, and nobody said so.
    pub(super) fn leave_for_good(&mut self) {
        let now = self.shared.now();
        let deadline = now.at + super::disk::TIME_LIMIT;
        self.begin_leaving(Leave { deadline, ends: true, sends: false, answer: None }, now);
    }

    pub(super) fn may_send(&self) -> bool {
        self.leaving.as_ref().is_none_or(|leaving| leaving.phase == Phase::Sending)
    }

    /// Not on the way out, but for what a shutdown has time for.
    pub(super) fn may_replay(&self) -> bool {
        self.leaving.as_ref().is_none_or(|leaving| leaving.ends && leaving.phase == Phase::Sending)
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        self.leaving.as_ref().map(|leaving| leaving.phase)
    }

    pub(super) fn leaving_until(&self, nothing_left: bool) -> Moment {
        match &self.leaving {
            None => Moment::MAX,
            Some(leaving) if leaving.phase == Phase::Sending => leaving.sends_until(nothing_left),
            Some(leaving) => leaving.deadline,
        }
    }

    pub(super) fn work_on_leaving(&mut self, now: Now) {
        let Some(leaving) = &self.leaving else { return };
        let (deadline, ends) = (leaving.deadline, leaving.ends);
        if leaving.phase == Phase::Sending {
            if !self.is_done_sending(leaving, now) {
                return;
            }
            self.abort_requests();
            self.disk.last_chance();
            self.enter(Phase::Spooling);
        }
        if self.phase() == Some(Phase::Spooling) {
            if now.at < deadline && self.waits_for_disk() {
                return;
            }
            if now.at < deadline && self.begin_parting_call(now) {
                return;
            }
            if ends {
                let unsaved = self.disk.give_up_writing();
                self.shared.core().abandon(unsaved, now);
                self.enter(Phase::Closing);
                self.disk.close(now);
            } else {
                return self.left();
            }
        }
        if self.phase() == Some(Phase::Closing) && (now.at >= deadline || !self.disk.is_busy()) {
            self.left();
        }
    }

    /// A disk that hangs is waited for only where it could still save something.
    fn waits_for_disk(&self) -> bool {
        self.disk.is_busy() && !(self.disk.is_late() && self.shared.core().is_drained())
    }

    fn enter(&mut self, phase: Phase) {
        if let Some(leaving) = &mut self.leaving {
            leaving.phase = phase;
        }
    }

    /// Nothing is left, or time for sending is up, or nothing will be sent before it is.
    fn is_done_sending(&self, leaving: &Leaving, now: Now) -> bool {
        let core = self.shared.core();
        let nothing_left = core.nothing_left();
        let send_until = leaving.sends_until(nothing_left);
        if now.at >= send_until || core.is_drained() && !core.backlog_is_coming() {
            return true;
        }
        let shut = core.endpoint.opens_at().is_none_or(|at| at > send_until);
        shut && self.out.is_empty() && (nothing_left || core.has_spool())
    }

    fn left(&mut self) {
        let Some(leaving) = self.leaving.take() else { return };
        if leaving.ends {
            // From here on a signal ends the process.
            self.signals.clear();
            self.another = None;
            self.ended = true;
            self.tell(|| BeaconEvent::Left);
            // Whatever was asked meanwhile gets its answer: none.
            self.commands.close();
            while let Ok(command) = self.commands.try_recv() {
                if let Command::Leave(Leave { answer: Some(answer), .. }) = command {
                    let counters = self.shared.core().ledger.counters();
                    answer.say(counters);
                }
            }
        }
        let counters = self.shared.core().ledger.counters();
        for answer in leaving.answers {
            answer.say(counters.clone());
        }
        for (signal, answer) in leaving.on_signal {
            match answer {
                Some(answer) => answer.say(Ok(Left { signal, counters: counters.clone() })),
                // What `exit_on_signal` is for.
                None => process::exit(signal.exit_code()),
            }
        }
    }
}
