//! The state of the core, and what every leg of a batch's way needs of it.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use super::batch::Batch;
use super::endpoint::Endpoint;
use super::erasure::Erasure;
use super::event::BeaconEvent;
use super::exchange::DeadBatch;
use super::gaps::Gaps;
use super::ledger::{DropReason, Ledger, Place};
use super::limits::{GAP_ROOM, LANES, Limits, MAX_GAPS, lane};
use super::open::Open;
use super::receipt::{DeferredReply, NotDurable, ReceiptSender};
use super::time::{Moment, Now};
use crate::wire::{BatchWriter, Counters, Head, Priority, StreamId};

#[derive(Debug)]
pub(crate) struct Core {
    pub(super) limits: Limits,
    pub(super) app: String,
    pub(super) stream: StreamId,
    pub(super) user: Option<String>,
    pub(super) session: Option<String>,
    pub(super) boot: Arc<str>,
    /// Bytes of a body beside its events.
    pub(super) overhead: usize,
    pub(super) next_seq: u64,
    pub(super) next_ordinal: u64,
    pub(super) open: [Option<Open>; 2],
    pub(super) queues: [VecDeque<Batch>; 2],
    /// Read back from the spool, oldest first.
    pub(super) replay: VecDeque<Batch>,
    /// Durable: not to be sent before they are on disk.
    pub(super) for_disk: VecDeque<Batch>,
    /// Ordinals of the batches that the driver has, with a request or with the disk.
    pub(super) out: Vec<u64>,
    pub(super) in_flight: usize,
    pub(super) erasures: Vec<Erasure>,
    /// Replies to receipts, to be sent when nothing is locked.
    pub(super) replies: Vec<DeferredReply>,
    /// Events for receivers, to be sent then as well.
    pub(super) events: Vec<BeaconEvent>,
    pub(super) replay_turn: bool,
    pub(super) endpoint: Endpoint,
    pub(super) ledger: Ledger,
    /// Bytes of all batches in memory, those in flight included.
    pub(super) bytes: usize,
    /// Numbers that will never arrive and have not been declared.
    pub(super) gaps: Gaps,
    pub(super) dead: VecDeque<DeadBatch>,
    pub(super) dead_bytes: usize,
    /// Rows on disk of batches in memory. False: the row is gone, evicted for room.
    pub(super) resident: HashMap<i64, bool>,
    /// Rows whose events are all settled.
    pub(super) settled_rows: Vec<i64>,
    pub(super) has_spool: bool,
    /// Whether there is a spool, working or not, for dead letters.
    pub(super) keeps_dead: bool,
    pub(super) closed: bool,
    pub(super) ended: bool,
    /// When the driver will look again by itself.
    pub(super) wake_at: Moment,
    pub(super) replay_at: Option<Moment>,
    /// A reason to read the spool came up after the read that is under way.
    pub(super) replay_again: bool,
}

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
            out: Vec::new(),
            in_flight: 0,
            erasures: Vec::new(),
            replies: Vec::new(),
            events: Vec::new(),
            replay_turn: false,
            endpoint: Endpoint::new(seed),
            ledger: Ledger::default(),
            bytes: 0,
            gaps: Gaps::default(),
            dead: VecDeque::new(),
            dead_bytes: 0,
            resident: HashMap::new(),
            settled_rows: Vec::new(),
            has_spool,
            keeps_dead: has_spool,
            closed: false,
            ended: false,
            wake_at: Moment::MAX,
            replay_at: None,
            replay_again: false,
        };
        core.measure_overhead();
        core
    }

    fn measure_overhead(&mut self) {
        let head = self.new_batch(Priority::Basic, Now { at: Moment::ZERO, wall: 0, mono: 0 }).head;
        self.overhead = Core::overhead(&head);
    }

    /// Where every event is.
    pub(crate) fn counters(&self) -> Counters {
        self.ledger.counters()
    }

    /// Events that are to arrive yet.
    pub(crate) fn undelivered(&self) -> u64 {
        self.ledger.undelivered()
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
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

    pub(crate) fn has_spool(&self) -> bool {
        self.has_spool
    }

    /// The spool does not work, for now: the limits of memory decide.
    #[cfg(feature = "spool")]
    pub(crate) fn spool_lost(&mut self) {
        self.has_spool = false;
    }

    #[cfg(feature = "spool")]
    pub(crate) fn spool_found(&mut self, now: Now) {
        self.has_spool = true;
        self.wake_at = Moment::ZERO;
        // A replay that there was a reason for meanwhile could not be scheduled.
        if self.replay_again {
            self.schedule_replay(now);
        }
    }

    /// Changes the user: earlier events are sealed under the previous one.
    pub(crate) fn set_user(&mut self, user: Option<String>, now: Now) {
        if self.user == user {
            return;
        }
        self.seal_all(now);
        self.user = user;
        self.measure_overhead();
        // What was read back for the one before lies on the disk again, where rows of this one may lie as well.
        self.unload_replay();
        self.schedule_replay(now);
    }

    pub(crate) fn set_session(&mut self, session: Option<String>, now: Now) {
        if self.session != session {
            self.seal_all(now);
            self.session = session;
            self.measure_overhead();
        }
    }

    /// Nothing is taken in any more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn new_batch(&self, priority: Priority, now: Now) -> Batch {
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
    pub(super) fn seal(&mut self, priority: Priority) {
        let Some(open) = self.open[lane(priority)].take() else { return };
        self.bytes -= open.key_bytes();
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

    pub(super) fn number(&mut self, batch: &mut Batch) {
        let limit = self.endpoint.limit().min(self.limits.batch_bytes);
        let room = limit.saturating_sub(batch.encoded_len(self.overhead));
        let declared = self.gaps.len().min(MAX_GAPS).min(room / GAP_ROOM);
        batch.head.gaps.extend(self.gaps.take(declared));
        batch.number(self.next_seq);
        batch.shrink();
        self.next_seq += batch.events();
        batch.ordinal = self.next_ordinal;
        self.next_ordinal += 1;
    }

    pub(super) fn seal_all(&mut self, now: Now) {
        for priority in LANES {
            if let Some(open) = &mut self.open[lane(priority)] {
                open.batch.due = open.batch.due.min(now.at);
            }
            self.seal(priority);
        }
    }

    /// Puts a batch where its ordinal belongs: a failed one goes ahead of what came later. Nothing is due later than what
    /// stands behind it, so that the front is always the first to be due.
    pub(super) fn enqueue(&mut self, mut batch: Batch) {
        let queue = if batch.replayed { &mut self.replay } else { &mut self.queues[lane(batch.priority())] };
        let at = queue.partition_point(|other| other.place() <= batch.place());
        batch.due = queue.get(at).map_or(batch.due, |next| batch.due.min(next.due));
        for earlier in queue.range_mut(..at).rev() {
            if earlier.due <= batch.due {
                break;
            }
            earlier.due = batch.due;
        }
        queue.insert(at, batch);
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

    pub(super) fn overhead(head: &Head) -> usize {
        BatchWriter::new(head).finish().len()
    }

    /// A sealed batch is given up: its numbers are declared, and so is what it would have declared itself.
    pub(super) fn drop_batch(&mut self, mut batch: Batch, from: Place, reason: DropReason) {
        self.forget_rows(&mut batch);
        self.bytes -= batch.bytes();
        self.ledger.shift(from, Place::Dropped(reason), batch.events());
        self.emit_dropped(reason, batch.events());
        self.gaps.declare(batch.gaps(reason.as_str()));
        self.gaps.declare(mem::take(&mut batch.head.gaps));
        for receipt in batch.receipts {
            self.replies.push(receipt.defer(Err(NotDurable::Dropped(reason))));
        }
    }

    /// The driver's batches come back, however they fared.
    pub(super) fn take_back(&mut self, batch: &Batch) {
        // Those that mean this batch stay until the next one comes back.
        self.forget_erasures();
        // Two parts of one batch may both be out.
        if let Some(at) = self.out.iter().position(|ordinal| *ordinal == batch.ordinal) {
            self.out.swap_remove(at);
        }
    }

    pub(crate) fn take_replies(&mut self) -> Vec<DeferredReply> {
        mem::take(&mut self.replies)
    }

    pub(crate) fn receipts_of(batch: &mut Batch) -> Vec<ReceiptSender> {
        mem::take(&mut batch.receipts)
    }
}
