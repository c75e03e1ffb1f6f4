//! Observed futures of the application: their polls are known by name, for the attribution of long tasks.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use pin_project::pin_project;
use tokio::runtime::worker_index;

use crate::base::clock::Stamp;
use crate::core::stalls::WORTH_REMEMBERING;
use crate::shell::context;
use crate::shell::shared::Shared;

/// A future whose long polls are attributed to its name. Returned by [`Governor::observe`](crate::Governor::observe).
///
/// Costs two readings of tokio's clock per poll, about 60 ns together.
#[pin_project]
#[must_use = "a future does nothing until it is polled"]
pub struct Observed<F> {
    #[pin]
    future: F,
    name: Arc<str>,
    shared: Weak<Shared>,
}

impl<F> Observed<F> {
    pub(crate) fn new(future: F, name: Arc<str>, shared: &Arc<Shared>) -> Observed<F> {
        Observed { future, name, shared: Arc::downgrade(shared) }
    }
}

impl<F: Future> Future for Observed<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(shared) = this.shared.upgrade() else { return this.future.poll(cx) };
        // Dropped on a panic too, so that the outer one is restored.
        let _span = Span::of_poll(shared, Arc::clone(this.name));
        this.future.poll(cx)
    }
}

impl<F> fmt::Debug for Observed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A period of time on this thread that is attributed to a name; the end of a nested one restores the outer one.
pub(crate) struct Span {
    shared: Arc<Shared>,
    name: Arc<str>,
    since: Stamp,
    /// Of one entered by hand: how many tasks are known to have been polled on this thread before.
    turn: Option<u64>,
    sampled: bool,
    outer: Option<Current>,
}

impl Span {
    /// One poll of an observed future: it holds its thread all along.
    fn of_poll(shared: Arc<Shared>, name: Arc<str>) -> Span {
        let mut span = Span::entered(shared, name);
        span.turn = None;
        if span.shared.samples {
            let current = Current {
                governor: Arc::as_ptr(&span.shared).addr(),
                name: Arc::clone(&span.name),
                since: span.since,
                worker: worker_index(),
            };
            span.sampled = true;
            span.outer = CELL.with_borrow(|cell| cell.set(Some(current)));
        }
        span
    }

    /// What was entered by hand, and may be left only after an await: it explains nothing if another task was polled on this
    /// thread meanwhile, and a sampler does not take it for a poll.
    pub(crate) fn entered(shared: Arc<Shared>, name: Arc<str>) -> Span {
        let since = shared.clock.now();
        Span { shared, name, since, turn: Some(context::turn()), sampled: false, outer: None }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if self.sampled {
            CELL.with_borrow(|cell| cell.set(self.outer.take()));
        }
        if self.turn.is_some_and(|turn| turn != context::turn()) {
            return;
        }
        let now = self.shared.clock.now();
        if now.since(self.since) >= WORTH_REMEMBERING {
            let (since, worker, name) = (self.since, worker_index(), Arc::clone(&self.name));
            self.shared.judge(|core, _, _| core.application_polled(since, now, worker, name));
        }
    }
}

/// What is polled on a thread now.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    /// The governor's address.
    pub(crate) governor: usize,
    pub(crate) name: Arc<str>,
    pub(crate) since: Stamp,
    pub(crate) worker: Option<usize>,
}

/// One a thread, read by samplers on other threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadCell(Mutex<Option<Current>>);

impl ThreadCell {
    fn set(&self, current: Option<Current>) -> Option<Current> {
        std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), current)
    }

    pub(crate) fn get(&self) -> Option<Current> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The cells of all threads that have polled something observed; those of dead threads fall out.
static CELLS: Mutex<Vec<Weak<ThreadCell>>> = Mutex::new(Vec::new());

thread_local! {
    static CELL: RefCell<Arc<ThreadCell>> = {
        let cell = Arc::new(ThreadCell::default());
        let mut cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
        cells.retain(|cell| cell.strong_count() > 0);
        cells.push(Arc::downgrade(&cell));
        RefCell::new(cell)
    };
}

/// What is polled now on any thread.
pub(crate) fn polled_now() -> Vec<Current> {
    let cells: Vec<Arc<ThreadCell>> = {
        let cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
        cells.iter().filter_map(Weak::upgrade).collect()
    };
    cells.iter().filter_map(|cell| cell.get()).collect()
}
