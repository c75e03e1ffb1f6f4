//! What became of events, to be told when nothing is locked: whoever hears of it may post.

use super::core::Core;
use super::event::BeaconEvent;
use super::ledger::{DropReason, Place};

impl Core {
    pub(crate) fn take_told(&mut self) -> Vec<BeaconEvent> {
        std::mem::take(&mut self.told)
    }

    pub(super) fn tell_dropped(&mut self, reason: DropReason, events: u64) {
        // One for each reason, however many are dropped before the lock is free again.
        for told in &mut self.told {
            if let BeaconEvent::Dropped { reason: before, events: sum } = told
                && *before == reason
            {
                *sum += events;
                return;
            }
        }
        if events > 0 {
            self.told.push(BeaconEvent::Dropped { reason, events });
        }
    }

    pub(super) fn tell_dead(&mut self, reason: &'static str, status: Option<u16>, events: u64) {
        if events > 0 {
            self.told.push(BeaconEvent::Dead { events, reason, status });
        }
    }

    /// Dead letters of our own whose content is gone.
    pub(crate) fn letters_lost(&mut self, reason: DropReason, events: u64) {
        self.ledger.shift(Place::Dead, Place::Dropped(reason), events);
        self.tell_dropped(reason, events);
    }

    /// Events that another process left behind, and that are gone before they were ours: they are in no other ledger.
    #[cfg(any(feature = "spool", test))]
    pub(crate) fn found_lost(&mut self, reason: DropReason, events: u64) {
        if events > 0 {
            self.ledger.adopted(Place::Dropped(reason), events);
            self.tell_dropped(reason, events);
        }
    }
}
