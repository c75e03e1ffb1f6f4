//! Retried tasks. Feature `retry`.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use afterboot_retry::{Clock, GivenUp, JitterRng, Retry, RetryPolicy, nested};
use tokio::time::{Sleep, sleep};

use crate::base::catch::catch;
use crate::model::error::BoxError;
use crate::shell::attempt::{Attempt, Failure};
use crate::shell::output::TaskOutput;

type Boxed<T> = Pin<Box<dyn Future<Output = (Result<T, Failure>, Option<Duration>)> + Send>>;

/// An attempt and what is left of its limit.
type Begun<T> = (Boxed<T>, Option<Pin<Box<Sleep>>>);

pub(crate) struct Retrying<F, T> {
    run: F,
    policy: RetryPolicy,
    /// Begins with the first attempt, not with the declaration.
    retry: Option<Retry>,
    attempt: Option<Begun<T>>,
    limit: Arc<OnceLock<Duration>>,
}

impl<F, T> Retrying<F, T> {
    pub(crate) fn new(run: F, policy: RetryPolicy, limit: Arc<OnceLock<Duration>>) -> Retrying<F, T> {
        Retrying { run, policy, retry: None, attempt: None, limit }
    }
}

/// Nothing in it is pinned but what is boxed.
impl<F, T> Unpin for Retrying<F, T> {}

impl<F, R, T> Future for Retrying<F, T>
where
    F: FnMut() -> R,
    R: Future + Send + 'static,
    R::Output: TaskOutput<Value = T> + Send,
    T: Send + 'static,
{
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let retry = this
            .retry
            .get_or_insert_with(|| this.policy.start_with(Clock::tokio(), JitterRng::from_system()));
        if this.attempt.is_none() {
            // Not when its rest was over: it may have waited for its turn since.
            retry.on_attempt();
            match catch(&mut this.run) {
                Ok(future) => {
                    let attempt: Boxed<T> = Box::pin(nested(Attempt::<fn() -> R, R>::Running(future)));
                    let limit = this.limit.get().map(|limit| Box::pin(sleep(*limit)));
                    this.attempt = Some((attempt, limit));
                }
                Err(text) => return Poll::Ready(Err(Failure::Panicked(text))),
            }
        }
        let Some((attempt, limit)) = &mut this.attempt else { return Poll::Pending };
        let (result, asked) = match attempt.as_mut().poll(cx) {
            Poll::Ready(ended) => ended,
            Poll::Pending => {
                let passed = limit.as_mut().is_some_and(|limit| limit.as_mut().poll(cx).is_ready());
                if !passed {
                    return Poll::Pending;
                }
                // That it lasted long does not mean that it was well.
                retry.on_attempt();
                let limit = this.limit.get().copied().unwrap_or_default();
                (Err(Failure::Failed(Box::new(AttemptTimedOut(limit)))), None)
            }
        };
        // The attempt is over: what it holds goes before the wait, and a destructor that panics ends the task.
        if let Err(text) = catch(|| this.attempt = None) {
            return Poll::Ready(Err(Failure::Panicked(text)));
        }
        let error = match result {
            Err(Failure::Failed(error)) => error,
            other => return Poll::Ready(other),
        };
        match retry.decide(afterboot_retry::Failure::transient().retry_after(asked)).into_result() {
            Ok(wait) => Poll::Ready(Err(Failure::Again { after: wait.after, error })),
            Err(given_up) => Poll::Ready(Err(Failure::Failed(Box::new(LastError { error, given_up })))),
        }
    }
}

/// An attempt took longer than its limit.
#[derive(Debug)]
struct AttemptTimedOut(Duration);

impl fmt::Display for AttemptTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the attempt took longer than {:?}", self.0)
    }
}

impl Error for AttemptTimedOut {}

/// What the last attempt said, and why there was no further one.
#[derive(Debug)]
struct LastError {
    error: BoxError,
    given_up: GivenUp,
}

impl fmt::Display for LastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.error, self.given_up)
    }
}

impl Error for LastError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.error)
    }
}
