//! Which call is made next.

use super::call::{self, Call};
use super::payload::Payload;
use super::rows;
use super::state::{Disk, Erasing, Finished, PendingCall, TIDY_EVERY, TIME_LIMIT};
use super::trouble::Attempt;
use super::worker::Worker;
use crate::base::bounds::MAX_LETTER;
use crate::driver::phase::DiskScope;
use crate::engine::Now;
use crate::state::command::DeadCommand;
use crate::state::reply::Responder;

/// On the way out so many batches are written at a time: what is written when time is up is saved, and compressing them
/// takes milliseconds.
const WRITE_AT_ONCE: usize = 10;

impl Disk {
    pub(in crate::driver) fn work(&mut self, scope: DiskScope, now: Now) {
        if !self.options.has_spool() {
            let mut core = self.shared.core();
            core.take_dead();
            let batches = core.take_for_disk(now);
            core.spool_is_off(batches);
            drop(core);
            return self.refuse_commands("the beacon has no spool");
        }
        match &self.pending {
            Some(pending) if pending.is_late => return self.refuse(now),
            Some(pending) if pending.deadline > now.at => return,
            Some(_) => {
                self.abandon_call(now);
                return self.refuse(now);
            }
            None => {}
        }
        if self.closing || !scope.works {
            return;
        }
        let attempt = self.trouble.map(|trouble| trouble.attempt(now));
        if attempt == Some(Attempt::Refused) {
            return self.refuse(now);
        }
        if attempt == Some(Attempt::IfWanted) && !self.is_wanted() {
            return;
        }
        let Some((call, payload)) = self.next_call(scope, now) else {
            if attempt == Some(Attempt::Due) {
                self.begin_call(Call::Probe, Payload::Nothing, now);
            }
            return;
        };
        self.begin_call(call, payload, now);
    }

    /// Returns whether a receipt or the reply to a command is pending.
    fn is_wanted(&self) -> bool {
        let commands = !self.commands.is_empty() || !self.erasing.is_empty();
        commands || self.shared.core().has_pending_receipts()
    }

    /// Returns false where no thread is to be had for it.
    fn begin_call(&mut self, call: Call, payload: Payload, now: Now) -> bool {
        if self.worker.is_none() {
            match Worker::start(&self.options.machine) {
                Ok(worker) => self.worker = Some(worker),
                Err(error) => {
                    self.call_failed(&format!("cannot spawn the thread for the disk: {error}"), payload, now);
                    return false;
                }
            }
        }
        if let Some(worker) = &self.worker {
            let done = worker.call(call, self.options.durability, rows::stamp(now));
            let deadline = now.at.saturating_add(TIME_LIMIT);
            self.pending = Some(PendingCall { done, payload, deadline, is_late: false });
        }
        true
    }

    /// On the way out: what is in memory, dead letters and settled rows. Returns true if a call was made.
    pub(in crate::driver) fn begin_final_call(&mut self, now: Now) -> bool {
        if self.trouble.is_some() || self.is_busy() {
            return false;
        }
        if !self.is_open {
            let Some(open) = self.open_call() else { return false };
            let needed = !self.shared.core().is_drained();
            return needed && self.begin_call(open, Payload::Nothing, now);
        }
        let mut core = self.shared.core();
        let batches = core.take_for_shutdown(WRITE_AT_ONCE, now);
        let call =
            if batches.is_empty() { call::leftovers(&mut core, now) } else { Some(call::put(batches)) };
        drop(core);
        let Some((call, payload)) = call else { return false };
        self.begin_call(call, payload, now)
    }

    fn open_call(&self) -> Option<Call> {
        let options = self.options.spool.clone()?;
        Some(Call::Open { options, app: self.app.clone(), last_row: self.last_row })
    }

    /// Batches come first: [`Call::Put`] writes them by [`Spool::change`](crate::spool::Spool::change).
    fn next_call(&mut self, scope: DiskScope, now: Now) -> Option<(Call, Payload)> {
        if !self.is_open {
            return self.open_call().map(|open| (open, Payload::Nothing));
        }
        let mut core = self.shared.core();
        let batches = core.take_for_disk(now);
        if !batches.is_empty() {
            return Some(call::put(batches));
        }
        if let Some(call) = call::leftovers(&mut core, now) {
            return Some(call);
        }
        if let Some(Erasing { user, responder, in_memory }) = self.erasing.pop() {
            core.erase_replayed(&user);
            return Some((Call::Erase(user), Payload::Erase { responder, in_memory }));
        }
        if !self.commands.is_empty() {
            let command = self.commands.remove(0);
            return Some((Call::of(&command), Payload::Command(command)));
        }
        if scope.replays && core.replay_is_due(now) {
            let user = core.replay_user();
            let skip = core.resident_rows();
            return Some((Call::Replay { user, skip, adopts: scope.adopts }, Payload::Nothing));
        }
        if now.at >= self.tidy_at {
            self.tidy_at = now.at + TIDY_EVERY;
            return Some((Call::Tidy, Payload::Nothing));
        }
        None
    }

    pub(in crate::driver) fn call_finished(&mut self, finished: Finished) {
        let now = self.shared.now();
        let Finished(done, payload) = finished;
        match done {
            Some(done) => self.call_done(done, payload, now),
            // A call is ours and does not panic; if it does, the spool has gone with it.
            None => {
                (self.worker, self.is_open) = (None, false);
                self.call_failed("the disk's thread ended", payload, now);
                let last = self.shared.core().forget_spool();
                self.last_row = self.last_row.max(last);
            }
        }
    }

    pub(in crate::driver) fn queue_command(&mut self, command: DeadCommand) {
        self.commands.push(command);
    }

    pub(in crate::driver) fn erase(
        &mut self,
        user: String,
        responder: Responder<Result<u64, String>>,
        now: Now,
    ) {
        let in_memory = self.shared.core().erase_user(&user, now);
        // A name that fits into no row, which the database would not even look for.
        if user.len() > MAX_LETTER {
            return responder.send(Ok(in_memory));
        }
        self.erasing.push(Erasing { user, responder, in_memory });
    }
}
