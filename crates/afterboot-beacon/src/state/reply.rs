//! A reply to a command: awaited on any runtime, or waited for on a thread without one.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::coop::unconstrained;

pub(crate) fn channel<T>() -> (Responder<T>, ReplyReceiver<T>) {
    let (sender, receiver) = oneshot::channel();
    (Responder(sender), ReplyReceiver(receiver))
}

#[derive(Debug)]
pub(crate) struct Responder<T>(oneshot::Sender<T>);

impl<T> Responder<T> {
    /// The receiver may be gone.
    pub(crate) fn send(self, reply: T) {
        let _ = self.0.send(reply);
    }
}

#[derive(Debug)]
pub(crate) struct ReplyReceiver<T>(oneshot::Receiver<T>);

impl<T> ReplyReceiver<T> {
    /// None: the driver is gone.
    pub(crate) async fn wait(self) -> Option<T> {
        self.0.await.ok()
    }

    /// `None`: the responder is gone.
    #[cfg(feature = "spool")]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        std::pin::Pin::new(&mut self.0).poll(cx).map(Result::ok)
    }

    /// None: the driver is gone, or the limit has passed.
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread waits here, in real time, whatever tokio's clock says"
    )]
    pub(crate) fn wait_blocking(self, limit: Duration) -> Option<T> {
        let begun = Instant::now();
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        // Inside a task whose budget is used up the channel would never look ready.
        let mut receiver = pin!(unconstrained(self.0));
        loop {
            if let Poll::Ready(answer) = receiver.as_mut().poll(&mut Context::from_waker(&waker)) {
                return answer.ok();
            }
            let left = limit.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())?;
            thread::park_timeout(left);
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
