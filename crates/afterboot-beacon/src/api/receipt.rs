//! The receipt of a durable post.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use crate::engine::{NotDurable, ReceiptSender, Written};
use crate::state::reply::{self, ReplyReceiver};

/// Resolves once a durable event is on disk or cannot be. Returned by [`Post::durable`](crate::Post::durable). Await it, or
/// call [`wait_blocking`](Receipt::wait_blocking). Dropping it does not affect the event.
#[derive(Debug)]
#[must_use = "a durable post is durable once its receipt says so"]
pub struct Receipt(ReplyReceiver<Written>);

impl Receipt {
    pub(crate) fn new() -> (ReceiptSender, Receipt) {
        let (responder, receiver) = reply::channel();
        (ReceiptSender::new(|written| responder.send(written)), Receipt(receiver))
    }

    /// Blocks this thread, which may be inside or outside a runtime. If the beacon runs on the caller's own current-thread
    /// runtime, it cannot make progress meanwhile.
    ///
    /// # Errors
    /// Returns why the event is not on disk, or [`NotDurable::NoAnswer`] after `limit`.
    pub fn wait_blocking(self, limit: Duration) -> Result<(), NotDurable> {
        self.0.wait_blocking(limit).unwrap_or(Err(NotDurable::NoAnswer))
    }
}

impl IntoFuture for Receipt {
    type Output = Result<(), NotDurable>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<(), NotDurable>> + Send>>;

    /// Works on any runtime. Cancel safe: dropping the future does not affect the event.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.0.wait().await.unwrap_or(Err(NotDurable::NoAnswer)) })
    }
}
