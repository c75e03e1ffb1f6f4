//! Each task's span: a root that follows from the one in which the task was declared.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use afterboot::{Governor, Task};
use tokio::runtime;
use tokio::task::yield_now;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Span, Subscriber, info, info_span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::common::{boom, breathe, fast, ms, silence, within};

/// What is known of a span, closed or not.
#[derive(Debug, Default, Clone, PartialEq)]
struct Seen {
    name: String,
    governor: String,
    task: String,
    /// Whether it hangs below another one.
    has_parent: bool,
    follows: Vec<String>,
    entered: usize,
    exited: usize,
    closed: bool,
    /// Events that came while it was the innermost.
    events: usize,
}

/// Keeps all spans in the order in which they were made.
#[derive(Default, Clone)]
struct Spans(Arc<Mutex<Vec<(Id, Seen)>>>);

impl Spans {
    /// Collects on this thread until the guard is dropped.
    fn collect() -> (Spans, DefaultGuard) {
        let spans = Spans::default();
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(spans.clone()));
        (spans, guard)
    }

    /// The last one of this id: a closed span's id may be used again.
    fn with(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        let mut spans = self.0.lock().unwrap();
        if let Some((_, seen)) = spans.iter_mut().rev().find(|(known, _)| known == id) {
            change(seen);
        }
    }

    fn of(&self, task: &str) -> Seen {
        let spans = self.0.lock().unwrap();
        let found: Vec<_> = spans.iter().filter(|(_, seen)| seen.task == task).collect();
        assert_eq!(found.len(), 1, "one span a task: {task} in {spans:?}");
        found[0].1.clone()
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "governor" => self.governor = value.to_owned(),
            "name" => self.task = value.to_owned(),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut seen = Seen { name: attributes.metadata().name().to_owned(), ..Seen::default() };
        attributes.record(&mut seen);
        seen.has_parent = context.span(id).and_then(|span| span.parent()).is_some();
        self.0.lock().unwrap().push((id.clone(), seen));
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        let before = context.span(follows).map_or("closed", |span| span.name()).to_owned();
        self.with(id, |seen| seen.follows.push(before));
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        self.with(id, |seen| seen.entered += 1);
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.with(id, |seen| seen.exited += 1);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.with(&id, |seen| seen.closed = true);
    }

    fn on_event(&self, _: &tracing::Event<'_>, context: Context<'_, S>) {
        if let Some(current) = context.lookup_current() {
            self.with(&current.id(), |seen| seen.events += 1);
        }
    }
}

/// A child would keep the declaring span open for the whole boot.
#[tokio::test(start_paused = true)]
async fn a_tasks_span_is_a_root_that_follows_from_the_declaring_one() {
    let (spans, _collecting) = Spans::collect();
    let governor = Governor::builder().name("side").build().unwrap();
    let declaring = info_span!("boot");
    let task = declaring.in_scope(|| governor.govern(Task::new("inside", || async {})));
    let alone = governor.govern(Task::new("outside", || async {}));
    within(task.wait()).await.unwrap();
    within(alone.wait()).await.unwrap();
    let inside = spans.of("inside");
    assert_eq!((inside.name.as_str(), inside.governor.as_str()), ("task", "side"));
    assert_eq!((inside.has_parent, inside.follows), (false, vec!["boot".to_owned()]));
    let outside = spans.of("outside");
    assert_eq!((outside.has_parent, outside.follows), (false, vec![]));
}

/// Nor does it hang below a span in which the whole runtime runs.
#[test]
fn the_span_around_the_runtime_is_no_parent() {
    let (spans, _collecting) = Spans::collect();
    let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    info_span!("main").in_scope(|| {
        runtime.block_on(async {
            within(fast(1).govern(Task::new("task", || async {})).wait()).await.unwrap();
        });
    });
    assert_eq!((spans.of("task").has_parent, spans.of("task").follows), (false, vec!["main".to_owned()]));
}

/// The span in which the lane, the handle or the demand runs has no say.
#[tokio::test(start_paused = true)]
async fn the_span_of_whoever_demands_is_no_parent() {
    let (spans, _collecting) = Spans::collect();
    let governor = fast(1);
    let task = governor.govern(Task::new("task", || async {}).idle());
    let demand = info_span!("request").in_scope(|| task.demand());
    within(demand).await.unwrap();
    assert_eq!((spans.of("task").has_parent, spans.of("task").follows), (false, vec![]));
}

/// A declaring span that is over by then is kept by nobody.
#[tokio::test(start_paused = true)]
async fn a_waiting_task_does_not_keep_the_declaring_span_open() {
    let (spans, _collecting) = Spans::collect();
    let governor = fast(1);
    let declaring = info_span!("boot");
    let task = declaring.in_scope(|| governor.govern(Task::new("task", || async {}).idle()));
    drop(declaring);
    assert!(spans.of("").closed, "the only one that has no task");
    within(task.wait()).await.unwrap();
    assert!(!spans.of("task").has_parent);
}

/// Entered in each poll and left after it, closure, future and destructor alike.
#[tokio::test(start_paused = true)]
async fn the_span_is_entered_in_every_poll_and_left_after_it() {
    let (spans, _collecting) = Spans::collect();
    let governor = fast(2);
    let run = || {
        info!("in the closure");
        async {
            for _ in 0..3 {
                info!("in a poll");
                yield_now().await;
                sleep(ms(5)).await;
            }
        }
    };
    let task = governor.govern(Task::new("task", run));
    governor.govern(Task::new("other", || async { info!("another's") }));
    within(task.wait()).await.unwrap();
    breathe().await;
    assert!(Span::current().is_none());
    let seen = spans.of("task");
    let polls = governor.report().current().task("task").unwrap().polls as usize;
    assert!(seen.entered >= polls && seen.entered == seen.exited, "{polls} polls, {seen:?}");
    assert_eq!((seen.events, spans.of("other").events), (4, 1));
}

/// A condition is asked inside it too.
#[tokio::test(start_paused = true)]
async fn a_condition_is_asked_inside_the_tasks_span() {
    let (spans, _collecting) = Spans::collect();
    let governor = fast(1);
    let asks = || {
        info!("asked");
        false
    };
    let task = governor.govern(Task::new("task", boom).when_at_start(asks));
    within(task.wait()).await.unwrap_err();
    assert_eq!(spans.of("task").events, 1);
}

/// What a task declares follows from its own span.
#[tokio::test(start_paused = true)]
async fn a_child_follows_from_the_span_of_the_task_that_declared_it() {
    let (spans, _collecting) = Spans::collect();
    let governor = fast(2);
    let inner = governor.clone();
    governor.govern(Task::new("parent", move || async move {
        inner.govern(Task::new("child", || async {})).wait().await.map(drop)
    }));
    within(governor.report().finished()).await;
    let child = spans.of("child");
    assert_eq!((child.has_parent, child.follows), (false, vec!["task".to_owned()]));
}

/// What never starts has none; a panic leaves none entered.
#[tokio::test(start_paused = true)]
async fn a_task_that_never_starts_has_no_span_and_a_panic_leaves_its_own() {
    silence();
    let (spans, _collecting) = Spans::collect();
    let governor = fast(1);
    let panics = governor.govern(Task::new("panics", boom));
    governor.govern(Task::new("skipped", || async {}).after(&panics));
    governor.govern(Task::new("off", || async {}).when(false));
    within(governor.report().finished()).await;
    assert_eq!(spans.len(), 1);
    assert_eq!(spans.of("panics").entered, spans.of("panics").exited);
    assert!(Span::current().is_none());
}

/// I6: a task's span is over when the task is, though somebody keeps its handle and its value.
#[tokio::test(start_paused = true)]
async fn the_span_is_closed_when_the_task_has_ended() {
    let (spans, _collecting) = Spans::collect();
    let governor = fast(1);
    let task = governor.govern(Task::value("task", || async { 1 }));
    let value = within(task.wait()).await.unwrap();
    breathe().await;
    let seen = spans.of("task");
    assert!(seen.closed, "{seen:?}");
    drop((task, value));
}

/// I7: whoever collects the spans may not stop the lane.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_does_not_stop_the_lane() {
    struct Panics;
    impl<S: Subscriber> Layer<S> for Panics {
        fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
            let mut seen = Seen::default();
            attributes.record(&mut seen);
            assert_ne!(seen.task, "bad", "boom");
        }
    }
    silence();
    let _collecting = tracing::subscriber::set_default(tracing_subscriber::registry().with(Panics));
    let governor = fast(1);
    let bad = governor.govern(Task::new("bad", || std::future::poll_fn(|_| Poll::Ready(()))));
    let next = governor.govern(Task::value("next", || async { 2 }));
    assert_eq!(*within(next.wait()).await.unwrap(), 2);
    within(bad.wait()).await.unwrap();
}
