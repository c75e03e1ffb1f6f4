//! One attempt of a task: calls the closure, polls and drops its future, and catches panics.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;

use crate::base::catch::catch;
use crate::model::error::BoxError;
use crate::shell::output::TaskOutput;

/// Why an attempt gave no value.
#[derive(Debug)]
pub(crate) enum Failure {
    Failed(BoxError),
    Panicked(Arc<str>),
    /// The condition asked at the start was false: the task has not run.
    Skipped,
    /// It failed, and is to be tried again.
    #[cfg(feature = "retry")]
    Again {
        after: std::time::Duration,
        error: BoxError,
    },
}

/// An attempt as the rest of the crate knows it: one box that holds the closure, then its future.
pub(crate) type BoxedAttempt<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// The closure is called inside the first poll, in the task's own tick: a synchronous prefix of "background"
/// work must not hold up whoever declares it.
#[pin_project(project = Stage)]
pub(crate) enum Attempt<F, R> {
    Declared(Option<F>),
    Running(#[pin] R),
    Done,
}

impl<F, R> Attempt<F, R> {
    pub(crate) fn new(run: F) -> Attempt<F, R> {
        Attempt::Declared(Some(run))
    }

    /// Drops what is left in place, so that a destructor that panics is caught like a poll.
    fn finish<V>(mut self: Pin<&mut Self>, verdict: Result<V, Failure>) -> Poll<Result<V, Failure>> {
        Poll::Ready(match catch(|| self.set(Attempt::Done)) {
            Ok(()) => verdict,
            Err(text) => verdict.and(Err(Failure::Panicked(text))),
        })
    }
}

impl<F, R> Future for Attempt<F, R>
where
    F: FnOnce() -> R,
    R: Future,
    R::Output: TaskOutput,
{
    type Output = Result<<R::Output as TaskOutput>::Value, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.as_mut().project() {
                Stage::Declared(run) => {
                    let run = run.take().expect("an attempt that is declared has its closure");
                    match catch(run) {
                        Ok(future) => self.set(Attempt::Running(future)),
                        Err(text) => return self.finish(Err(Failure::Panicked(text))),
                    }
                }
                Stage::Running(future) => {
                    let verdict = match catch(|| future.poll(cx).map(settle)) {
                        Ok(polled) => ready!(polled),
                        Err(text) => Err(Failure::Panicked(text)),
                    };
                    return self.finish(verdict);
                }
                Stage::Done => return Poll::Pending,
            }
        }
    }
}

/// Runs inside `catch`: the conversion into a boxed error is the user's code.
pub(crate) fn settle<O: TaskOutput>(output: O) -> Result<O::Value, Failure> {
    output.settle().map_err(Failure::Failed)
}

/// An attempt behind a condition that is asked in its own tick.
#[pin_project]
pub(crate) struct WhenAtStart<C, A> {
    condition: Option<C>,
    attempt: Option<A>,
}

impl<C, A> WhenAtStart<C, A> {
    pub(crate) fn new(condition: C, attempt: A) -> WhenAtStart<C, A> {
        WhenAtStart { condition: Some(condition), attempt: Some(attempt) }
    }
}

impl<C, T, A> Future for WhenAtStart<C, A>
where
    C: FnOnce() -> bool,
    A: Future<Output = Result<T, Failure>> + Unpin,
{
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(condition) = this.condition.take() {
            let failure = match catch(condition) {
                Ok(true) => None,
                Ok(false) => Some(Failure::Skipped),
                Err(text) => Some(Failure::Panicked(text)),
            };
            if let Some(failure) = failure {
                return Poll::Ready(match catch(|| drop(this.attempt.take())) {
                    Ok(()) => Err(failure),
                    Err(text) => Err(Failure::Panicked(text)),
                });
            }
        }
        match this.attempt {
            Some(attempt) => Pin::new(attempt).poll(cx),
            None => Poll::Pending,
        }
    }
}
