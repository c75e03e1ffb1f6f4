//! When the gate of the idle queue opens, by what, and what it says while it is shut.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afterboot::{Builder, GateState, Governor, OpenedBy, Profile, Report, Task, TaskHandle, WaitReason};
use tokio::time::{advance, sleep};

use crate::common::{boom, breathe, ms, paced, secs, silence, soon, started, within};

/// What tokio's timers and the probe's own period may add.
const SLACK: Duration = Duration::from_millis(10);

fn builder() -> Builder {
    Governor::builder().profile(Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO))
}

fn idle(governor: &Governor, name: &'static str) -> TaskHandle<()> {
    governor.govern(Task::new(name, || async {}).idle())
}

fn opened(governor: &Governor) -> (OpenedBy, Duration, WaitReason) {
    match governor.gate() {
        GateState::Open { by, at, shut_by, .. } => (by, at, shut_by),
        shut => panic!("{shut}"),
    }
}

fn why_shut(governor: &Governor) -> WaitReason {
    match governor.gate() {
        GateState::Shut { why, .. } => why,
        open => panic!("{open}"),
    }
}

#[track_caller]
fn near(at: Duration, expected: Duration) {
    assert!(at >= expected && at <= expected + SLACK, "{at:?} is not {expected:?}");
}

/// I13.
#[tokio::test(start_paused = true)]
async fn requests_that_fail_panic_or_are_cancelled_count_back_to_zero_and_the_gate_opens() {
    silence();
    let governor = builder().max_in_flight(0).build().unwrap();
    let handle = idle(&governor, "idle");
    let [failing, panicking, cancelled] = ["GET /a", "GET /b", "GET /c"].map(|name| governor.in_flight(name));
    tokio::spawn(async move {
        let _guard = failing;
        sleep(secs(7)).await;
        Err::<(), &str>("no")
    });
    tokio::spawn(async move {
        let _guard = panicking;
        sleep(secs(8)).await;
        boom().await;
    });
    let cancelled = tokio::spawn(async move {
        let _guard = cancelled;
        pending::<()>().await;
    });
    sleep(secs(6)).await;
    assert_eq!(governor.snapshot().in_flight, 3);
    assert!(matches!(why_shut(&governor), WaitReason::InFlight { .. }));
    sleep(secs(3)).await;
    assert_eq!(governor.snapshot().in_flight, 1);
    cancelled.abort();
    breathe().await;
    assert_eq!(governor.snapshot().in_flight, 0);
    within(handle.wait()).await.unwrap();
    let (by, at, shut_by) = opened(&governor);
    assert_eq!(by, OpenedBy::Quiet);
    near(at, secs(14));
    assert!(matches!(shut_by, WaitReason::InFlight { .. }), "{shut_by}");
}

/// I12.
#[tokio::test(start_paused = true)]
async fn as_many_requests_as_allowed_leave_the_application_quiet_and_one_more_does_not() {
    for (held, by, at) in [(5, OpenedBy::Quiet, secs(5)), (6, OpenedBy::Timeout, secs(45))] {
        let governor = builder().max_in_flight(5).build().unwrap();
        let guards: Vec<_> = (0..held).map(|_| governor.in_flight("GET /")).collect();
        within(idle(&governor, "idle").wait()).await.unwrap();
        let (was, when, shut_by) = opened(&governor);
        assert_eq!(was, by, "{held} requests");
        near(when, at);
        if by == OpenedBy::Timeout {
            assert_eq!(shut_by.to_string(), "6 in flight: GET / (6)");
        }
        drop(guards);
        assert_eq!(governor.snapshot().in_flight, 0);
    }
}

/// I12: it says what holds it now, not what held it when it went over the limit.
#[tokio::test(start_paused = true)]
async fn the_gate_names_the_requests_that_are_held_now() {
    let governor = builder().build().unwrap();
    let handle = idle(&governor, "idle");
    let early = [(); 3].map(|()| governor.in_flight("early"));
    let _late = [(); 4].map(|()| governor.in_flight("late"));
    drop(early);
    assert_eq!(governor.snapshot().in_flight, 4);
    assert_eq!(why_shut(&governor).to_string(), "4 in flight: late (4)");
    handle.cancel();
}

/// I13: no number of requests is too many.
#[tokio::test(start_paused = true)]
async fn a_limit_that_is_never_reached_may_be_given() {
    let governor = builder().max_in_flight(usize::MAX).build().unwrap();
    let guard = governor.in_flight("GET /");
    assert_eq!(governor.snapshot().in_flight, 1);
    drop(guard);
    within(idle(&governor, "idle").wait()).await.unwrap();
    assert_eq!(opened(&governor).0, OpenedBy::Quiet);
}

/// I13.
#[tokio::test(start_paused = true)]
async fn guards_taken_inside_governed_tasks_count_nothing() {
    let governor = builder().max_in_flight(0).build().unwrap();
    let inner = governor.clone();
    governor.govern(Task::new("own request", move || async move {
        let _guard = inner.in_flight("the boot's own");
        pending::<()>().await;
    }));
    let handle = idle(&governor, "idle");
    sleep(secs(1)).await;
    assert_eq!(governor.snapshot().in_flight, 0);
    within(handle.wait()).await.unwrap();
    near(opened(&governor).1, secs(5));
}

/// I13: a blocking closure is a governed task too, on another thread.
#[tokio::test]
async fn guards_taken_inside_blocking_tasks_count_nothing() {
    let governor = builder().build().unwrap();
    let inner = governor.clone();
    let counted = governor.govern(Task::blocking("own request", move || {
        let _guard = inner.in_flight("the boot's own");
        Ok::<usize, std::io::Error>(inner.snapshot().in_flight)
    }));
    assert_eq!(*soon(counted.wait()).await.unwrap(), 0);
}

/// I12.
#[tokio::test(start_paused = true)]
async fn awaiting_ready_the_window_begins_at_ready_and_not_before() {
    let governor = builder().await_ready().build().unwrap();
    let handle = idle(&governor, "idle");
    sleep(secs(20)).await;
    assert_eq!(why_shut(&governor), WaitReason::NotReady);
    assert!(!handle.is_finished());
    governor.ready();
    within(handle.wait()).await.unwrap();
    near(opened(&governor).1, secs(25));
}

/// I12.
#[tokio::test(start_paused = true)]
async fn ready_that_is_never_given_is_said_by_the_gate_that_the_timeout_opens() {
    let governor = builder().await_ready().build().unwrap();
    let handle = idle(&governor, "idle");
    let report = governor.report();
    within(handle.wait()).await.unwrap();
    let (by, at, shut_by) = opened(&governor);
    assert_eq!((by, shut_by), (OpenedBy::Timeout, WaitReason::NotReady));
    near(at, secs(45));
    let text = within(report.finished()).await.to_string();
    assert!(text.contains("last reason to wait: ready() was not called"), "{text}");
    let governor = Governor::builder().build().unwrap();
    let requests: Vec<_> = (0..3).map(|_| governor.in_flight("GET /")).collect();
    governor.govern(Task::new("idle", || async {}).idle());
    governor.open_gate();
    drop(requests);
    let text = governor.gate().to_string();
    assert!(text.ends_with("last reason to wait: 3 in flight: GET / (3), at that moment"), "{text}");
    let told = &governor.report().current().headlines()[1];
    assert!(told.ends_with("last reason to wait: 3 in flight: GET / (3), at that moment."), "{told}");
}

/// I12.
#[tokio::test(start_paused = true)]
async fn ready_begins_the_window_anew_and_only_the_first_call_counts() {
    let governor = builder().build().unwrap();
    let handle = idle(&governor, "idle");
    sleep(secs(3)).await;
    governor.ready();
    sleep(secs(2)).await;
    governor.ready();
    within(handle.wait()).await.unwrap();
    near(opened(&governor).1, secs(8));
}

/// I6, I12: the foreground never rests.
#[tokio::test(start_paused = true)]
async fn a_foreground_that_never_rests_gets_the_idle_tasks_at_the_timeout_once_each() {
    let governor = builder().build().unwrap();
    let starts: Vec<Arc<AtomicUsize>> = (0..5).map(|_| Arc::default()).collect();
    for count in &starts {
        let count = Arc::clone(count);
        governor.govern(
            Task::new("idle", move || async move {
                count.fetch_add(1, Ordering::Relaxed);
                sleep(ms(200)).await;
            })
            .idle(),
        );
    }
    let run = governor.report();
    // Busy after the opening too, it holds each further start for `max_hold`.
    for _ in 0..(80_000 / 80) {
        advance(ms(80)).await;
    }
    let report = run.current();
    assert!(starts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    let (by, at, shut_by) = opened(&governor);
    assert_eq!(by, OpenedBy::Timeout);
    assert!(at >= secs(45) && at <= secs(45) + ms(160), "{at:?}");
    assert!(matches!(shut_by, WaitReason::LongTask { .. }), "{shut_by}");
    assert!(
        report.tasks.iter().all(|task| task.started >= Some(secs(45)) && task.outcome.is_some()),
        "{report}"
    );
}

/// I4, I12.
#[tokio::test(start_paused = true)]
async fn only_idle_tasks_run_when_it_is_quiet() {
    let governor = builder().build().unwrap();
    for _ in 0..10 {
        idle(&governor, "idle");
    }
    let report = within(governor.report().finished()).await;
    assert!(
        report.tasks.iter().all(|task| task.outcome.as_ref().is_some_and(|o| o.is_completed())),
        "{report}"
    );
    near(started(&report, "idle"), secs(5));
}

/// I2, I5: at the opening the idle tasks do not all start at once.
#[tokio::test(start_paused = true)]
async fn two_hundred_idle_tasks_start_a_pulse_apart_and_no_more_in_flight_than_allowed() {
    let governor = paced(4, ms(1), ms(2));
    let (flying, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..200 {
        let (flying, peak) = (Arc::clone(&flying), Arc::clone(&peak));
        governor.govern(
            Task::new("idle", move || async move {
                peak.fetch_max(flying.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(ms(25)).await;
                flying.fetch_sub(1, Ordering::Relaxed);
            })
            .idle(),
        );
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(peak.load(Ordering::Relaxed), 4);
    assert_paced(&report, ms(2));
}

fn assert_paced(report: &Report, pulse: Duration) {
    let starts: Vec<Duration> = report.tasks.iter().filter_map(|task| task.started).collect();
    assert_eq!(starts.len(), report.tasks.len());
    for pair in starts.windows(2) {
        assert!(pair[1] >= pair[0] + pulse, "{pair:?}: first declared, first started, a pulse apart");
    }
}

/// I4, I12: what is in flight does not keep the gate shut; only what holds up a loop does.
#[tokio::test(start_paused = true)]
async fn a_normal_task_that_holds_its_slot_for_ever_does_not_keep_the_gate_shut() {
    let governor = Governor::builder().profile(Profile::default().concurrency(2)).build().unwrap();
    governor.govern(Task::new("for ever", pending::<()>));
    within(idle(&governor, "idle").wait()).await.unwrap();
    let (by, at, _) = opened(&governor);
    assert_eq!(by, OpenedBy::Quiet);
    near(at, secs(5));
}

/// I12: not early, not late.
#[tokio::test(start_paused = true)]
async fn never_quiet_an_idle_task_has_not_started_at_44_s_and_has_by_45_100_ms() {
    let governor = builder().build().unwrap();
    let _busy = [(); 3].map(|()| governor.in_flight("GET /"));
    let run = governor.report();
    sleep(secs(2)).await;
    let handle = governor.govern(Task::new("idle", pending::<()>).idle());
    sleep(secs(44)).await;
    assert!(matches!(governor.gate(), GateState::Shut { until: Some(until), .. } if until == secs(47)));
    sleep(ms(1_100)).await;
    assert_eq!(opened(&governor).0, OpenedBy::Timeout);
    near(opened(&governor).1, secs(47));
    handle.cancel();
    assert!(within(handle.wait()).await.unwrap_err().is_cancelled());
    assert_eq!(run.current().late, 1);
}

/// I12: an idle task that comes after a demanded one waits for a window in which somebody looked.
#[tokio::test(start_paused = true)]
async fn an_idle_task_that_comes_when_nobody_looks_any_more_waits_for_a_whole_window() {
    let governor = builder().build().unwrap();
    within(idle(&governor, "first").demand()).await.unwrap();
    sleep(secs(10)).await;
    advance(ms(200)).await;
    within(idle(&governor, "second").wait()).await.unwrap();
    near(opened(&governor).1, secs(15) + ms(200));
}

/// I12: a "no" carries until when, and that lies ahead.
#[tokio::test(start_paused = true)]
async fn a_shut_gate_does_not_promise_a_moment_that_has_passed() {
    let governor = builder().build().unwrap();
    within(idle(&governor, "first").demand()).await.unwrap();
    sleep(secs(100)).await;
    let GateState::Shut { until, .. } = governor.gate() else { panic!("{}", governor.gate()) };
    assert!(until.is_none_or(|until| until >= secs(100)), "{}", governor.gate());
}

/// I12.
#[tokio::test(start_paused = true)]
async fn a_hand_opens_the_gate_at_once_and_it_stays_open() {
    let governor = builder().await_ready().build().unwrap();
    let _busy = [(); 9].map(|()| governor.in_flight("GET /"));
    let handle = idle(&governor, "idle");
    sleep(secs(1)).await;
    governor.open_gate();
    within(handle.wait()).await.unwrap();
    advance(secs(90)).await;
    within(idle(&governor, "later").wait()).await.unwrap();
    let (by, at, _) = opened(&governor);
    assert_eq!(by, OpenedBy::Manual);
    near(at, secs(1));
}
