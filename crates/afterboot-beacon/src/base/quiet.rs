//! Futures whose spans and events do not reach the application's log.

use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Dispatch;
use tracing::dispatcher::with_default;

/// Runs the future, and drops it, without a subscriber for its spans and events: the client's own telemetry is not its
/// input. `Dispatch::none` is registered nowhere, so that a forked child never waits for a lock of the whole process.
pub(crate) fn quiet<T>(future: impl Future<Output = T> + Send + 'static) -> Quiet<T> {
    Quiet(Some(Box::pin(future)))
}

pub(crate) struct Quiet<T>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T> Future for Quiet<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        with_default(&Dispatch::none(), || future.as_mut().poll(cx))
    }
}

impl<T> Drop for Quiet<T> {
    fn drop(&mut self) {
        with_default(&Dispatch::none(), || self.0 = None);
    }
}

#[cfg(feature = "http")]
mod executor {
    use super::quiet;

    /// Where hyper's own tasks run: the one of a connection outlives the request that made it.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct QuietExecutor;

    impl<F> hyper::rt::Executor<F> for QuietExecutor
    where
        F: Future<Output: Send> + Send + 'static,
    {
        fn execute(&self, future: F) {
            tokio::spawn(quiet(async move { drop(future.await) }));
        }
    }
}

#[cfg(feature = "http")]
pub(crate) use executor::QuietExecutor;
