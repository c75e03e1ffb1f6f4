//! What is said to whoever waits for a durable post.

use std::fmt;

use super::ledger::DropReason;

/// Why a durable event is not durable. It may still arrive: only the disk's part failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotDurable {
    /// The beacon has no spool.
    NoSpool,
    /// The disk did not take it: says why.
    Disk(String),
    /// The event was given up.
    Dropped(DropReason),
    /// The event fits no batch and became a dead letter.
    Oversize,
    /// No answer came in the time that the caller gave, or before the beacon ended.
    NoAnswer,
}

impl fmt::Display for NotDurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotDurable::NoSpool => f.write_str("the beacon has no spool: give it one with .spool(..)"),
            NotDurable::Disk(why) => write!(f, "the spool did not take the event: {why}"),
            NotDurable::Dropped(reason) => write!(f, "the event was dropped: {}", reason.as_str()),
            NotDurable::Oversize => f.write_str("the event is larger than a batch and became a dead letter"),
            NotDurable::NoAnswer => f.write_str("the spool gave no answer in time"),
        }
    }
}

impl std::error::Error for NotDurable {}

pub(crate) type Written = Result<(), NotDurable>;

/// A reply that is given when this is dropped, which is not under a lock: a waker is the application's, and may post.
#[derive(Debug)]
pub(crate) struct DeferredReply(Option<(ReceiptSender, Written)>);

impl Drop for DeferredReply {
    fn drop(&mut self) {
        if let Some((ReceiptSender(send), written)) = self.0.take() {
            send(written);
        }
    }
}

/// The other end of a receipt. Dropped unused, it says that there was no answer.
pub(crate) struct ReceiptSender(Box<dyn FnOnce(Written) + Send>);

impl fmt::Debug for ReceiptSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptSender")
    }
}

impl ReceiptSender {
    pub(crate) fn new(send: impl FnOnce(Written) + Send + 'static) -> ReceiptSender {
        ReceiptSender(Box::new(send))
    }

    pub(crate) fn defer(self, written: Written) -> DeferredReply {
        DeferredReply(Some((self, written)))
    }

    pub(crate) fn refuse(self, reason: DropReason) -> DeferredReply {
        self.defer(Err(NotDurable::Dropped(reason)))
    }
}
