//! Losses: counted here, and reported when nothing is locked, because a receiver may post.

use super::core::Core;
use super::event::BeaconEvent;
use super::ledger::{DropReason, Place};

impl Core {
    pub(crate) fn take_events(&mut self) -> Vec<BeaconEvent> {
        std::mem::take(&mut self.events)
    }

    /// Counts events that were refused before a batch held them.
    pub(crate) fn refuse(&mut self, reason: DropReason, events: u64) {
        self.ledger.posted(Place::Dropped(reason), events);
    }

    pub(super) fn emit_dropped(&mut self, reason: DropReason, events: u64) {
        // One for each reason, however many are dropped before the lock is free again.
        for event in &mut self.events {
            if let BeaconEvent::Dropped { reason: before, events: sum } = event
                && *before == reason
            {
                *sum += events;
                return;
            }
        }
        if events > 0 {
            self.events.push(BeaconEvent::Dropped { reason, events });
        }
    }

    pub(super) fn emit_dead(&mut self, reason: &'static str, status: Option<u16>, events: u64) {
        if events > 0 {
            self.events.push(BeaconEvent::Dead { events, reason, status });
        }
    }

    /// Dead letters of our own whose content is gone.
    pub(crate) fn drop_dead_letters(&mut self, reason: DropReason, events: u64) {
        self.ledger.shift(Place::Dead, Place::Dropped(reason), events);
        self.emit_dropped(reason, events);
    }

    /// Counts events of another process that were lost before they were adopted: they are in no other ledger.
    #[cfg(any(feature = "spool", test))]
    pub(crate) fn count_foreign_loss(&mut self, reason: DropReason, events: u64) {
        if events > 0 {
            self.ledger.adopted(Place::Dropped(reason), events);
            self.emit_dropped(reason, events);
        }
    }
}
