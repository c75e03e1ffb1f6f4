//! Leaving, and the checkpoint that is leaving without going: one total budget.

use std::time::Duration;

use super::{Command, Driver};
use crate::answer::Answerer;
use crate::core::{Batch, Moment, Now};
use crate::event::BeaconEvent;
use crate::wire::Counters;

/// So much of the budget, and no more than this, is kept for writing what could not be sent.
const RESERVE_SHARE: u32 = 4;
const RESERVE_AT_MOST: Duration = Duration::from_millis(500);

/// So many batches are written at a time: what is written when time is up is saved, and compressing them takes milliseconds.
const WRITE_AT_ONCE: usize = 10;

/// A wish to leave.
#[derive(Debug)]
pub(crate) struct Leave {
    pub(crate) deadline: Moment,
    /// For good: nothing is taken in any more, and the driver ends.
    pub(crate) ends: bool,
    /// Is there time to send? A beacon that is dropped only saves.
    pub(crate) sends: bool,
    pub(crate) answer: Option<Answerer<Counters>>,
}

#[derive(Debug)]
pub(super) struct Leaving {
    deadline: Moment,
    send_until: Moment,
    ends: bool,
    answers: Vec<Answerer<Counters>>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Sending,
    Spooling,
    Closing,
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
        let reserve = (deadline.saturating_sub(now.at) / RESERVE_SHARE).min(RESERVE_AT_MOST);
        let reserve = if core.has_spool() { reserve } else { Duration::ZERO };
        drop(core);
        let send_until = if sends { deadline.saturating_sub(reserve) } else { now.at };
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
                self.leaving = Some(Leaving { deadline, send_until, ends, answers, phase: Phase::Sending });
            }
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

    pub(super) fn phase(&self) -> Option<Phase> {
        self.leaving.as_ref().map(|leaving| leaving.phase)
    }

    pub(super) fn leaving_until(&self) -> Moment {
        match &self.leaving {
            None => Moment::MAX,
            Some(leaving) if leaving.phase == Phase::Sending => leaving.send_until,
            Some(leaving) => leaving.deadline,
        }
    }

    pub(super) fn work_on_leaving(&mut self, now: Now) {
        let Some(leaving) = &self.leaving else { return };
        let (deadline, send_until, ends) = (leaving.deadline, leaving.send_until, leaving.ends);
        if leaving.phase == Phase::Sending {
            if !self.is_done_sending(send_until, now) {
                return;
            }
            self.abort_requests();
            self.enter(Phase::Spooling);
        }
        if self.phase() == Some(Phase::Spooling) {
            if now.at < deadline && self.disk.is_busy() {
                return;
            }
            let saved = now.at >= deadline || !self.spool_some(now);
            if !saved && now.at < deadline {
                return;
            }
            if ends {
                let unsaved = self.disk.give_up_writing();
                self.shared.core().abandon(unsaved, now);
                self.enter(Phase::Closing);
                self.disk.close();
            } else {
                return self.left();
            }
        }
        if self.phase() == Some(Phase::Closing) && (now.at >= deadline || !self.disk.is_busy()) {
            self.left();
        }
    }

    fn enter(&mut self, phase: Phase) {
        if let Some(leaving) = &mut self.leaving {
            leaving.phase = phase;
        }
    }

    /// Nothing is left, or time for sending is up, or nothing will be sent before it is.
    fn is_done_sending(&self, send_until: Moment, now: Now) -> bool {
        let core = self.shared.core();
        if now.at >= send_until || core.is_drained() {
            return true;
        }
        let shut = core.endpoint.opens_at().is_none_or(|at| at > send_until);
        shut && self.out.is_empty() && core.has_spool()
    }

    /// Begins to write some of what is left in memory. False: nothing is, or there is no disk to write to.
    fn spool_some(&mut self, now: Now) -> bool {
        if !self.disk.can_write() {
            return false;
        }
        // What is settled must not be read back by whoever comes next.
        let settled = self.shared.core().take_settled_rows();
        if !settled.is_empty() {
            self.disk.delete(settled, now);
            return true;
        }
        let batches: Vec<Batch> = self.shared.core().take_to_leave(WRITE_AT_ONCE, now);
        if batches.is_empty() {
            return false;
        }
        self.disk.put(batches, now);
        true
    }

    fn left(&mut self) {
        let Some(leaving) = self.leaving.take() else { return };
        if leaving.ends {
            self.ended = true;
            self.tell(|| BeaconEvent::Left);
            // Whatever was asked meanwhile gets its answer: none.
            self.commands.close();
            while let Ok(command) = self.commands.try_recv() {
                if let Command::Leave(Leave { answer: Some(answer), .. }) = command {
                    answer.say(self.shared.core().ledger.counters());
                }
            }
        }
        let counters = self.shared.core().ledger.counters();
        for answer in leaving.answers {
            answer.say(counters.clone());
        }
    }
}
