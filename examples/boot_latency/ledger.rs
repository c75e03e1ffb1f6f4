//! When each task body started and finished, and its longest poll: taken inside the body's own wrapper,
//! so that every strategy is measured by the same clock at the same place.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::clock;
use crate::tasks::{Body, BodyResult, Queue};

/// How a body ended. A body that was dropped before it returned has panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Failed,
    Panicked,
}

#[derive(Debug)]
struct Entry {
    queue: Queue,
    started: OnceLock<Duration>,
    finished: OnceLock<(Duration, End)>,
    longest_poll: AtomicU64,
}

/// One record a task, in the order of the task list.
#[derive(Debug)]
pub(crate) struct Ledger {
    zero: Instant,
    entries: Vec<Entry>,
}

impl Ledger {
    pub(crate) fn new(zero: Instant, queues: impl Iterator<Item = Queue>) -> Arc<Self> {
        let entry = |queue| Entry {
            queue,
            started: OnceLock::new(),
            finished: OnceLock::new(),
            longest_poll: AtomicU64::new(0),
        };
        Arc::new(Self { zero, entries: queues.map(entry).collect() })
    }

    /// Wraps an async body; its start is its first poll.
    pub(crate) fn watch(self: &Arc<Self>, task: usize, body: Body) -> Watched {
        Watched { span: Span { ledger: self.clone(), task }, body: Some(body) }
    }

    /// Wraps a body that runs on a blocking thread. It has no polls.
    pub(crate) fn watch_blocking(
        self: &Arc<Self>,
        task: usize,
        body: Box<dyn FnOnce() -> BodyResult + Send>,
    ) -> impl FnOnce() -> BodyResult + Send + 'static {
        let span = Span { ledger: self.clone(), task };
        move || {
            span.start();
            span.settle(body())
        }
    }

    /// The times in which at least one body had started and not finished, merged and in order.
    pub(crate) fn busy(&self) -> Vec<(Duration, Duration)> {
        let mut spans: Vec<_> =
            self.entries.iter().filter_map(|e| Some((*e.started.get()?, e.finished.get()?.0))).collect();
        spans.sort_unstable();
        let mut merged: Vec<(Duration, Duration)> = Vec::new();
        for (start, end) in spans {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        merged
    }

    pub(crate) fn count(&self, wanted: End) -> usize {
        self.entries.iter().filter(|e| e.finished.get().is_some_and(|f| f.1 == wanted)).count()
    }

    /// Bodies that were entered at all: conditions and skipped successors are not among them.
    pub(crate) fn started(&self) -> usize {
        self.entries.iter().filter(|e| e.started.get().is_some()).count()
    }

    pub(crate) fn longest_poll(&self) -> Option<Duration> {
        let longest = self.entries.iter().map(|e| e.longest_poll.load(Relaxed)).max().unwrap_or(0);
        (longest > 0).then(|| Duration::from_nanos(longest))
    }

    pub(crate) fn last_finish(&self, queue: Queue) -> Option<Duration> {
        self.of(queue).filter_map(|e| e.finished.get()).map(|f| f.0).max()
    }

    pub(crate) fn first_start(&self, queue: Queue) -> Option<Duration> {
        self.of(queue).filter_map(|e| e.started.get().copied()).min()
    }

    fn of(&self, queue: Queue) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |e| e.queue == queue)
    }
}

/// Open from a body's start to its end. Dropping it closes it, so a body that panics is closed too.
#[derive(Debug)]
struct Span {
    ledger: Arc<Ledger>,
    task: usize,
}

impl Span {
    fn entry(&self) -> &Entry {
        &self.ledger.entries[self.task]
    }

    fn start(&self) {
        self.entry().started.get_or_init(|| self.ledger.zero.elapsed());
    }

    /// Only the first end counts.
    fn close(&self, end: End) {
        self.entry().finished.get_or_init(|| (self.ledger.zero.elapsed(), end));
    }

    fn settle(&self, result: BodyResult) -> BodyResult {
        self.close(if result.is_ok() { End::Completed } else { End::Failed });
        result
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if self.entry().started.get().is_some() {
            self.close(End::Panicked);
        }
    }
}

/// An async body with its span and a clock around each poll.
pub(crate) struct Watched {
    span: Span,
    body: Option<Body>,
}

impl Future for Watched {
    type Output = BodyResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<BodyResult> {
        let me = self.get_mut();
        let Some(body) = me.body.as_mut() else { return Poll::Pending };
        me.span.start();
        let start = clock::now();
        let polled = body.as_mut().poll(context);
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        me.span.entry().longest_poll.fetch_max(nanos, Relaxed);
        polled.map(|result| {
            // What the body still owns is freed as part of the task.
            me.body = None;
            me.span.settle(result)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_merges_what_overlaps_and_keeps_gaps() {
        let ledger = Ledger::new(clock::now(), [Queue::Normal; 4].into_iter());
        for (task, start, end) in [(0, 30, 40), (1, 0, 10), (2, 5, 20), (3, 35, 38)] {
            ledger.entries[task].started.set(Duration::from_millis(start)).expect("fresh");
            ledger.entries[task].finished.set((Duration::from_millis(end), End::Completed)).expect("fresh");
        }
        let busy: Vec<_> = ledger.busy().iter().map(|s| (s.0.as_millis(), s.1.as_millis())).collect();
        assert_eq!(busy, [(0, 20), (30, 40)]);
    }

    #[test]
    fn a_body_dropped_before_it_returned_counts_as_panicked() {
        let ledger = Ledger::new(clock::now(), [Queue::Normal].into_iter());
        let work = ledger.watch_blocking(0, Box::new(|| panic!("deliberate: test")));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        assert_eq!(ledger.count(End::Panicked), 1);
    }
}
