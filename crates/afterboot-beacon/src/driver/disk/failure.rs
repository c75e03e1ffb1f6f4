//! Calls that failed or took too long.

use std::mem;

use super::payload::Payload;
use super::rows;
use super::state::{Disk, Erasing};
use crate::base::lock::lock;
use crate::engine::{BeaconEvent, Now};
use crate::state::command::DeadCommand;

impl Disk {
    /// The call goes on, and the disk with it; what it carried goes on in memory.
    pub(super) fn abandon_call(&mut self, now: Now) {
        let Some(pending) = &mut self.pending else { return };
        pending.is_late = true;
        let payload = mem::replace(&mut pending.payload, Payload::Abandoned);
        if let Payload::Batches(batches) = &payload {
            let replaced = rows::replaced(batches);
            self.shared.core().doubt_rows(replaced.into_iter().map(|row| row.0));
        }
        self.call_failed("the disk did not answer in time", payload, now);
    }

    pub(super) fn call_failed(&mut self, why: &str, payload: Payload, now: Now) {
        let trouble = if self.is_late() { self.backoff.hung() } else { self.backoff.failed(now) };
        self.trouble = Some(trouble);
        self.shared.core().spool_lost();
        match payload {
            Payload::Nothing | Payload::Abandoned => {}
            Payload::Rows(rows) => self.shared.core().return_settled_rows(rows),
            Payload::Batches(batches) => self.shared.core().not_spooled(batches, why),
            Payload::Dead(dead) => self.shared.core().return_dead(dead),
            Payload::Erase { responder, .. } => responder.send(Err(why.to_owned())),
            Payload::Command(command) => refuse_command(command, why),
        }
        let first = lock(&self.shared.quality).spool_trouble.replace(why.to_owned()).is_none();
        if first {
            tracing::warn!(why, "the spool does not work: events stay in memory");
            self.shared.emit(|| BeaconEvent::SpoolFailed { reason: why.to_owned() });
        }
    }

    /// A call has succeeded.
    pub(super) fn works(&mut self, now: Now) {
        self.trouble = None;
        if !self.shared.core().has_spool() {
            self.shared.core().spool_found(now);
        }
        if lock(&self.shared.quality).spool_trouble.take().is_some() {
            self.shared.emit(|| BeaconEvent::SpoolRecovered);
        }
    }

    /// While the disk does not work, receipts and commands are answered at once.
    pub(super) fn refuse(&mut self, now: Now) {
        let why = lock(&self.shared.quality).spool_trouble.clone().unwrap_or_default();
        let mut core = self.shared.core();
        let batches = core.take_for_disk(now);
        core.not_spooled(batches, &why);
        drop(core);
        self.refuse_commands(&why);
    }

    pub(super) fn refuse_commands(&mut self, why: &str) {
        for command in mem::take(&mut self.commands) {
            refuse_command(command, why);
        }
        for Erasing { responder, in_memory, .. } in mem::take(&mut self.erasing) {
            // Where there is no spool, all that there is has been erased.
            let has_none = !self.options.has_spool();
            responder.send(if has_none { Ok(in_memory) } else { Err(why.to_owned()) });
        }
    }
}

fn refuse_command(command: DeadCommand, why: &str) {
    match command {
        DeadCommand::List { responder, .. } => responder.send(Err(why.to_owned())),
        DeadCommand::Replay { responder, .. } | DeadCommand::Purge { responder, .. } => {
            responder.send(Err(why.to_owned()))
        }
    }
}
