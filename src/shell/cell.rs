//! What a task's handle and the lane share: the body while it runs, then the result.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use crate::base::catch::{catch, catch_quietly, logged};
use crate::base::waiters::Waiters;
use crate::core::Target;
use crate::model::error::{BoxError, TaskError};
use crate::model::id::Id;
use crate::model::name::Name;
use crate::model::outcome::{Outcome, SkipReason};
use crate::shell::attempt::{BoxedAttempt, Failure};
use crate::shell::governed::{Ended, Governed};
use crate::shell::lender::Lenders;
use crate::shell::shared::Shared;

/// One allocation a task, beside the box of its body.
pub(crate) struct Cell<T> {
    /// Weak: a value that the application keeps must not keep a governor's whole run.
    shared: Weak<Shared>,
    id: Id,
    body: Mutex<Body<T>>,
    result: OnceLock<Result<T, TaskError>>,
    settled: Waiters,
    /// Tells a blocking closure that has not begun not to.
    given_up: Option<Arc<AtomicBool>>,
    declared_in: Option<tracing::span::Id>,
}

/// What a declaration gives its cell.
pub(crate) struct Parts<T> {
    pub(crate) body: BoxedAttempt<T>,
    pub(crate) given_up: Option<Arc<AtomicBool>>,
    pub(crate) declared_in: Option<tracing::span::Id>,
}

/// A body, and its span for as long as it lasts.
struct Running<T> {
    attempt: BoxedAttempt<T>,
    /// Boxed, and only where somebody collects spans: most cells of a large boot wait without one.
    span: Option<Box<OwnSpan>>,
}

/// The task's own span. Whoever collects it is user code: a panic there is none of the task's.
struct OwnSpan(tracing::Span);

impl Drop for OwnSpan {
    fn drop(&mut self) {
        logged(|| drop(std::mem::replace(&mut self.0, tracing::Span::none())));
    }
}

/// `run` lets no panic out.
fn within<R>(span: Option<&OwnSpan>, run: impl FnOnce() -> R) -> R {
    let entered = span.and_then(|span| logged(|| span.0.enter()));
    let done = run();
    logged(|| drop(entered));
    done
}

impl<T> Running<T> {
    /// The future's destructor belongs to the task's span too.
    fn discard(self) {
        let Running { attempt, span } = self;
        within(span.as_deref(), || catch_quietly("the destructor of a task's future", || drop(attempt)));
    }
}

impl<T> Body<T> {
    fn discard(self) {
        match self {
            Body::Here(running) => running.discard(),
            other => catch_quietly("the destructor of a value that came too late", || drop(other)),
        }
    }
}

enum Body<T> {
    Here(Running<T>),
    /// Taken out for a poll: no lock is held across it.
    Polled,
    Ended(Result<T, Option<BoxError>>),
    Gone,
}

impl<T: Send + Sync + 'static> Cell<T> {
    pub(crate) fn new(shared: Weak<Shared>, id: Id, parts: Parts<T>) -> Cell<T> {
        let Parts { body, given_up, declared_in } = parts;
        Cell {
            shared,
            id,
            body: Mutex::new(Body::Here(Running { attempt: body, span: None })),
            result: OnceLock::new(),
            settled: Waiters::default(),
            given_up,
            declared_in,
        }
    }

    pub(crate) fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade()
    }

    pub(crate) fn result(&self) -> Option<&Result<T, TaskError>> {
        self.result.get()
    }

    /// Resolves when the result is there.
    ///
    /// # Errors
    /// The wait would close a cycle.
    pub(crate) async fn settled(&self) -> Result<(), TaskError> {
        let mut lenders = Lenders::new(self.shared.clone(), Target::Task(self.id));
        // Made before the look, so that a result that comes between is not missed.
        let mut settled = self.settled.wait();
        poll_fn(|cx| {
            loop {
                if self.result.get().is_some() {
                    return Poll::Ready(Ok(()));
                }
                if let Err(path) = lenders.polled(cx.waker()) {
                    return Poll::Ready(Err(TaskError::cycle(path)));
                }
                ready!(Pin::new(&mut settled).poll(cx));
                settled = self.settled.wait();
            }
        })
        .await
    }

    fn swap(&self, next: Body<T>) -> Body<T> {
        mem::replace(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner), next)
    }

    /// Puts a body back after its poll, unless it was given up meanwhile.
    fn put_back(&self, next: Body<T>) -> Option<Body<T>> {
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*body, Body::Gone) {
            return Some(next);
        }
        *body = next;
        None
    }

    fn resolve(&self, result: Result<T, TaskError>) {
        if let Err(unclaimed) = self.result.set(result) {
            catch_quietly("the destructor of a value that came too late", || drop(unclaimed));
        }
        self.settled.wake_all();
    }
}

impl<T: Send + Sync + 'static> Governed for Cell<T> {
    fn id(&self) -> Id {
        self.id
    }

    fn governor(&self) -> usize {
        self.shared.as_ptr().addr()
    }

    fn outcome(&self) -> Option<Outcome> {
        Some(match self.result.get()? {
            Ok(_) => Outcome::Completed,
            Err(error) => error.outcome().cloned().unwrap_or(Outcome::Abandoned),
        })
    }

    fn begin_span(&self, governor: &str, name: &Name) {
        let span = logged(|| {
            let span = tracing::info_span!(target: "afterboot", parent: None, "task", governor, name = &*name.clone().into_text());
            (!span.is_disabled()).then(|| Box::new(OwnSpan(span)))
        });
        if let Some(span) = span.flatten() {
            logged(|| _ = span.0.follows_from(self.declared_in.clone()));
            let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
            if let Body::Here(running) = &mut *body {
                running.span = Some(span);
            }
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Ended> {
        let mut running = match self.swap(Body::Polled) {
            Body::Here(running) => running,
            other => {
                self.put_back(other);
                return Poll::Pending;
            }
        };
        // The attempt catches what its own code does; this net is for what lies between.
        let attempt = running.attempt.as_mut();
        let polled = within(running.span.as_deref(), || catch(|| attempt.poll(cx)))
            .unwrap_or_else(|text| Poll::Ready(Err(Failure::Panicked(text))));
        let (outcome, ended) = match polled {
            Poll::Pending => {
                if let Some(given_up) = self.put_back(Body::Here(running)) {
                    given_up.discard();
                }
                return Poll::Pending;
            }
            Poll::Ready(Ok(value)) => (Outcome::Completed, Ok(value)),
            Poll::Ready(Err(Failure::Panicked(text))) => (Outcome::Panicked(text), Err(None)),
            #[cfg(feature = "retry")]
            Poll::Ready(Err(Failure::Again { after, error })) => {
                logged(
                    || tracing::debug!(target: "afterboot", %error, ?after, "an attempt failed; another one follows"),
                );
                catch_quietly("the destructor of an error", || drop(error));
                if let Some(given_up) = self.put_back(Body::Here(running)) {
                    given_up.discard();
                }
                return Poll::Ready(Ended::Again(after));
            }
            Poll::Ready(Err(Failure::Skipped)) => (Outcome::Skipped(SkipReason::Condition), Err(None)),
            Poll::Ready(Err(Failure::Failed(error))) => {
                let text = catch(|| error.to_string())
                    .unwrap_or_else(|_| "an error whose Display panics".to_owned());
                (Outcome::Failed(text.into()), Err(Some(error)))
            }
        };
        running.discard();
        if let Some(late) = self.put_back(Body::Ended(ended)) {
            late.discard();
        }
        Poll::Ready(Ended::With(outcome))
    }

    fn settle(&self, outcome: Outcome, name: Name) {
        let result = match (self.swap(Body::Gone), outcome) {
            (Body::Ended(Ok(value)), Outcome::Completed) => Ok(value),
            (Body::Ended(Err(source)), outcome) => Err(TaskError::new(name, outcome, source)),
            (unfinished, outcome) => {
                unfinished.discard();
                Err(TaskError::new(name, outcome, None))
            }
        };
        self.resolve(result);
    }

    fn resolve_early(&self, outcome: Outcome, name: Name) {
        if let Some(given_up) = &self.given_up {
            given_up.store(true, Ordering::Relaxed);
        }
        self.resolve(Err(TaskError::new(name, outcome, None)));
    }
}

impl<T> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("id", &self.id).finish_non_exhaustive()
    }
}
