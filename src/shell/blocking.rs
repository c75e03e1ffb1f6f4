//! A closure on tokio's blocking pool.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use crate::base::catch::{catch, catch_quietly};
use crate::base::threads;
use crate::shell::attempt::{Failure, settle};
use crate::shell::context;
use crate::shell::output::TaskOutput;

/// To the lane it is a future like any other, so it holds a slot, has a timeout and is counted like any other; but dropping it
/// does not stop a closure that has begun.
pub(crate) struct Blocking<F, V> {
    /// None once it has begun: whoever takes it runs it or drops it.
    run: Arc<Mutex<Option<F>>>,
    given_up: Arc<AtomicBool>,
    answer: Option<oneshot::Receiver<Result<V, Failure>>>,
    /// There while no thread could be had: the pool is asked again then.
    again: Option<Pin<Box<Sleep>>>,
}

/// Nothing in it is pinned but what is boxed.
impl<F, V> Unpin for Blocking<F, V> {}

impl<F, V> Blocking<F, V> {
    /// `given_up`: the handle is resolved, so a closure that has not begun must not.
    pub(crate) fn new(run: F, given_up: Arc<AtomicBool>) -> Blocking<F, V> {
        Blocking { run: Arc::new(Mutex::new(Some(run))), given_up, answer: None, again: None }
    }
}

fn take<F>(run: &Mutex<Option<F>>) -> Option<F> {
    run.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl<F, O> Blocking<F, O::Value>
where
    F: FnOnce() -> O + Send + 'static,
    O: TaskOutput,
    O::Value: Send,
{
    fn ask(&mut self) -> oneshot::Receiver<Result<O::Value, Failure>> {
        let (tell, answer) = oneshot::channel();
        let (run, given_up) = (Arc::clone(&self.run), Arc::clone(&self.given_up));
        // What the closure declares or waits for, it does as this task.
        let here = context::here();
        let guarded = move || {
            let _here = context::reenter(here);
            let Some(run) = take(&run) else { return };
            let verdict = if given_up.load(Ordering::Relaxed) {
                catch(|| drop(run)).and(Ok(Err(Failure::Skipped)))
            } else {
                catch(|| settle(run()))
            };
            let verdict = verdict.unwrap_or_else(|text| Err(Failure::Panicked(text)));
            catch_quietly("the destructor of a value that came too late", || drop(tell.send(verdict)));
        };
        if threads::on_the_pool(&Handle::current(), guarded).is_err() {
            threads::refused();
            self.again = Some(Box::pin(sleep(threads::AGAIN)));
        }
        answer
    }
}

impl<F, O> Future for Blocking<F, O::Value>
where
    F: FnOnce() -> O + Send + 'static,
    O: TaskOutput,
    O::Value: Send,
{
    type Output = Result<O::Value, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.answer.is_none() {
            this.answer = Some(this.ask());
        }
        let Some(answer) = &mut this.answer else { return Poll::Pending };
        let Poll::Ready(verdict) = Pin::new(answer).poll(cx) else {
            while let Some(again) = &mut this.again {
                ready!(again.as_mut().poll(cx));
                again.as_mut().reset(Instant::now() + threads::AGAIN);
                if threads::ask_again(&Handle::current()) {
                    this.again = None;
                }
            }
            return Poll::Pending;
        };
        Poll::Ready(verdict.unwrap_or_else(|_lost| {
            // The pool dropped it: the runtime is going away, and the lane's guard is about to say so.
            Err(Failure::Panicked("the runtime's blocking pool dropped the closure".into()))
        }))
    }
}

impl<F, V> Drop for Blocking<F, V> {
    /// A closure that still stands in the pool's line goes here and now.
    fn drop(&mut self) {
        drop(take(&self.run));
    }
}
