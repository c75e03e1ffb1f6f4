//! Whoever collects events and spans is foreign code: it may call the governor, and it may panic.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};

use afterboot::{Governor, Task};
use tokio::time::sleep;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{Bomb, boom, fast, ms, secs, silence, within};

/// Calls this whenever it is told anything.
struct Calls<F>(F);

impl<F: Fn() + 'static> Subscriber for Calls<F> {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        (self.0)();
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {
        (self.0)();
    }

    fn event(&self, _: &Event<'_>) {
        (self.0)();
    }

    fn enter(&self, _: &Id) {
        (self.0)();
    }

    fn exit(&self, _: &Id) {
        (self.0)();
    }
}

/// Ends of all kinds, each of which tells something.
async fn all_kinds(governor: &Governor) {
    silence();
    governor.govern(Task::new("runs for 40 s", || sleep(secs(40))));
    governor.govern(Task::new("panics", boom));
    governor.govern(Task::new("fails", || async { Err::<(), _>("no") }));
    governor.govern(Task::new("times out", pending::<()>).timeout(secs(1)));
    drop(governor.govern(Task::value("a value that panics", || async { Bomb })));
    let cancelled = governor.govern(Task::new("cancelled", pending::<()>));
    governor.govern(Task::new("idle", || async {}).idle());
    sleep(ms(1)).await;
    cancelled.cancel();
    within(governor.report().finished()).await;
    governor.govern(Task::new("never ends", pending::<()>));
    sleep(ms(1)).await;
    within(governor.shutdown(ms(10))).await;
}

/// Runs it under this subscriber on a thread of its own: where something hangs for good, the test fails.
fn under<F: Fn() + Send + Sync + 'static>(calls: F, run: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        tracing::subscriber::with_default(Calls(calls), run);
        done.send(()).expect("somebody waits for it");
    });
    is_done.recv_timeout(secs(60)).expect("it hangs, or has panicked");
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// I18: no event and no span is told with the lock held.
#[test]
fn a_subscriber_may_call_the_governor_whatever_it_is_told() {
    let here: Arc<OnceLock<Governor>> = Arc::default();
    let (told, told_times) = (Arc::clone(&here), Arc::new(AtomicUsize::new(0)));
    let times = Arc::clone(&told_times);
    let calls = move || {
        let Some(governor) = told.get() else { return };
        governor.outcome("told", true);
        assert_eq!(governor.snapshot().governor, "boot");
        drop(governor.gate());
        times.fetch_add(1, Ordering::SeqCst);
    };
    under(calls, move || {
        paused().block_on(async {
            let governor = fast(3);
            assert!(here.set(governor.clone()).is_ok());
            all_kinds(&governor).await;
        });
    });
    assert!(told_times.load(Ordering::SeqCst) > 10);
}

/// I7, I14: events are told by the lane and by whoever ends a task, and neither may be torn down by a listener.
#[test]
fn a_subscriber_that_panics_at_each_event_stops_nothing() {
    struct Panics;
    impl Subscriber for Panics {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.is_event()
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {
            panic!("boom in a subscriber");
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }
    tracing::subscriber::with_default(Panics, || paused().block_on(async { all_kinds(&fast(3)).await }));
}

/// I31: what runs long in a recording does not run now.
#[cfg(feature = "replay")]
#[test]
fn a_replay_tells_nobody_of_slow_tasks() {
    let report = paused().block_on(async {
        let governor = Governor::builder().record_segments().build().unwrap();
        governor.govern(Task::new("runs for 40 s", || sleep(secs(40))));
        within(governor.report().finished()).await
    });
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    let calls = move || {
        counted.fetch_add(1, Ordering::SeqCst);
    };
    under(calls, move || drop(report.replay(&afterboot::Profile::default()).unwrap()));
    assert_eq!(told.load(Ordering::SeqCst), 0);
}
