//! The result of a durable post, and how it is delivered.

use std::fmt;

use super::ledger::DropReason;

/// Why an event is not durable. It may still be delivered to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotDurable {
    /// The beacon has no spool.
    NoSpool,
    /// The spool could not write it, and why.
    Disk(String),
    /// The event was dropped.
    Dropped(DropReason),
    /// The event is larger than a batch and became a dead letter.
    Oversize,
    /// The spool did not answer within the caller's limit, or before the beacon ended.
    NoAnswer,
}

impl fmt::Display for NotDurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotDurable::NoSpool => f.write_str("the beacon has no spool: give it one with .spool(..)"),
            NotDurable::Disk(why) => write!(f, "the spool could not write the event: {why}"),
            NotDurable::Dropped(reason) => write!(f, "the event was dropped: {}", reason.as_str()),
            NotDurable::Oversize => f.write_str("the event is larger than a batch and became a dead letter"),
            NotDurable::NoAnswer => f.write_str("the spool did not answer in time"),
        }
    }
}

impl std::error::Error for NotDurable {}

/// The result of writing a durable event.
pub(crate) type Written = Result<(), NotDurable>;

/// A reply that is sent when this is dropped, outside of any lock: a waker is the application's, and may post.
#[derive(Debug)]
pub(crate) struct DeferredReply(Option<(ReceiptSender, Written)>);

impl Drop for DeferredReply {
    fn drop(&mut self) {
        if let Some((ReceiptSender(send), written)) = self.0.take() {
            send(written);
        }
    }
}

/// The sending half of a receipt. Dropped unused, it makes the receipt fail.
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
