//! A disk that does not work, and when it is asked again.

use std::time::Duration;

use super::{InHand, rows};
use crate::base::lock::lock;
use crate::driver::disk::Disk;
use crate::driver::event_loop::Driver;
use crate::engine::{BeaconEvent, Moment, Now};

/// Whoever wants something of a disk that has failed within this time hears so; later, the disk is asked.
const FAILED_JUST_NOW: Duration = Duration::from_millis(500);

/// A disk that nobody wants anything of is asked again after a second, then 2, 4 … 30 s.
const FIRST_AGAIN: Duration = Duration::from_secs(1);
const LAST_AGAIN: Duration = Duration::from_secs(30);

/// It does not work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    /// Before this moment nobody asks it.
    soon: Moment,
    /// At this moment it is asked, whether or not somebody wants something of it.
    again: Moment,
}

/// What a disk in trouble is asked for at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    No,
    /// What is wanted, if something is.
    Wanted,
    /// Anything: does it work again?
    Any,
}

impl Trouble {
    pub(super) fn attempt(&self, now: Now) -> Attempt {
        if now.at >= self.again {
            Attempt::Any
        } else if now.at >= self.soon {
            Attempt::Wanted
        } else {
            Attempt::No
        }
    }

    pub(super) fn again(&self) -> Moment {
        self.again
    }
}

impl Disk {
    fn failed(&mut self, now: Now) {
        // One that hangs is not asked at all: its thread says when it is back.
        let is_late = self.busy.as_ref().is_some_and(|busy| busy.is_late);
        let after = |wait| if is_late { Moment::MAX } else { now.at.saturating_add(wait) };
        let trouble = Trouble { soon: after(FAILED_JUST_NOW), again: after(self.again_after) };
        self.trouble = Some(trouble);
        self.again_after = (self.again_after * 2).min(LAST_AGAIN);
    }

    /// Not after a mere look: a full disk passes that, and takes nothing.
    pub(super) fn took_something(&mut self) {
        self.again_after = FIRST_AGAIN;
    }

    pub(super) fn first_again() -> Duration {
        FIRST_AGAIN
    }
}

impl Driver {
    /// The call goes on, and the disk with it; what it had in hand goes on in memory.
    pub(super) fn leave_behind(&mut self, now: Now) {
        let Some(busy) = &mut self.disk.busy else { return };
        busy.is_late = true;
        let in_hand = std::mem::replace(&mut busy.in_hand, InHand::LeftBehind);
        if let InHand::Batches(batches) = &in_hand {
            let replaced = rows::replaced(batches);
            self.shared.core().rows_are_doubtful(replaced.into_iter().map(|row| row.0));
        }
        self.call_failed("the disk did not answer in time", in_hand, now);
    }

    pub(super) fn call_failed(&mut self, why: &str, in_hand: InHand, now: Now) {
        self.disk.failed(now);
        self.shared.core().spool_lost();
        match in_hand {
            InHand::Nothing | InHand::LeftBehind => {}
            InHand::Rows(rows) => self.shared.core().keep_settled_rows(rows),
            InHand::Batches(batches) => self.shared.core().not_spooled(batches, why),
            InHand::Dead(dead) => self.shared.core().keep_dead(dead),
            InHand::Erase { answer, .. } => answer.say(Err(why.to_owned())),
            InHand::Asked(command) => super::refuse(command, why),
        }
        let first = lock(&self.shared.quality).spool_trouble.replace(why.to_owned()).is_none();
        if first {
            tracing::warn!(why, "the spool does not work: events stay in memory");
            self.tell(|| BeaconEvent::SpoolTrouble { why: why.to_owned() });
        }
    }

    /// It has answered, and well.
    pub(super) fn works(&mut self) {
        self.disk.trouble = None;
        if !self.shared.core().has_spool() {
            self.shared.core().spool_found();
        }
        if lock(&self.shared.quality).spool_trouble.take().is_some() {
            self.tell(|| BeaconEvent::SpoolBack);
        }
    }

    /// While it does not work, nobody waits for it.
    pub(super) fn refuse_disk(&mut self, now: Now) {
        let why = lock(&self.shared.quality).spool_trouble.clone().unwrap_or_default();
        let mut core = self.shared.core();
        let batches = core.take_for_disk(now);
        core.not_spooled(batches, &why);
        drop(core);
        self.refuse_commands(&why);
    }
}
