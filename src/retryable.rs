//! Tasks that are tried again. Feature `retry`.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use afterboot_retry::{Clock, Decision, GivenUp, JitterRng, Retry, RetryPolicy, nested};
use tokio::time::{Sleep, sleep};

use crate::attempt::{Attempt, Failure};
use crate::catch::catch;
use crate::error::BoxError;
use crate::task::{Task, TaskOutput};

impl<T: Send + Sync + 'static> Task<T> {
    /// A task that is tried again when it fails, as the policy says.
    ///
    /// **Only idempotent work is retried:** an attempt that failed may have been carried out all the same.
    ///
    /// Between two attempts the task holds neither lane nor slot; then it takes its turn again, at its place in its
    /// queue. A [`demand`](crate::TaskHandle::demand) skips the wait. [`timeout`](Task::timeout) bounds all attempts
    /// and waits together, [`attempt_timeout`](Task::attempt_timeout) each attempt. A panic is not retried: it is a bug,
    /// not a failure. When the policy gives up, the task has failed with its last error, and the outcome says which
    /// limit it was.
    pub fn retryable<F, R>(
        name: impl Into<Cow<'static, str>>,
        run: F,
        policy: impl Into<RetryPolicy>,
    ) -> Task<T>
    where
        F: FnMut() -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: TaskOutput<Value = T> + Send,
    {
        let limit: Arc<OnceLock<Duration>> = Arc::default();
        let body =
            Retrying { run, policy: policy.into(), retry: None, attempt: None, limit: Arc::clone(&limit) };
        let mut task = Task::from_body(name.into(), Box::pin(body));
        task.attempt_limit = Some(limit);
        task
    }

    /// Ends an attempt of a [`retryable`](Task::retryable) task this long after it began; that is a failure like any
    /// other, and the policy decides whether another attempt follows. The future goes first, as with
    /// [`timeout`](Task::timeout). For other tasks, and for zero, the declaration is invalid.
    pub fn attempt_timeout(mut self, limit: Duration) -> Task<T> {
        match &self.attempt_limit {
            Some(known) if !limit.is_zero() => {
                // Called twice, the first word holds: there is no reason to.
                known.get_or_init(|| limit);
            }
            _ => self.attempt_limit_is_wrong = true,
        }
        self
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = (Result<T, Failure>, Option<Duration>)> + Send>>;

/// An attempt and what is left of its limit.
type Begun<T> = (Boxed<T>, Option<Pin<Box<Sleep>>>);

struct Retrying<F, T> {
    run: F,
    policy: RetryPolicy,
    /// Begins with the first attempt, not with the declaration.
    retry: Option<Retry>,
    attempt: Option<Begun<T>>,
    limit: Arc<OnceLock<Duration>>,
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
        match retry.decide(afterboot_retry::Failure::transient().retry_after(asked)) {
            Decision::Retry(wait) => Poll::Ready(Err(Failure::Again { after: wait.after, error })),
            Decision::GiveUp(given_up) => {
                Poll::Ready(Err(Failure::Failed(Box::new(LastError { error, given_up }))))
            }
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
