//! Whoever collects spans and events is user code: what it does decides nothing.

use afterboot::{Governor, Outcome, Profile, Task};
use tokio::runtime::{Builder, Runtime};
use tracing::span::{Attributes, Id};
use tracing::{Event, Metadata, Subscriber, info_span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::common::{Bomb, alive, boom, ended, hold, ms, secs, silence, soon};
use crate::stuck::until;

/// Where the layer panics.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    New,
    Follows,
    Enter,
    Exit,
    Close,
    Event,
}

const EVERYWHERE: [At; 6] = [At::New, At::Follows, At::Enter, At::Exit, At::Close, At::Event];

/// Panics where it is told to, for what is the governor's own.
struct Panics(At);

impl Panics {
    fn at(&self, at: At, metadata: Option<&'static Metadata<'static>>) {
        let ours = metadata.is_some_and(|metadata| metadata.target() == "afterboot");
        if self.0 == at && ours && !std::thread::panicking() {
            panic!("boom in a layer, at {at:?}");
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Panics {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.at(At::New, Some(attributes.metadata()));
    }

    fn on_follows_from(&self, id: &Id, _: &Id, cx: Context<'_, S>) {
        self.at(At::Follows, cx.metadata(id));
    }

    fn on_enter(&self, id: &Id, cx: Context<'_, S>) {
        self.at(At::Enter, cx.metadata(id));
    }

    fn on_exit(&self, id: &Id, cx: Context<'_, S>) {
        self.at(At::Exit, cx.metadata(id));
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        self.at(At::Close, cx.metadata(&id));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.at(At::Event, Some(event.metadata()));
    }
}

fn collects(at: At) {
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(Panics(at)));
    // For as long as its thread lives.
    std::mem::forget(guard);
}

/// Each on threads of its own, so that no other test has the layer.
fn on_both_runtimes(at: At) {
    let runtimes: [fn(At) -> Runtime; 2] = [
        |_| Builder::new_current_thread().enable_all().build().unwrap(),
        |at| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(2).on_thread_start(move || collects(at)).enable_all().build().unwrap()
        },
    ];
    for runtime in runtimes {
        let played = std::thread::spawn(move || {
            collects(at);
            runtime(at).block_on(scene());
        });
        played.join().expect("the run is as ever");
    }
}

async fn scene() {
    let profile = Profile::default().concurrency(2).delay(ms(0)).pulse(ms(0));
    let builder = Governor::builder().profile(profile).stuck_after(ms(30));
    let governor = builder.quiet(ms(60)).interactive_when(boom()).build().unwrap();
    let declare = info_span!("declares").in_scope(|| {
        [
            governor.govern(Task::new("plain", || async { tokio::task::yield_now().await })),
            governor.govern(Task::new("fails", || async { Err::<(), _>("no") })),
            governor.govern(Task::new("panics", boom)),
            governor.govern(Task::new("limited", secs_pass).timeout(ms(5))),
            governor.govern(Task::new("stuck", || async { hold(ms(150)) })),
            governor.govern(Task::blocking("blocking", || ())),
        ]
    });
    let bomb = Bomb;
    let cancelled = governor.govern(Task::new("cancelled", move || async move { drop(bomb) }));
    cancelled.cancel();
    let idle = governor.govern(Task::new("idle", || async {}).idle());
    for handle in &declare {
        let _ = soon(handle.wait()).await;
    }
    soon(idle.wait()).await.unwrap();
    let report = soon(governor.report().finished()).await;
    for completed in ["plain", "stuck", "blocking", "idle"] {
        assert_eq!(ended(&report, completed), Outcome::Completed);
    }
    assert!(matches!(ended(&report, "fails"), Outcome::Failed(_)));
    assert!(matches!(ended(&report, "panics"), Outcome::Panicked(_)));
    assert!(matches!(ended(&report, "limited"), Outcome::TimedOut { .. }));
    until(|| alive() == 0).await;
}

async fn secs_pass() {
    tokio::time::sleep(secs(20)).await;
}

/// I38, I7: neither lane nor watchdog nor probe ends, and no task ends as anything else than what it is.
#[test]
fn a_layer_that_panics_anywhere_decides_no_tasks_end_and_stops_nothing() {
    silence();
    for at in EVERYWHERE {
        on_both_runtimes(at);
    }
}

/// I38: the span in which a task was declared is closed by the time the task runs; a layer that looks for it finds nothing.
#[tokio::test(start_paused = true)]
async fn a_layer_that_does_not_find_the_declaring_span_any_more_keeps_no_task_from_running() {
    struct Unwraps;
    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Unwraps {
        fn on_follows_from(&self, _: &Id, follows: &Id, cx: Context<'_, S>) {
            cx.span(follows).expect("boom: the span is closed");
        }
    }
    silence();
    let _collecting = tracing::subscriber::set_default(tracing_subscriber::registry().with(Unwraps));
    let governor = crate::common::fast(1);
    let task = info_span!("closed by then").in_scope(|| governor.govern(Task::value("task", || async { 3 })));
    assert_eq!(*soon(task.wait()).await.unwrap(), 3);
}
