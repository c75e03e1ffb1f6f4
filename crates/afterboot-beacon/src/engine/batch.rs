//! Events in memory: encoded when they were posted, in one buffer a batch.

use std::sync::Arc;
use std::time::Duration;

use super::receipt::ReceiptSender;
use super::time::Moment;
use crate::wire::{self, BatchWriter, Gap, Head, Priority, StreamId};
#[cfg(any(feature = "spool", test))]
use crate::wire::{Event, encode_event};

/// A row of the spool that holds the same events. Shared by the parts of a batch that was split; deleted with the last.
pub(crate) type RowRef = Arc<i64>;

/// An event in a batch's buffer. 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// Zero until the batch is sealed.
    pub(crate) seq: u64,
    pub(crate) start: u32,
    pub(crate) len: u32,
}

#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) head: Head,
    /// Where it stands among the batches of this beacon: the order of sealing.
    pub(crate) ordinal: u64,
    /// When it should be sent.
    pub(crate) due: Moment,
    /// When its first event was posted, or when it was read back from the spool.
    pub(crate) since: Moment,
    /// When its last event expires, in milliseconds since the machine started.
    pub(crate) expires: u64,
    /// The longest expiry of its events.
    pub(crate) life: Duration,
    /// Unix milliseconds of its last event.
    pub(crate) newest_at: u64,
    /// The start of the machine that the events' `mono` counts from.
    pub(crate) boot: Arc<str>,
    pub(crate) attempts: u32,
    /// On disk as well, in these rows.
    pub(crate) rows: Vec<RowRef>,
    /// A part of its rows' events is settled: it stays in memory until the rest is, so that no row is counted twice.
    pub(crate) partial: bool,
    /// Read back from the spool, so it goes back there at the first failure.
    pub(crate) replayed: bool,
    /// Receipts to resolve once it is on disk.
    pub(crate) receipts: Vec<ReceiptSender>,
    body: Option<Arc<[u8]>>,
    buffer: Vec<u8>,
    slots: Vec<Slot>,
    /// Slots in front that are gone.
    first: usize,
    /// Bytes of the slots that are still there.
    live_bytes: usize,
}

/// Batches whose lives end this close to each other may join.
const ABOUT_AS_LONG_MS: u64 = 60_000;

/// What each event costs in memory beside its bytes.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();

/// What a batch costs beside its events and the names in its head: its place in a queue, which doubles as it grows.
pub(crate) const BATCH_BYTES: usize = 2 * size_of::<Batch>() + 64;

/// Each batch has its own copy.
pub(crate) fn name_bytes(name: &Option<String>) -> usize {
    name.as_ref().map_or(0, String::len)
}

impl Batch {
    pub(crate) fn new(head: Head, boot: Arc<str>, now: Moment) -> Batch {
        Batch {
            head,
            ordinal: 0,
            due: Moment::MAX,
            since: now,
            expires: 0,
            life: Duration::ZERO,
            newest_at: 0,
            boot,
            attempts: 0,
            rows: Vec::new(),
            partial: false,
            replayed: false,
            receipts: Vec::new(),
            body: None,
            buffer: Vec::new(),
            slots: Vec::new(),
            first: 0,
            live_bytes: 0,
        }
    }

    /// Where it stands in line: parts of one batch keep their order.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.ordinal, self.slots().first().map_or(0, |slot| slot.seq))
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.first
    }

    pub(crate) fn events(&self) -> u64 {
        self.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it costs in memory beside its events.
    pub(crate) fn own_bytes(&self) -> usize {
        BATCH_BYTES + name_bytes(&self.head.user) + name_bytes(&self.head.session)
    }

    /// What it costs in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.own_bytes() + self.live_bytes + self.len() * SLOT_BYTES
    }

    /// The body's size before compression, or a little more.
    pub(crate) fn encoded_len(&self, overhead: usize) -> usize {
        overhead + self.live_bytes + self.len() * BatchWriter::SEQ_ROOM
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots[self.first..]
    }

    pub(crate) fn event(&self, slot: Slot) -> &[u8] {
        &self.buffer[slot.start as usize..(slot.start + slot.len) as usize]
    }

    pub(crate) fn push(&mut self, seq: u64, encoded: &[u8]) {
        // A buffer holds one batch, 64 KiB, and what was merged away in it.
        let start = self.buffer.len() as u32;
        self.buffer.extend_from_slice(encoded);
        self.slots.push(Slot { seq, start, len: encoded.len() as u32 });
        self.live_bytes += encoded.len();
        self.body = None;
    }

    /// The first of its events goes. Its number, where it had one.
    pub(crate) fn pop_first(&mut self) -> Option<Slot> {
        let slot = *self.slots().first()?;
        self.first += 1;
        self.live_bytes -= slot.len as usize;
        self.partial |= !self.rows.is_empty();
        self.body = None;
        Some(slot)
    }

    /// The event at this index goes; its bytes stay in the buffer until it is shrunk. How many they are.
    pub(crate) fn remove(&mut self, index: usize) -> usize {
        let slot = self.slots.remove(self.first + index);
        self.live_bytes -= slot.len as usize;
        self.body = None;
        slot.len as usize
    }

    /// Only those events stay for which `keep` says so, by index.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let slots: Vec<Slot> = self
            .slots()
            .iter()
            .enumerate()
            .filter(|(index, _)| keep(*index))
            .map(|(_, slot)| *slot)
            .collect();
        self.partial |= !self.rows.is_empty() && slots.len() < self.len();
        self.rebuild(&slots);
    }

    /// Frees the unused part of the buffer.
    pub(crate) fn shrink(&mut self) {
        if self.live_bytes < self.buffer.len() {
            let slots = self.slots().to_vec();
            self.rebuild(&slots);
        } else {
            self.buffer.shrink_to_fit();
            self.slots.shrink_to_fit();
        }
    }

    fn rebuild(&mut self, slots: &[Slot]) {
        let mut buffer = Vec::with_capacity(slots.iter().map(|slot| slot.len as usize).sum());
        let mut rebuilt = Vec::with_capacity(slots.len());
        for slot in slots {
            let start = buffer.len() as u32;
            buffer.extend_from_slice(self.event(*slot));
            rebuilt.push(Slot { start, ..*slot });
        }
        self.live_bytes = buffer.len();
        self.buffer = buffer;
        self.slots = rebuilt;
        self.first = 0;
        self.body = None;
    }

    /// Numbers its events: from then on it is sealed.
    pub(crate) fn number(&mut self, first: u64) {
        let from = self.first;
        for (seq, slot) in (first..).zip(&mut self.slots[from..]) {
            slot.seq = seq;
        }
    }

    /// How many of its events, from the first, a body of this size holds.
    pub(crate) fn fitting(&self, overhead: usize, limit: usize) -> usize {
        let mut body = overhead;
        let fits = |slot: &&Slot| {
            body += slot.len as usize + BatchWriter::SEQ_ROOM;
            body <= limit
        };
        self.slots().iter().take_while(fits).count()
    }

    /// The events from index `at` on become a batch of their own. Both then stay in memory until they are settled.
    pub(crate) fn split_off(&mut self, at: usize) -> Batch {
        let mut rest = Batch {
            ordinal: self.ordinal,
            due: self.due,
            expires: self.expires,
            life: self.life,
            newest_at: self.newest_at,
            attempts: self.attempts,
            rows: self.rows.clone(),
            partial: !self.rows.is_empty(),
            replayed: self.replayed,
            ..Batch::new(Head { gaps: Vec::new(), ..self.head.clone() }, Arc::clone(&self.boot), self.since)
        };
        for slot in &self.slots()[at..] {
            rest.push(slot.seq, self.event(*slot));
        }
        self.retain(|index| index < at);
        self.head.end = None;
        rest
    }

    /// Takes in a later batch that differs in nothing but its events.
    pub(crate) fn absorb(&mut self, later: Batch) {
        for slot in later.slots() {
            self.push(slot.seq, later.event(*slot));
        }
        self.head.gaps.extend(later.head.gaps);
        self.head.end = later.head.end.or(self.head.end);
        self.expires = self.expires.max(later.expires);
        self.life = self.life.max(later.life);
        self.newest_at = self.newest_at.max(later.newest_at);
        self.attempts = self.attempts.max(later.attempts);
        // Two parts of one batch have one row.
        let known = |row: &RowRef| self.rows.iter().any(|own| Arc::ptr_eq(own, row));
        let more: Vec<RowRef> = later.rows.into_iter().filter(|row| !known(row)).collect();
        self.rows.extend(more);
        self.receipts.extend(later.receipts);
        self.partial |= later.partial;
    }

    pub(crate) fn may_absorb(&self, later: &Batch) -> bool {
        // On disk is the whole of a batch or nothing of it.
        if self.rows.is_empty() != later.rows.is_empty() {
            return false;
        }
        // A batch lives as long as its longest-lived event: joining must not make one live much longer.
        if self.expires.abs_diff(later.expires) > ABOUT_AS_LONG_MS {
            return false;
        }
        fn shared(head: &Head) -> (StreamId, &Option<String>, &Option<String>, Priority) {
            (head.stream, &head.user, &head.session, head.priority)
        }
        // A replayed batch is on disk row by row, and another boot's clock is another clock.
        !self.replayed
            && !later.replayed
            && self.boot == later.boot
            && shared(&self.head) == shared(&later.head)
    }

    /// The body, compressed. Kept, because a failed batch is sent again as it was.
    pub(crate) fn body(&mut self) -> Arc<[u8]> {
        if let Some(body) = &self.body {
            return Arc::clone(body);
        }
        let mut writer = BatchWriter::new(&self.head);
        for slot in self.slots() {
            writer.event(slot.seq, self.event(*slot));
        }
        let body: Arc<[u8]> = wire::gzip(&writer.finish()).into();
        self.body = Some(Arc::clone(&body));
        body
    }

    /// The head has changed.
    pub(crate) fn stale_body(&mut self) {
        self.body = None;
    }

    /// Its events as ranges of numbers, for a declaration.
    pub(crate) fn gaps(&self, why: &str) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        for slot in self.slots() {
            super::gaps::add(&mut gaps, self.head.stream, slot.seq, why);
        }
        gaps
    }

    /// Reads a batch back from the spool.
    #[cfg(any(feature = "spool", test))]
    pub(crate) fn read(parsed: wire::Batch, boot: Arc<str>, now: Moment) -> Batch {
        let mut batch = Batch::new(parsed.head, boot, now);
        let mut encoded = Vec::new();
        for Event { seq, id, route, at, mono, data } in parsed.events {
            encoded.clear();
            // It was JSON when it was read, so it is JSON again.
            if encode_event(&mut encoded, id, &route, at, mono, &data).is_ok() {
                batch.push(seq, &encoded);
            }
        }
        batch.shrink();
        batch
    }

    pub(crate) fn priority(&self) -> Priority {
        self.head.priority
    }
}
