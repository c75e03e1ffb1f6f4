//! The answer to a durable post.

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use crate::engine::ledger::DropReason;
use crate::state::reply::{self, Answerer, Asker};

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

/// Resolves when a durable event is on disk, or will not be. Await it, or [`wait_blocking`](Receipt::wait_blocking).
/// Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "a durable post is durable once its receipt says so"]
pub struct Receipt(Asker<Written>);

impl Receipt {
    pub(crate) fn new() -> (ReceiptSender, Receipt) {
        let (answerer, asker) = reply::channel();
        (ReceiptSender(Some(answerer)), Receipt(asker))
    }

    /// Waits on this thread: from any thread, inside a runtime or not. The beacon must not run on the caller's own
    /// current-thread runtime, which could not go on meanwhile.
    ///
    /// # Errors
    /// Where the event is not on disk, and why; [`NotDurable::NoAnswer`] after `limit`.
    pub fn wait_blocking(self, limit: Duration) -> Result<(), NotDurable> {
        self.0.wait_blocking(limit).unwrap_or(Err(NotDurable::NoAnswer))
    }
}

impl IntoFuture for Receipt {
    type Output = Result<(), NotDurable>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<(), NotDurable>> + Send>>;

    /// Works on any runtime. Cancel safe: dropping the future only forgets the answer.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.0.wait().await.unwrap_or(Err(NotDurable::NoAnswer)) })
    }
}

/// An answer that is given when this is dropped, which is not under a lock: a waker is the application's, and may post.
#[derive(Debug)]
pub(crate) struct Said(Option<(ReceiptSender, Written)>);

impl Drop for Said {
    fn drop(&mut self) {
        if let Some((receipt, written)) = self.0.take() {
            receipt.say(written);
        }
    }
}

/// The other end. Dropped without a word, it says that there was no answer.
#[derive(Debug)]
pub(crate) struct ReceiptSender(Option<Answerer<Written>>);

impl ReceiptSender {
    pub(crate) fn later(self, written: Written) -> Said {
        Said(Some((self, written)))
    }

    pub(crate) fn refused(self, reason: DropReason) -> Said {
        self.later(Err(NotDurable::Dropped(reason)))
    }

    fn say(mut self, written: Written) {
        if let Some(answerer) = self.0.take() {
            answerer.say(written);
        }
    }
}
