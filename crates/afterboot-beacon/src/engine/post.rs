//! Accepting an event, on the application's thread and under the lock: nothing waits and nothing is encoded here.

use super::batch::{BATCH_BYTES, SLOT_BYTES, name_bytes};
use super::core::Core;
use super::exchange::{Posting, Refusal};
use super::ledger::{DropReason, Place};
use super::limits::{LANES, MAX_IN_FLIGHT, lane};
use super::open::{KEY_BYTES, Open};
use super::receipt::NotDurable;
use super::time::Now;
use crate::base::bounds::MAX_LETTER;
use crate::wire::{BatchWriter, Priority};

impl Core {
    /// Takes an event in. `Ok(true)`: the driver has to be woken.
    pub(crate) fn post(&mut self, mut posting: Posting<'_>, now: Now) -> Result<bool, Refusal> {
        let refused = self.admit(&posting, now);
        if let Err(refusal) = refused {
            if let Some(receipt) = posting.receipt.take() {
                let why = match refusal {
                    Refusal::Dropped(reason) => NotDurable::Dropped(reason),
                    Refusal::Oversize => NotDurable::Oversize,
                };
                self.replies.push(receipt.defer(Err(why)));
            }
            if refusal == Refusal::Oversize {
                self.make_oversize_dead(&posting, now);
            }
            return Err(refusal);
        }
        let lane = lane(posting.priority);
        let mut wake = self.seal_if_full(&posting, now);
        if self.open[lane].is_none() {
            let batch = self.new_batch(posting.priority, now);
            self.bytes += batch.bytes();
            self.open[lane] = Some(Open::new(batch));
        }
        let Some(open) = &mut self.open[lane] else { return Ok(false) };

        let merge = posting.merge.filter(|_| posting.receipt.is_none()).map(|key| (posting.route, key));
        if let Some((route, key)) = merge {
            let before = open.bytes();
            if open.replace(route, key, now.at) {
                self.bytes -= before - open.bytes();
                self.ledger.shift(Place::Queued, Place::Merged, 1);
            }
        }
        let before = open.bytes();
        open.push(posting.encoded, merge, now.at);
        self.bytes += open.bytes() - before;
        self.ledger.posted(Place::Queued, 1);

        let batch = &mut open.batch;
        batch.newest_at = batch.newest_at.max(now.wall);
        batch.expires = batch.expires.max(now.after(posting.expiry));
        batch.life = batch.life.max(posting.expiry);
        // Only ever earlier: a steady stream cannot postpone it.
        let due = if posting.urgent { now.at } else { now.at.saturating_add(posting.delay) };
        batch.due = batch.due.min(due);
        let durable = posting.receipt.is_some();
        batch.receipts.extend(posting.receipt);
        let due = batch.due;
        let full = batch.len() >= self.limits.batch_events;
        if full {
            batch.due = now.at;
            self.seal(posting.priority);
        }
        wake |= (full && self.endpoint.is_open() && self.in_flight < MAX_IN_FLIGHT)
            || durable
            || due < self.wake_at
            || self.wants_disk_for_room();
        if wake {
            // Once: the driver sets the next moment when it goes back to sleep.
            self.wake_at = self.wake_at.min(due);
        }
        Ok(wake)
    }

    fn admit(&mut self, posting: &Posting<'_>, now: Now) -> Result<(), Refusal> {
        if self.closed {
            return Err(self.turn_away(DropReason::Closed));
        }
        let alone = self.overhead + BatchWriter::SEQ_ROOM + posting.encoded.len();
        if alone > self.limits.batch_bytes {
            // Without a spool there is no place to keep it.
            if alone > MAX_LETTER || !self.limits.keeps_letters {
                return Err(self.turn_away(DropReason::TooLarge));
            }
            self.ledger.posted(Place::Dead, 1);
            return Err(Refusal::Oversize);
        }
        if !self.make_room(posting, now) {
            return Err(self.turn_away(DropReason::QueueFull));
        }
        Ok(())
    }

    fn turn_away(&mut self, reason: DropReason) -> Refusal {
        self.refuse(reason, 1);
        Refusal::Dropped(reason)
    }

    /// A batch that this event does not fit into any more is sealed. Has the driver something to do then?
    fn seal_if_full(&mut self, posting: &Posting<'_>, now: Now) -> bool {
        let Some(open) = &mut self.open[lane(posting.priority)] else { return false };
        let newcomer = posting.encoded.len() + BatchWriter::SEQ_ROOM;
        if open.batch.encoded_len(self.overhead) + newcomer <= self.limits.batch_bytes {
            return false;
        }
        open.batch.due = now.at;
        self.seal(posting.priority);
        self.endpoint.is_open() && self.in_flight < MAX_IN_FLIGHT
    }

    /// Makes room for one more event of this priority: at the limit a basic one gets none, and a vital one displaces the oldest
    /// basic event, or the oldest vital one if there is no basic one.
    fn make_room(&mut self, posting: &Posting<'_>, now: Now) -> bool {
        let replaced = match (posting.merge, &self.open[lane(posting.priority)]) {
            (Some(key), Some(open)) => open.replaceable(posting.route, key, now.at),
            _ => None,
        };
        let events = usize::from(replaced.is_none());
        // It may need a batch of its own.
        let batch = BATCH_BYTES + name_bytes(&self.user) + name_bytes(&self.session);
        let key = if posting.merge.is_some() { KEY_BYTES } else { 0 };
        let bytes = (batch + posting.encoded.len() + SLOT_BYTES + key).saturating_sub(replaced.unwrap_or(0));
        while self.ledger.in_memory() as usize + events > self.limits.events
            // One has room in any case, however little memory is allowed.
            || self.bytes + bytes > self.limits.bytes && self.ledger.in_memory() > 0
        {
            let made = self.unload_one(now) || (posting.priority == Priority::Vital && self.displace_one());
            if !made {
                return false;
            }
        }
        true
    }

    /// The oldest basic event goes, else the oldest vital one. What is in flight or with the disk stays, and so does what
    /// lies on it: a receipt may have been given for that.
    fn displace_one(&mut self) -> bool {
        let displaced = Place::Dropped(DropReason::Displaced);
        for priority in LANES.into_iter().rev() {
            let lane = lane(priority);
            let at = self.queues[lane].iter().position(|batch| !batch.is_empty() && !self.is_on_disk(batch));
            let batch = at.and_then(|at| Some((at, self.queues[lane].get_mut(at)?)));
            if let Some((at, batch)) = batch {
                let before = batch.bytes();
                let Some(slot) = batch.pop_first() else { return false };
                let (stream, emptied) = (batch.head.stream, batch.is_empty());
                self.bytes -= before - batch.bytes();
                self.ledger.shift(Place::Queued, displaced, 1);
                self.emit_dropped(DropReason::Displaced, 1);
                self.gaps.add(stream, slot.seq, DropReason::Displaced.as_str());
                // It has no number left that a row could be known by. What it declares goes with a later one.
                if emptied && let Some(batch) = self.queues[lane].remove(at) {
                    self.drop_batch(batch, Place::Queued, DropReason::Displaced);
                }
                return true;
            }
            if let Some(open) = &mut self.open[lane] {
                let before = open.bytes();
                if open.batch.receipts.is_empty() && open.displace() {
                    self.bytes -= before - open.bytes();
                    self.ledger.shift(Place::Queued, displaced, 1);
                    self.emit_dropped(DropReason::Displaced, 1);
                    return true;
                }
            }
        }
        false
    }
}
