use std::sync::Arc;

use super::SpoolError;
use crate::wire::{Priority, StreamId};

/// When a row expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Until {
    /// Which start of the machine `mono` counts from.
    pub(crate) boot: String,
    pub(crate) mono: u64,
}

/// The largest compressed body in a row. What claims to be larger is corrupt and is never read.
pub(crate) const MAX_ROW: usize = 256 * 1024;

/// The name of a row in this spool. Never given twice, and new after an adoption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RowId(pub(crate) i64);

/// One sealed batch. Its key is (stream, `first_seq`, `last_seq`); numbers between the two may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewRow {
    pub(crate) stream: StreamId,
    pub(crate) first_seq: u64,
    /// The same as `first_seq`, and the stream's end, in a batch without events that ends a stream.
    pub(crate) last_seq: u64,
    pub(crate) priority: Priority,
    pub(crate) user: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) events: u32,
    /// Milliseconds since the epoch. It orders the rows: the smallest is the oldest.
    pub(crate) newest_at: u64,
    /// Milliseconds since the epoch, by the clock that `newest_at` is of: when it expires, where no better clock can say.
    pub(crate) expires_at: u64,
    /// When it expires, in milliseconds since this start of the machine. None: its stamps decide.
    pub(crate) until: Option<u64>,
    pub(crate) boot: String,
    /// Compressed by [`gzip`](crate::wire::gzip), at most [`MAX_ROW`] bytes.
    pub(crate) body: Arc<[u8]>,
}

impl NewRow {
    /// How long it was to live, in milliseconds.
    pub(super) fn life(&self) -> u64 {
        self.expires_at.saturating_sub(self.newest_at)
    }

    pub(super) fn check(&self) -> Result<(), SpoolError> {
        match self.body.len() {
            bytes if bytes > MAX_ROW => Err(SpoolError::too_large(bytes, MAX_ROW)),
            _ => Ok(()),
        }
    }
}

/// A batch in the spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: RowId,
    /// Unknown where an older version of this crate wrote it.
    pub(crate) until: Option<Until>,
    pub(crate) batch: NewRow,
}

/// A batch to be kept as a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewDead {
    pub(crate) batch: NewRow,
    /// Milliseconds since the epoch: when it was given up.
    pub(crate) at: u64,
    pub(crate) reason: String,
    /// The HTTP status that said so, where one did.
    pub(crate) status: Option<u16>,
    /// Whether it is in this process's ledger. One that was adopted as a dead letter is not.
    pub(crate) own: bool,
}

/// Why a batch was deleted without having been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Expired,
    Room,
    Erased,
    Corrupt,
}

/// A batch that is gone, so that its numbers can be declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Evicted {
    /// In the directory that it was in.
    pub(crate) id: RowId,
    pub(crate) stream: StreamId,
    /// Above `last_seq` where its numbers make no sense.
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) events: u32,
    /// Of a dead letter: is it in this process's ledger?
    pub(crate) own: bool,
    pub(crate) why: Why,
}

/// Numbers that are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) stream: StreamId,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The content of our own rows and files that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) events: u64,
    /// Events of dead letters that are in this process's ledger.
    pub(crate) letters: u64,
    /// Of a whole file they are from the first to the last of each stream: those between that were sent have arrived, and
    /// it does no harm to declare them.
    pub(crate) numbers: Vec<Numbers>,
    /// A whole file: no row that was in it is there any more.
    pub(crate) file: bool,
}

/// What a write did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Put {
    /// One a row that was given, in that order. One of them may be among the evicted at once.
    pub(crate) ids: Vec<RowId>,
    /// What was not there before.
    pub(crate) added: Totals,
    /// Rows that had to go for these.
    pub(crate) evicted: Vec<Evicted>,
    /// Dead letters that had to go for newer ones.
    pub(crate) dead_dropped: Vec<Evicted>,
}

/// Changes that happen together or not at all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change<'a> {
    pub(crate) gone: &'a [RowId],
    pub(crate) rows: &'a [NewRow],
    pub(crate) dead: &'a [NewDead],
}

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    pub(crate) events: u64,
    /// Of bodies.
    pub(crate) bytes: u64,
    /// Of the events, those of dead letters that are in this process's ledger.
    pub(crate) own: u64,
}

impl Totals {
    pub(super) fn add_letter(&mut self, letter: &NewDead) {
        self.add(letter.batch.events, letter.batch.body.len());
        self.own += if letter.own { u64::from(letter.batch.events) } else { 0 };
    }

    pub(super) fn add(&mut self, events: u32, bytes: usize) {
        self.rows += 1;
        self.events += u64::from(events);
        self.bytes += bytes as u64;
    }

    // The numbers were read from disk, which may have flipped them.
    pub(super) fn sub_gone(&mut self, gone: &Evicted, bytes: usize) {
        self.sub(gone.events, bytes);
        self.own = self.own.saturating_sub(if gone.own { u64::from(gone.events) } else { 0 });
    }

    pub(super) fn sub(&mut self, events: u32, bytes: usize) {
        self.rows = self.rows.saturating_sub(1);
        self.events = self.events.saturating_sub(u64::from(events));
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }
}

/// What an adoption did. It holds also where `failed` says that it stopped half way.
#[derive(Debug, Default)]
pub(crate) struct Adopted {
    /// Events in the rows that are now ours.
    pub(crate) events: u64,
    pub(crate) rows: u64,
    /// Deleted in the orphans. Their events are not in `events`.
    pub(crate) expired: Vec<Evicted>,
    /// Dead letters that are now ours.
    pub(crate) dead: u64,
    /// Dead letters that had to go for these.
    pub(crate) dead_dropped: Vec<Evicted>,
    /// Rows and dead letters in the orphans that were not readable, as far as their numbers were.
    pub(crate) damaged: Vec<Evicted>,
    /// Files of which not even that could be read.
    pub(crate) unreadable: u64,
    /// Rows of ours that had to go for these.
    pub(crate) evicted: Vec<Evicted>,
    /// The limit was reached: ask again at once.
    pub(crate) more: bool,
    /// There is no room under the byte cap: ask again when rows were delivered.
    pub(crate) no_room: bool,
    /// Not all could be looked at, for want of a turn: ask again in a few seconds.
    pub(crate) later: bool,
    pub(crate) failed: Option<SpoolError>,
}

/// What an erasure did.
#[derive(Debug, Default)]
pub(crate) struct Erased {
    /// Rows of our own.
    pub(crate) rows: Vec<Evicted>,
    /// Rows in directories of processes that are gone. They were never adopted.
    pub(crate) orphans: Vec<Evicted>,
    /// Our own dead letters.
    pub(crate) dead: Vec<Evicted>,
    /// What could not be done in one of the orphans. The rest was done.
    pub(crate) failed: Option<SpoolError>,
}

/// What a replay of dead letters did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub(crate) rows: u64,
    /// Events that are in this process's ledger, as dead.
    pub(crate) own: u64,
    /// Events that are not in it: they come as adopted ones do.
    pub(crate) others: u64,
    /// Rows that had to go for these.
    pub(crate) evicted: Vec<Evicted>,
}
