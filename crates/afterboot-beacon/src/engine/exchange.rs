//! What passes between the engine and the driver.

use std::time::Duration;

use super::batch::Batch;
use super::ledger::DropReason;
use super::receipt::ReceiptSender;
use crate::wire::Priority;
#[cfg(any(feature = "spool", test))]
use crate::wire::StreamId;

/// What is posted.
#[derive(Debug)]
pub(crate) struct Posting<'a> {
    pub(crate) route: &'a str,
    /// By [`encode_event`](crate::wire::encode_event).
    pub(crate) encoded: &'a [u8],
    pub(crate) priority: Priority,
    pub(crate) delay: Duration,
    pub(crate) merge: Option<&'a str>,
    pub(crate) urgent: bool,
    pub(crate) receipt: Option<ReceiptSender>,
    pub(crate) expiry: Duration,
}

/// What could not be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Dropped(DropReason),
    /// Too large for any batch: it became a dead letter.
    Oversize,
}

/// A batch in the driver's hands, to be sent. It comes back by [`Core::settle`] or [`Core::aborted`].
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) batch: Batch,
    /// Its outcome decides whether the endpoint is healthy again.
    pub(crate) probe: bool,
}

/// Set aside.
#[derive(Debug)]
#[cfg_attr(not(any(feature = "spool", test)), expect(dead_code, reason = "only a spool keeps them"))]
pub(crate) struct DeadBatch {
    pub(crate) batch: Batch,
    pub(crate) reason: &'static str,
    pub(crate) status: Option<u16>,
}

#[cfg(any(feature = "spool", test))]
/// A row that the spool gave up.
#[derive(Debug, Clone)]
pub(crate) struct EvictedRow {
    pub(crate) row: i64,
    pub(crate) stream: StreamId,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) events: u64,
    pub(crate) reason: DropReason,
}

#[cfg(any(feature = "spool", test))]
/// A batch that was read back.
#[derive(Debug)]
pub(crate) struct ReplayedRow {
    pub(crate) row: i64,
    pub(crate) batch: Batch,
}
