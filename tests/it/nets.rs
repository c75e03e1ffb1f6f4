//! Panics that come from where a task's own net does not reach: the lane has to survive those too.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use afterboot::Task;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{Bomb, alive, breathe, fast, silence, within};

/// Ready at once with a value that panics when it is dropped; so does the future itself.
struct Bombs(Option<Bomb>, Bomb);

impl Future for Bombs {
    type Output = Bomb;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Bomb> {
        let _ = &self.1;
        Poll::Ready(self.0.take().expect("it is polled once"))
    }
}

/// I7: the future's destructor panics, so its value is dropped, and that panics as well.
#[tokio::test(start_paused = true)]
async fn a_future_and_its_value_that_both_panic_when_dropped_do_not_stop_the_lane() {
    silence();
    let governor = fast(1);
    let bombs = governor.govern(Task::value("bombs", || Bombs(Some(Bomb), Bomb)));
    let next = governor.govern(Task::new("next", || async {}));
    within(next.wait()).await.unwrap();
    assert!(within(bombs.wait()).await.err().unwrap().is_panicked());
    breathe().await;
    assert_eq!(alive(), 0);
}

/// Whoever collects spans is foreign code, called around each poll.
struct Panics {
    /// Else when a span is made.
    on_enter: bool,
    told: AtomicBool,
}

impl Subscriber for Panics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        assert!(self.on_enter || self.told.swap(true, Ordering::SeqCst), "boom in a subscriber");
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        assert!(!self.on_enter || self.told.swap(true, Ordering::SeqCst), "boom in a subscriber");
    }

    fn exit(&self, _: &Id) {}
}

/// I7, I38: neither the task nor the lane.
#[test]
fn a_subscriber_that_panics_costs_nobody_anything() {
    silence();
    for on_enter in [false, true] {
        tracing::subscriber::with_default(Panics { on_enter, told: AtomicBool::new(false) }, || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            runtime.block_on(async {
                let governor = fast(1);
                let first = governor.govern(Task::new("first", || async {}));
                let next = governor.govern(Task::new("next", || async {}));
                within(next.wait()).await.unwrap();
                assert!(within(first.wait()).await.is_ok(), "on enter: {on_enter}");
                breathe().await;
                assert_eq!(alive(), 0);
            });
        });
    }
}
