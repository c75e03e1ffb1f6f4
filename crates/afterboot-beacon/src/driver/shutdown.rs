//! Checkpoint and shutdown: both drain the memory within one total budget, and a shutdown ends the beacon then.

use std::process;
use std::time::Duration;

use super::disk;
use super::event_loop::{Driver, OnSignal, SecondSignal};
use super::listen::listen;
use super::phase::{DiskScope, Draining, Phase};
use crate::engine::{BeaconEvent, Moment, Now};
use crate::state::command::{Command, Drain};
use crate::state::signal::{ShutDown, Signal};

/// So much of the budget, and no more than this, is kept for writing what could not be sent.
const RESERVE_SHARE: u32 = 4;
const RESERVE_AT_MOST: Duration = Duration::from_millis(500);

/// The marker that ends the stream is waited for, where nothing else is left, for this long.
const MARKER_AT_MOST: Duration = Duration::from_millis(500);

/// What a second signal leaves for saving.
const SAVED_AT_ONCE: Duration = Duration::from_millis(500);

impl Driver {
    pub(super) fn begin_drain(&mut self, drain: Drain, now: Now) {
        let Drain { deadline, ends, sends, responder } = drain;
        let mut core = self.shared.core();
        if ends {
            core.close();
            core.end_stream(now);
        }
        core.make_all_due(now);
        if ends && sends {
            core.replay_now(now);
        }
        let reserve = (deadline.saturating_sub(now.at) / RESERVE_SHARE).min(RESERVE_AT_MOST);
        let reserve = if core.has_spool() { reserve } else { Duration::ZERO };
        drop(core);
        let send_until = if sends { deadline.saturating_sub(reserve) } else { now.at };
        let marker_until = now.at + MARKER_AT_MOST;
        match &mut self.draining {
            // The earlier deadline holds, and a shutdown outdoes a checkpoint.
            Some(draining) => {
                draining.deadline = draining.deadline.min(deadline);
                draining.send_until = draining.send_until.min(send_until);
                draining.ends |= ends;
                draining.responders.extend(responder);
            }
            None => {
                let responders = responder.into_iter().collect();
                let on_signal = Vec::new();
                let phase = Phase::Sending;
                self.draining =
                    Some(Draining { deadline, send_until, marker_until, ends, responders, on_signal, phase });
            }
        }
    }

    /// A signal asks the process to end.
    pub(super) fn drain_on_signal(&mut self, which: usize, signal: Signal) {
        let now = self.shared.now();
        // Listened to before the first is dropped: a second signal between them would end the process.
        self.second_signal = listen().ok().map(SecondSignal);
        let OnSignal { deadline, responder, .. } = self.signals.swap_remove(which);
        let deadline = now.at.saturating_add(deadline);
        self.begin_drain(Drain { deadline, ends: true, sends: true, responder: None }, now);
        if let Some(draining) = &mut self.draining {
            draining.on_signal.push((signal, responder));
        }
    }

    /// A second signal: nothing more is sent, and what can be saved quickly is.
    pub(super) fn cut_drain_short(&mut self) {
        self.second_signal = None;
        let now = self.shared.now();
        if let Some(draining) = &mut self.draining {
            draining.deadline = draining.deadline.min(now.at.saturating_add(SAVED_AT_ONCE));
            draining.send_until = now.at;
        }
    }

    /// Every handle is gone.
    pub(super) fn drain_without_handles(&mut self) {
        let now = self.shared.now();
        let deadline = now.at + disk::TIME_LIMIT;
        self.begin_drain(Drain { deadline, ends: true, sends: false, responder: None }, now);
    }

    pub(super) fn may_send(&self) -> bool {
        self.draining.as_ref().is_none_or(|draining| draining.phase == Phase::Sending)
    }

    pub(super) fn may_replay(&self) -> bool {
        self.may_send() && self.draining.as_ref().is_none_or(|draining| draining.ends)
    }

    /// A shutdown that has time to send sends the backlog too. A checkpoint does not, and neither takes anything over.
    pub(super) fn disk_scope(&self) -> DiskScope {
        let adopts = self.draining.is_none();
        DiskScope { works: self.may_send(), replays: self.may_replay(), adopts }
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        self.draining.as_ref().map(|draining| draining.phase)
    }

    pub(super) fn drain_wake(&self, is_idle: bool) -> Moment {
        match &self.draining {
            None => Moment::MAX,
            Some(draining) if draining.phase == Phase::Sending => draining.sends_until(is_idle),
            Some(draining) => draining.deadline,
        }
    }

    pub(super) fn advance_drain(&mut self, now: Now) {
        let Some(draining) = &self.draining else { return };
        let (deadline, ends) = (draining.deadline, draining.ends);
        if draining.phase == Phase::Sending {
            if !self.is_done_sending(draining, now) {
                return;
            }
            self.abort_requests();
            self.disk.forget_trouble();
            self.enter(Phase::Spooling);
        }
        if self.phase() == Some(Phase::Spooling) {
            if now.at < deadline && self.waits_for_disk() {
                return;
            }
            if now.at < deadline && self.disk.begin_final_call(now) {
                return;
            }
            if ends {
                let unsaved = self.disk.take_unwritten();
                self.shared.core().drop_unsaved(unsaved, now);
                self.enter(Phase::Closing);
                self.disk.close(now);
            } else {
                return self.finish_drain();
            }
        }
        if self.phase() == Some(Phase::Closing) && (now.at >= deadline || !self.disk.is_busy()) {
            self.finish_drain();
        }
    }

    /// A disk that hangs is waited for only where it could still save something.
    fn waits_for_disk(&self) -> bool {
        self.disk.is_busy() && !(self.disk.is_late() && self.shared.core().is_drained())
    }

    fn enter(&mut self, phase: Phase) {
        if let Some(draining) = &mut self.draining {
            draining.phase = phase;
        }
    }

    /// Nothing is left, or time for sending is up, or nothing will be sent before it is.
    fn is_done_sending(&self, draining: &Draining, now: Now) -> bool {
        let core = self.shared.core();
        let is_idle = core.is_idle();
        let send_until = draining.sends_until(is_idle);
        if now.at >= send_until || core.is_drained() && !core.has_pending_backlog() {
            return true;
        }
        let shut = core.endpoint().opens_at().is_none_or(|at| at > send_until);
        shut && self.out.is_empty() && (is_idle || core.has_spool())
    }

    fn finish_drain(&mut self) {
        let Some(draining) = self.draining.take() else { return };
        if draining.ends {
            // From here on a signal ends the process.
            self.signals.clear();
            self.second_signal = None;
            self.ended = true;
            self.emit(|| BeaconEvent::ShutDown);
            // Commands that came meanwhile get no reply.
            self.commands.close();
            while let Ok(command) = self.commands.try_recv() {
                if let Command::Drain(Drain { responder: Some(responder), .. }) = command {
                    let counters = self.shared.core().counters();
                    responder.send(counters);
                }
            }
        }
        let counters = self.shared.core().counters();
        for responder in draining.responders {
            responder.send(counters.clone());
        }
        for (signal, responder) in draining.on_signal {
            match responder {
                Some(responder) => responder.send(Ok(ShutDown { signal, counters: counters.clone() })),
                // Asked for by `exit_on_signal`.
                None => process::exit(signal.exit_code()),
            }
        }
    }
}
