//! What disturbs the quiet, what does not, and that nobody looks longer than needed.

use std::future::pending;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use afterboot::{Builder, GateState, Governor, OpenedBy, Profile, Task, WaitReason};
use tokio::time::{advance, sleep, timeout};

use crate::common::{alive, breathe, ended, fast, ms, secs, soon, two_workers, within};

fn builder() -> Builder {
    Governor::builder().profile(Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO))
}

fn opened_at(governor: &Governor) -> Duration {
    match governor.gate() {
        GateState::Open { by: OpenedBy::Quiet, at, .. } => at,
        other => panic!("{other}"),
    }
}

/// I12: under a paused clock virtual time alone decides.
#[tokio::test(start_paused = true)]
async fn advance_by_80_ms_is_a_stall_and_sleep_is_none() {
    let governor = builder().build().unwrap();
    let handle = governor.govern(Task::new("idle", || async {}).idle());
    sleep(ms(2_003)).await;
    assert!(matches!(governor.gate(), GateState::Shut { why: WaitReason::Window, .. }));
    advance(ms(80)).await;
    breathe().await;
    let GateState::Shut { why: WaitReason::LongTask { at, length, who, .. }, until, .. } = governor.gate()
    else {
        panic!("{}", governor.gate());
    };
    assert_eq!((at, &*who, until), (ms(2_083), "unknown", Some(ms(7_083))));
    assert!(length >= ms(70) && length <= ms(80), "{length:?}");
    within(handle.wait()).await.unwrap();
    assert!(opened_at(&governor) >= ms(7_083) && opened_at(&governor) <= ms(7_093));
}

/// I12: less than a long task is none.
#[tokio::test(start_paused = true)]
async fn any_number_of_stalls_of_40_ms_does_not_disturb() {
    let governor = builder().build().unwrap();
    let handle = governor.govern(Task::new("idle", || async {}).idle());
    for _ in 0..250 {
        advance(ms(40)).await;
        breathe().await;
    }
    assert!(handle.is_finished());
    assert!(opened_at(&governor) <= ms(5_050), "{}", governor.gate());
    assert_eq!(governor.report().current().long_tasks, []);
}

/// I12: the boot's own normal work is no quiet, and it is named.
#[tokio::test(start_paused = true)]
async fn a_long_poll_of_a_normal_task_disturbs_under_its_name() {
    let governor = builder().build().unwrap();
    let handle = governor.govern(Task::new("idle", || async {}).idle());
    governor.govern(Task::new("index", || async {
        sleep(secs(3)).await;
        advance(ms(80)).await;
    }));
    let report = within(governor.report().finished()).await;
    assert!(opened_at(&governor) >= ms(8_080), "{report}");
    assert_eq!(report.long_tasks.len(), 1, "{report}");
    assert_eq!(report.long_tasks[0].who.as_deref(), Some("index"));
    assert!(report.blocking_time >= ms(20) && report.blocking_time <= ms(30), "{report}");
    assert!(handle.is_finished());
}

/// I12: what an idle task holds up is no sign that the application is busy.
#[tokio::test(start_paused = true)]
async fn a_long_poll_of_a_demanded_idle_task_does_not_disturb() {
    let governor = builder().build().unwrap();
    let demanded = governor.govern(
        Task::new("demanded", || async {
            sleep(secs(3)).await;
            advance(ms(80)).await;
        })
        .idle(),
    );
    let waiting = governor.govern(Task::new("waiting", || async {}).idle());
    within(demanded.demand()).await.unwrap();
    within(waiting.wait()).await.unwrap();
    let at = opened_at(&governor);
    assert!(at >= secs(5) && at <= ms(5_020), "{at:?}");
    let report = governor.report().current();
    assert_eq!(report.long_tasks[0].who.as_deref(), Some("demanded"), "it is shown all the same");
}

/// I19.
#[tokio::test(start_paused = true)]
async fn nothing_is_spawned_before_the_first_task_and_nothing_is_left_after_the_last() {
    let governor = builder().build().unwrap();
    governor.ready();
    let _guards = [(); 5].map(|()| governor.in_flight("GET /"));
    governor.report();
    breathe().await;
    assert_eq!(alive(), 0);
    governor.govern(Task::new("normal", || async {}));
    let idle = governor.govern(Task::new("idle", || async {}).idle());
    breathe().await;
    assert_eq!(alive(), 2, "lane and probe");
    within(idle.wait()).await.unwrap();
    sleep(ms(20)).await;
    assert_eq!(alive(), 0);
    // With nobody left, a wait that never ends takes virtual time in one step and not in heartbeats.
    timeout(secs(1_000_000), pending::<()>()).await.unwrap_err();
    governor.govern(Task::new("late", || async {})).wait().await.unwrap();
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I19: the probe goes with the last idle task that waits, whether it ran or not.
#[tokio::test(start_paused = true)]
async fn the_probe_ends_when_no_idle_task_waits_any_more() {
    let governor = builder().build().unwrap();
    let demanded = governor.govern(Task::new("demanded", || async {}).idle());
    let cancelled = governor.govern(Task::new("cancelled", || async {}).idle());
    let normal = governor.govern(Task::new("normal", pending::<()>));
    let after = governor.govern(Task::new("skipped", || async {}).after(&normal).idle());
    sleep(ms(20)).await;
    assert_eq!(alive(), 2);
    within(demanded.demand()).await.unwrap();
    cancelled.cancel();
    normal.cancel();
    assert!(within(after.wait()).await.unwrap_err().is_skipped());
    sleep(ms(20)).await;
    assert_eq!(alive(), 0);
    assert!(matches!(governor.gate(), GateState::Shut { .. }));
}

/// I19: with the last task the lane goes too, however that ended.
#[tokio::test(start_paused = true)]
async fn lane_and_probe_end_when_the_only_task_is_cancelled() {
    let governor = builder().build().unwrap();
    let only = governor.govern(Task::new("only", || async {}).idle());
    sleep(ms(20)).await;
    only.cancel();
    sleep(ms(20)).await;
    assert_eq!(alive(), 0);
}

/// I11, I19: a blocking task that outlived its limit, and had a successor, leaves no lane behind.
#[tokio::test]
async fn the_lane_ends_after_a_blocking_task_that_timed_out_and_skipped_its_successor() {
    let governor = fast(3);
    let (release, released) = mpsc::channel::<()>();
    let blocking = governor.govern(
        Task::blocking("blocking", move || {
            let _ = released.recv();
        })
        .timeout(ms(20)),
    );
    let successor = governor.govern(Task::new("successor", || async {}).after(&blocking));
    assert!(soon(blocking.wait()).await.unwrap_err().is_timed_out());
    assert!(soon(successor.wait()).await.unwrap_err().is_skipped());
    release.send(()).unwrap();
    soon(async {
        while alive() > 0 {
            sleep(ms(5)).await;
        }
    })
    .await;
    assert_eq!(ended(&governor.report().current(), "successor").word(), "skipped");
}

/// When a worker was blocked and when the idle task started, on the machine's clock.
struct Round {
    blocked: (Instant, Instant),
    idle: Instant,
    long_tasks: Vec<Duration>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "detection on other workers is a matter of real time and real blocking"
)]
fn block(length: Duration) -> (Instant, Instant) {
    let began = Instant::now();
    std::thread::sleep(length);
    (began, Instant::now())
}

fn round(woken_by_a_timer: bool) -> Round {
    let runtime = two_workers();
    let blocked = Arc::new(Mutex::new(None));
    let round = runtime.block_on(async {
        let governor = builder().quiet(ms(300)).gate_timeout(secs(20)).build().unwrap();
        let idle = governor.govern(Task::value("idle", || async { block(Duration::ZERO).0 }).idle());
        if !woken_by_a_timer {
            sleep(ms(50)).await;
        }
        let log = Arc::clone(&blocked);
        let foreground = tokio::spawn(async move {
            if woken_by_a_timer {
                sleep(ms(50)).await;
            }
            *log.lock().unwrap() = Some(block(ms(400)));
        });
        let idle = *soon(idle.wait()).await.unwrap();
        soon(foreground).await.unwrap();
        let blocked = blocked.lock().unwrap().take().unwrap();
        let long_tasks = governor.report().current().long_tasks.iter().map(|long| long.length).collect();
        Round { blocked, idle, long_tasks }
    });
    runtime.shutdown_background();
    round
}

fn the_gate_stays_shut_during_the_poll(woken_by_a_timer: bool) {
    for _ in 0..10 {
        let round = round(woken_by_a_timer);
        // On a machine so busy that the poll began after the window, the round says nothing.
        if round.idle < round.blocked.0 + ms(100) {
            continue;
        }
        assert!(
            round.idle > round.blocked.1,
            "opened {:?} before the poll's end",
            round.blocked.1 - round.idle
        );
        let longest = round.long_tasks.iter().max().copied().unwrap_or_default();
        assert!(longest >= ms(300), "{:?}", round.long_tasks);
        return;
    }
    panic!("in ten rounds the foreground never got a worker within the window");
}

/// I12: another worker is held by a task that a timer woke.
#[test]
fn the_gate_does_not_open_during_a_long_poll_that_a_timer_woke() {
    the_gate_stays_shut_during_the_poll(true);
}

/// I12: another worker is held by a task that was spawned from outside.
#[test]
fn the_gate_does_not_open_during_a_long_poll_that_came_from_outside() {
    the_gate_stays_shut_during_the_poll(false);
}

/// I12 speaks of workers: the future given to `block_on` runs beside them, where nobody looks.
#[test]
fn on_multi_thread_the_root_future_is_no_worker_and_holds_nothing() {
    let runtime = two_workers();
    let (blocked, idle) = runtime.block_on(async {
        let governor = builder().quiet(ms(200)).build().unwrap();
        let idle = governor.govern(Task::value("idle", || async { block(Duration::ZERO).0 }).idle());
        let blocked = block(secs(3));
        (blocked, *soon(idle.wait()).await.unwrap())
    });
    assert!(idle < blocked.1);
}
