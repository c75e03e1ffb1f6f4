//! The answer to a durable post.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use crate::engine::{NotDurable, ReceiptSender, Written};
use crate::state::reply::{self, ReplyReceiver};

/// Resolves when a durable event is on disk, or will not be. Await it, or [`wait_blocking`](Receipt::wait_blocking).
/// Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "a durable post is durable once its receipt says so"]
pub struct Receipt(ReplyReceiver<Written>);

impl Receipt {
    pub(crate) fn new() -> (ReceiptSender, Receipt) {
        let (responder, receiver) = reply::channel();
        (ReceiptSender::new(|written| responder.send(written)), Receipt(receiver))
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
