//! What a lane that was left behind changes for waits, slots and warnings.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use afterboot::{Governor, Outcome, Profile, Task, TaskHandle};
use tokio::runtime::Handle;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::common::{alive, ended, fast, hold, ms, secs, soon};
use crate::lending::Later;
use crate::stuck::{blocks, has_started, is_stuck, of_record, quick_to_see, until};

/// The warnings, one line each.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// I26: Where there is one thread, nothing can run meanwhile: a warning when the poll returns is all there is.
#[test]
fn on_current_thread_a_poll_that_blocked_is_named_in_a_warning_when_it_returns() {
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let governor = quick_to_see(1, ms(20));
            let task = governor.govern(Task::new("blocks its thread", || async { hold(ms(60)) }));
            let next = governor.govern(Task::new("next", || async {}));
            soon(task.wait()).await.unwrap();
            soon(next.wait()).await.unwrap();
            assert!(!is_stuck(&governor, "blocks its thread"), "nobody took over");
        });
    });
    let warnings = warnings.0.lock().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("blocks its thread"), "{warnings:?}");
}

/// I26: A wait that begins inside a stuck poll lends nothing: the slot has been given up already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_poll_that_waits_for_a_handle_does_not_give_its_slot_twice() {
    let governor = quick_to_see(1, ms(50));
    let later = Later::<()>::default();
    let awaited = Arc::clone(&later);
    let (let_wait, wait) = mpsc::channel::<()>();
    let (let_go, end) = mpsc::channel::<()>();
    let stuck = governor.govern(Task::new("stuck", move || async move {
        let _ = wait.recv_timeout(secs(25));
        let handle = awaited.wait().clone();
        tokio::join!(biased; async { drop(handle.wait().await) }, async move { end.recv_timeout(secs(25)).is_ok() });
    }));
    until(|| is_stuck(&governor, "stuck")).await;
    let hold = Arc::new(tokio::sync::Notify::new());
    let held = Arc::clone(&hold);
    let holds = governor.govern(Task::new("holds the slot", move || async move { held.notified().await }));
    let queued = governor.govern(Task::new("queued", || async {}));
    later.set(governor.govern(Task::new("awaited", || async {}))).unwrap();
    until(|| has_started(&governor, "holds the slot")).await;
    let_wait.send(()).unwrap();
    sleep(ms(100)).await;
    assert!(!queued.is_finished(), "two tasks hold the one slot");
    let_go.send(()).unwrap();
    hold.notify_one();
    for handle in [&holds, &queued, &stuck] {
        soon(handle.wait()).await.unwrap();
    }
    until(|| alive() == 0).await;
}

/// I26: And when the poll has returned it lends again: otherwise what it waits for would never start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_began_before_the_poll_got_stuck_lends_the_slot_when_the_poll_has_returned() {
    let governor = quick_to_see(1, ms(50));
    let later = Later::<()>::default();
    let awaited = Arc::clone(&later);
    let (let_go, end) = mpsc::channel::<()>();
    let stuck = governor.govern(Task::new("stuck", move || async move {
        let handle = awaited.wait().clone();
        tokio::join!(biased; async { drop(handle.wait().await) }, async move { end.recv_timeout(secs(25)).is_ok() });
    }));
    let hold = Arc::new(tokio::sync::Notify::new());
    let held = Arc::clone(&hold);
    let first = governor.govern(Task::new("first", move || async move { held.notified().await }));
    later.set(governor.govern(Task::new("awaited", || async {}).after(&first))).unwrap();
    until(|| is_stuck(&governor, "stuck") && has_started(&governor, "first")).await;
    let_go.send(()).unwrap();
    until(|| of_record(&governor, "stuck", |task| task.polls > 0)).await;
    hold.notify_one();
    soon(stuck.wait()).await.unwrap();
    soon(governor.report().finished()).await;
    until(|| alive() == 0).await;
}

/// I26: A blocking closure whose handle is resolved goes on holding its slot, and so it goes on lending it.
#[tokio::test]
async fn a_blocking_closure_that_outlived_its_handle_still_lends_its_slot() {
    for waits_first in [true, false] {
        let governor = fast(1);
        let later = Later::<()>::default();
        let awaited = Arc::clone(&later);
        let blocking = Task::blocking("blocking", move || {
            if !waits_first {
                hold(ms(100));
            }
            Handle::current().block_on(awaited.wait().wait()).map(drop)
        });
        let hold = Arc::new(tokio::sync::Notify::new());
        let held = Arc::clone(&hold);
        let first = governor.govern(Task::new("first", move || async move { held.notified().await }));
        let b = governor.govern(Task::new("b", || async {}).after(&first));
        later.set(b.clone()).unwrap();
        let blocking = governor.govern(blocking.timeout(ms(30)));
        drop(blocking.demand());
        let error = soon(blocking.wait()).await.unwrap_err();
        assert_eq!(error.outcome().unwrap(), &Outcome::TimedOut { still_running: true });
        hold.notify_one();
        soon(b.wait()).await.unwrap();
        let report = soon(governor.report().finished()).await;
        assert!(ended(&report, "b").is_completed());
        until(|| alive() == 0).await;
    }
}

/// I26, I5: the first poll of a start that never returns cannot begin the pulse, so the watchdog does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_first_poll_does_not_stop_the_pulse() {
    let profile = Profile::default().concurrency(1).delay(ms(0)).pulse(ms(40));
    let governor = Governor::builder().profile(profile).stuck_after(ms(50)).build().unwrap();
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task);
    let others: Vec<TaskHandle<()>> =
        (0..3).map(|n| governor.govern(Task::new(format!("{n}"), || async {}))).collect();
    for other in &others {
        soon(other.wait()).await.unwrap();
    }
    let report = governor.report().current();
    let starts: Vec<Duration> = report.tasks.iter().map(|task| task.started.unwrap()).collect();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= ms(40)), "{starts:?}");
    let_go.send(()).unwrap();
    soon(stuck.wait()).await.unwrap();
    until(|| alive() == 0).await;
}

/// I26, I1: the lane that was left behind comes back from its poll while another one goes on: it has to end there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_stuck_poll_returns_its_lane_polls_nothing_beside_the_one_that_took_over() {
    let governor = quick_to_see(3, ms(300));
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task);
    let now = Arc::new(Mutex::new((0_u32, 0_u32)));
    let others: Vec<TaskHandle<()>> = (0..30)
        .map(|n| {
            let now = Arc::clone(&now);
            governor.govern(Task::new(format!("{n}"), move || async move {
                {
                    let mut now = now.lock().unwrap();
                    now.0 += 1;
                    now.1 = now.1.max(now.0);
                }
                hold(ms(10));
                now.lock().unwrap().0 -= 1;
            }))
        })
        .collect();
    soon(others[2].wait()).await.unwrap();
    assert!(is_stuck(&governor, "stuck"));
    let_go.send(()).unwrap();
    soon(stuck.wait()).await.unwrap();
    for other in &others {
        soon(other.wait()).await.unwrap();
    }
    assert_eq!(now.lock().unwrap().1, 1, "two lanes polled at once");
    until(|| alive() == 0).await;
}
