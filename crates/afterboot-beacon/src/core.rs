//! What the beacon knows, and what it decides: plain functions of (state, event, now). The driver acts on it.
//!
//! A batch is in one place at a time: open, in a queue, waiting for the disk, or handed out to the driver. Each of the
//! files below is one leg of its way.

mod batch;
mod disk;
mod gaps;
mod open;
mod post;
mod settle;
mod take;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::batch::{BATCH_BYTES, Batch, Moment, Rank, SLOT_BYTES};
#[cfg(feature = "spool")]
pub(crate) use self::disk::{Evicted, Unlisted};
use self::gaps::Gaps;
use self::open::Open;
pub(crate) use self::post::{Posting, Refusal};
pub(crate) use self::settle::{DeadBatch, Outcome};
pub(crate) use self::take::Outgoing;
use crate::endpoint::Endpoint;
use crate::ledger::{DropReason, Ledger, Place};
use crate::receipt::ReceiptSender;
use crate::wire::{BatchWriter, Head, Priority, StreamId};

/// Batches that cannot be sent go to the spool at this age.
pub(crate) const SPOOL_AGE: Duration = Duration::from_secs(10);

/// The most requests under way.
pub(crate) const MAX_IN_FLIGHT: usize = 2;

/// So many declarations a batch carries at most: about 6 KB of its body.
const MAX_GAPS: usize = 50;

/// What a declaration adds to a body at most.
const GAP_ROOM: usize = 160;

/// The numbers that do not change while a beacon lives.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    pub(crate) batch_events: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) replay_spread: Duration,
}

/// Wall clock and monotonic clock at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Since the beacon was built, on tokio's clock.
    pub(crate) at: Moment,
    /// Unix milliseconds.
    pub(crate) wall: u64,
}

#[derive(Debug)]
pub(crate) struct Core {
    limits: Limits,
    app: String,
    stream: StreamId,
    user: Option<String>,
    session: Option<String>,
    boot: Arc<str>,
    /// Bytes of a body beside its events.
    overhead: usize,
    next_seq: u64,
    next_ordinal: u64,
    open: [Option<Open>; 2],
    queues: [VecDeque<Batch>; 2],
    /// Read back from the spool, oldest first.
    replay: VecDeque<Batch>,
    /// Durable: not to be sent before they are on disk.
    for_disk: VecDeque<Batch>,
    /// The places of the batches that the driver has, with a request or with the disk.
    out: BTreeSet<Rank>,
    in_flight: usize,
    replay_turn: bool,
    pub(crate) endpoint: Endpoint,
    pub(crate) ledger: Ledger,
    /// Bytes of all batches in memory, those in flight included.
    bytes: usize,
    /// Numbers that will never arrive and have not been declared.
    gaps: Gaps,
    dead: Vec<DeadBatch>,
    /// Rows on disk of batches in memory. False: the row is gone, evicted for room.
    resident: HashMap<i64, bool>,
    /// Rows whose events are all settled.
    settled_rows: Vec<i64>,
    has_spool: bool,
    closed: bool,
    ended: bool,
    /// When the driver will look again by itself.
    wake_at: Moment,
    replay_at: Option<Moment>,
}

fn lane(priority: Priority) -> usize {
    match priority {
        Priority::Vital => 0,
        Priority::Basic => 1,
    }
}

const LANES: [Priority; 2] = [Priority::Vital, Priority::Basic];

impl Core {
    pub(crate) fn new(
        limits: Limits,
        app: String,
        stream: StreamId,
        boot: Arc<str>,
        seed: u64,
        has_spool: bool,
    ) -> Core {
        let mut core = Core {
            limits,
            app,
            stream,
            user: None,
            session: None,
            boot,
            overhead: 0,
            next_seq: 0,
            next_ordinal: 0,
            open: [None, None],
            queues: [VecDeque::new(), VecDeque::new()],
            replay: VecDeque::new(),
            for_disk: VecDeque::new(),
            out: BTreeSet::new(),
            in_flight: 0,
            replay_turn: false,
            endpoint: Endpoint::new(seed),
            ledger: Ledger::default(),
            bytes: 0,
            gaps: Gaps::default(),
            dead: Vec::new(),
            resident: HashMap::new(),
            settled_rows: Vec::new(),
            has_spool,
            closed: false,
            ended: false,
            wake_at: Moment::MAX,
            replay_at: None,
        };
        core.measure_overhead();
        core
    }

    fn measure_overhead(&mut self) {
        let head = self.new_batch(Priority::Basic, Now { at: Moment::ZERO, wall: 0 }).head;
        self.overhead = Core::overhead(&head);
    }

    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Is nothing of ours left in memory? What was read back from the spool is safe there.
    pub(crate) fn is_drained(&self) -> bool {
        let queues = self.queues.iter().chain([&self.for_disk]);
        self.out.is_empty()
            && self.open.iter().all(Option::is_none)
            && queues.into_iter().all(VecDeque::is_empty)
    }

    pub(crate) fn has_spool(&self) -> bool {
        self.has_spool
    }

    /// The spool does not work, for now: the limits of memory decide.
    #[cfg(feature = "spool")]
    pub(crate) fn spool_lost(&mut self) {
        self.has_spool = false;
    }

    #[cfg(feature = "spool")]
    pub(crate) fn spool_found(&mut self) {
        self.has_spool = true;
        self.wake_at = Moment::ZERO;
    }

    /// Somebody else is there now: what the one before posted is sealed under their own name.
    pub(crate) fn set_user(&mut self, user: Option<String>, now: Now) {
        if self.user == user {
            return;
        }
        self.seal_all(now);
        self.user = user;
        self.measure_overhead();
        // Rows of this user may lie on the disk.
        self.schedule_replay(now);
    }

    pub(crate) fn set_session(&mut self, session: Option<String>, now: Now) {
        if self.session != session {
            self.seal_all(now);
            self.session = session;
            self.measure_overhead();
        }
    }

    /// There is no network: what was read back from the spool goes back to lying there.
    pub(crate) fn offline(&mut self) {
        self.endpoint.offline();
        self.unload_replay();
    }

    /// Nothing is taken in any more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    fn new_batch(&self, priority: Priority, now: Now) -> Batch {
        let head = Head {
            app: self.app.clone(),
            stream: self.stream,
            user: self.user.clone(),
            session: self.session.clone(),
            priority,
            gaps: Vec::new(),
            end: None,
        };
        Batch::new(head, Arc::clone(&self.boot), now.at)
    }

    /// Gives the open batch its numbers and its place in the line.
    fn seal(&mut self, priority: Priority) {
        let Some(open) = self.open[lane(priority)].take() else { return };
        let mut batch = open.batch;
        if batch.is_empty() {
            self.bytes -= batch.bytes();
            return;
        }
        self.number(&mut batch);
        if batch.receipts.is_empty() {
            self.enqueue(batch);
        } else {
            self.for_disk.push_back(batch);
        }
    }

    fn number(&mut self, batch: &mut Batch) {
        let room = self.limits.batch_bytes.saturating_sub(batch.encoded_len(self.overhead));
        let declared = self.gaps.len().min(MAX_GAPS).min(room / GAP_ROOM);
        batch.head.gaps.extend(self.gaps.take(declared));
        batch.number(self.next_seq);
        batch.shrink();
        self.next_seq += batch.events();
        batch.ordinal = self.next_ordinal;
        self.next_ordinal += 1;
    }

    fn seal_all(&mut self, now: Now) {
        for priority in LANES {
            if let Some(open) = &mut self.open[lane(priority)] {
                open.batch.due = open.batch.due.min(now.at);
            }
            self.seal(priority);
        }
    }

    /// Puts a batch where its rank belongs: a failed one goes ahead of what came later. What stands before it is then
    /// due no later than it, so that the front is always the first to be due.
    fn enqueue(&mut self, batch: Batch) {
        let queue = if batch.replayed { &mut self.replay } else { &mut self.queues[lane(batch.priority())] };
        let at = queue.partition_point(|other| other.rank() <= batch.rank());
        for earlier in queue.range_mut(..at).rev() {
            if earlier.due <= batch.due {
                break;
            }
            earlier.due = batch.due;
        }
        queue.insert(at, batch);
    }

    /// Everything is due, and the open batches are sealed: for a flush and for leaving. Batches from this ordinal on are
    /// not meant.
    pub(crate) fn hurry(&mut self, now: Now) -> u64 {
        self.seal_all(now);
        for queue in &mut self.queues {
            for batch in queue {
                batch.due = batch.due.min(now.at);
            }
        }
        for batch in &mut self.for_disk {
            batch.due = batch.due.min(now.at);
        }
        self.wake_at = Moment::ZERO;
        self.next_ordinal
    }

    /// Is anything in memory that was sealed before this ordinal?
    pub(crate) fn holds_before(&self, ordinal: u64) -> bool {
        let queued = self.queues.iter().filter_map(VecDeque::front).chain(self.for_disk.front());
        let first = queued.map(|batch| batch.ordinal).chain(self.out.first().map(|rank| rank.0)).min();
        first.is_some_and(|first| first < ordinal)
    }

    /// The stream is over: its last batch says so. If there is none left to say it, one without events does.
    pub(crate) fn end_stream(&mut self, now: Now) {
        if mem::replace(&mut self.ended, true) || !self.ledger.has_posted() {
            return;
        }
        self.hurry(now);
        let end = Some(self.next_seq);
        let last = self.queues.iter_mut().filter_map(VecDeque::back_mut).max_by_key(|batch| batch.ordinal);
        match last {
            Some(batch) if batch.head.stream == self.stream && self.gaps.is_empty() => {
                batch.head.end = end;
                batch.stale_body();
            }
            _ => {
                let mut marker = self.new_batch(Priority::Vital, now);
                marker.head.end = end;
                marker.due = now.at;
                marker.newest_at = now.wall;
                marker.expires_at = now.wall + crate::builder::EXPIRY.as_millis() as u64;
                self.number(&mut marker);
                self.bytes += marker.bytes();
                self.enqueue(marker);
            }
        }
    }

    /// The driver will look again at this moment; a post that wants to be away earlier wakes it.
    pub(crate) fn sleeps_until(&mut self, at: Moment) {
        debug_assert!(
            self.bytes == 0 || !self.is_drained() || !self.replay.is_empty(),
            "nothing is in memory, and it costs {} bytes",
            self.bytes
        );
        self.wake_at = at;
    }

    fn overhead(head: &Head) -> usize {
        BatchWriter::new(head).finish().len()
    }

    /// A sealed batch is given up: its numbers are declared, and so is what it would have declared itself.
    fn give_up(&mut self, mut batch: Batch, from: Place, reason: DropReason) {
        self.forget_rows(&mut batch);
        self.bytes -= batch.bytes();
        self.ledger.shift(from, Place::Dropped(reason), batch.events());
        self.gaps.declare(batch.gaps(reason.as_str()));
        self.gaps.declare(mem::take(&mut batch.head.gaps));
        for receipt in batch.receipts {
            receipt.refuse(reason);
        }
    }

    /// The driver's batches come back, however they fared.
    fn came_back(&mut self, batch: &Batch) {
        self.out.remove(&batch.rank());
    }

    fn schedule_replay(&mut self, now: Now) {
        if self.has_spool && self.replay_at.is_none() {
            let wait = self.endpoint.some_time_within(self.limits.replay_spread);
            self.replay_at = Some(now.at + wait);
            self.wake_at = Moment::ZERO;
        }
    }

    /// The moment at which the spool should be looked through, at the start and after every recovery: a random one, so
    /// that replicas that came back together do not send their backlogs together.
    pub(crate) fn begin(&mut self, now: Now) {
        self.schedule_replay(now);
    }

    pub(crate) fn receipts_of(batch: &mut Batch) -> Vec<ReceiptSender> {
        mem::take(&mut batch.receipts)
    }
}
