//! One clock for one governor, wherever it is called from.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use afterboot::{GateState, Governor, Task};
use tokio::runtime::Builder;
use tokio::time::{advance, sleep};

use crate::common::{breathe, ms, secs, within};

const HOUR: Duration = Duration::from_secs(3600);

/// Runs it on a thread that has no runtime, or that is inside another one.
fn elsewhere(in_another: bool, run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        if in_another {
            let other = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
            other.block_on(async {
                advance(100 * HOUR).await;
                run();
            });
        } else {
            run();
        }
    });
    thread.join().unwrap();
}

/// I12, I17: the gate's timeout counts from the declaration, not from another clock's idea of it.
#[tokio::test(start_paused = true)]
async fn whatever_a_foreign_thread_tells_has_the_moment_of_the_governors_clock() {
    for in_another in [false, true] {
        let governor = Governor::builder().record_segments().build().unwrap();
        advance(HOUR).await;
        let foreign = governor.clone();
        elsewhere(in_another, move || {
            foreign.govern(Task::new("idle", || async {}).idle());
            foreign.outcome("told", true);
            foreign.ready();
            assert_eq!(foreign.snapshot().taken.as_secs(), 3600);
            assert_eq!(foreign.report().current().taken.as_secs(), 3600);
        });
        breathe().await;
        assert!(matches!(governor.gate(), GateState::Shut { .. }), "in another runtime: {in_another}");
        governor.open_gate();
        let report = within(governor.report().finished()).await;
        let told = [Some(report.tasks[0].declared), report.ready, Some(report.outcomes[0].at)];
        for at in told {
            assert_eq!(at.unwrap().as_secs(), 3600, "in another runtime: {in_another}");
        }
    }
}

/// I17: the same for a wake, where it is recorded when each came.
#[tokio::test(start_paused = true)]
async fn a_wake_from_a_foreign_thread_has_the_moment_of_the_governors_clock() {
    for in_another in [false, true] {
        let governor = Governor::builder().record_segments().build().unwrap();
        let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
        let given = Arc::clone(&waker);
        let task = governor.govern(Task::new("waits", move || {
            let mut polls = 0;
            poll_fn(move |cx| {
                polls += 1;
                *given.lock().unwrap() = Some(cx.waker().clone());
                if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
            })
        }));
        sleep(ms(5)).await;
        advance(HOUR).await;
        elsewhere(in_another, move || waker.lock().unwrap().take().unwrap().wake());
        within(task.wait()).await.unwrap();
        let report = within(governor.report().finished()).await;
        let waited = report.tasks[0].segments[1].waited;
        assert!(waited >= HOUR && waited < HOUR + secs(1), "in another runtime: {in_another}, {waited:?}");
    }
}
