//! Futures of the application's that tell the gate something, and the hand that opens it.

use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::task::Poll;
use std::time::Duration;

use afterboot::{Builder, GateState, Governor, OpenedBy, Profile, Task, TaskHandle, WaitReason};
use tokio::runtime;
use tokio::time::sleep;

use crate::common::{Bomb, alive, boom, breathe, ms, secs, silence, started, within};

fn builder() -> Builder {
    Governor::builder().profile(Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO))
}

fn idle(governor: &Governor) -> TaskHandle<()> {
    governor.govern(Task::new("idle", || async {}).idle())
}

#[track_caller]
fn near(at: Duration, expected: Duration) {
    assert!(at >= expected && at <= expected + ms(10), "{at:?} is not {expected:?}");
}

/// By what the gate opened, when, and what the report says of the future that was to open it.
async fn opened(governor: &Governor) -> (OpenedBy, Duration, Option<String>) {
    within(idle(governor).wait()).await.unwrap();
    let report = governor.report().current();
    assert!(started(&report, "idle") >= Duration::ZERO);
    let GateState::Open { by, at, .. } = report.gate else { panic!("{report}") };
    let said = report.to_string().contains("the quiet window was used");
    assert_eq!(said, report.interactive_failed.is_some(), "{report}");
    (by, at, report.interactive_failed)
}

/// I12: not sooner, though it was quiet, and not later, though it was not.
#[tokio::test(start_paused = true)]
async fn the_gate_opens_when_the_future_resolves_and_the_window_has_no_say() {
    for after in [secs(0), secs(2), secs(20)] {
        let governor = builder().interactive_when(sleep(after)).build().unwrap();
        let busy = [(); 5].map(|()| governor.in_flight("GET /"));
        let (by, at, failed) = opened(&governor).await;
        assert_eq!((by, failed), (OpenedBy::Interactive, None));
        near(at, after);
        drop(busy);
    }
}

/// I12: ready, which it does not need, does not open it either.
#[tokio::test(start_paused = true)]
async fn a_future_that_never_resolves_leaves_the_timeout_which_says_what_held() {
    let governor = builder().interactive_when(pending::<()>()).build().unwrap();
    governor.ready();
    let task = idle(&governor);
    sleep(secs(20)).await;
    let GateState::Shut { why, until, .. } = governor.gate() else { panic!("{}", governor.gate()) };
    assert_eq!((why, until), (WaitReason::NotInteractive, Some(secs(45))));
    within(task.wait()).await.unwrap();
    let GateState::Open { by, at, shut_by, .. } = governor.gate() else { panic!("{}", governor.gate()) };
    assert_eq!((by, shut_by), (OpenedBy::Timeout, WaitReason::NotInteractive));
    near(at, secs(45));
    assert_eq!(governor.report().current().interactive_failed, None);
}

struct Unspeakable;

impl fmt::Debug for Unspeakable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unspeakable")
    }
}

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("boom in Display")
    }
}

impl std::error::Error for Unspeakable {}

/// I7, I12: a probe that failed to load must not keep the idle queue for ever: the window begins at its failure.
#[tokio::test(start_paused = true)]
async fn the_window_takes_over_from_a_future_that_fails_or_panics_and_the_report_says_so() {
    silence();
    let failing = || async {
        sleep(secs(3)).await;
        Err::<(), _>("no such module")
    };
    let panicking = || async {
        sleep(secs(3)).await;
        boom().await;
    };
    let unspeakable = || async {
        sleep(secs(3)).await;
        Err::<(), _>(Unspeakable)
    };
    let leaves_a_bomb = || {
        let bomb = Bomb;
        let mut timer = None;
        poll_fn(move |cx| {
            let _bomb = &bomb;
            timer.get_or_insert_with(|| Box::pin(sleep(secs(3)))).as_mut().poll(cx)
        })
    };
    let cases = [
        (builder().interactive_when(failing()), "no such module"),
        (builder().interactive_when(panicking()), "panicked: boom"),
        (builder().interactive_when(unspeakable()), "boom in Display"),
        (builder().interactive_when(leaves_a_bomb()), "panicked: boom in a destructor"),
    ];
    for (builder, why) in cases {
        let governor = builder.build().unwrap();
        let (by, at, failed) = opened(&governor).await;
        assert_eq!((by, failed.as_deref()), (OpenedBy::Quiet, Some(why)));
        near(at, secs(3) + secs(5));
    }
}

/// I12: it bounds the window that took over like any other.
#[tokio::test(start_paused = true)]
async fn the_timeout_bounds_the_window_that_took_over() {
    let governor = builder().interactive_when(async { Err::<(), _>("no") }).build().unwrap();
    let _busy = [(); 3].map(|()| governor.in_flight("GET /"));
    let (by, at, failed) = opened(&governor).await;
    assert_eq!((by, failed.as_deref()), (OpenedBy::Timeout, Some("no")));
    near(at, secs(45));
}

/// I12: and it asks for ready where the window does.
#[tokio::test(start_paused = true)]
async fn the_window_that_took_over_awaits_ready_where_it_was_told_to() {
    let governor =
        builder().interactive_when(async { Err::<(), _>("no") }).ready_when(sleep(secs(10))).build().unwrap();
    let (by, at, _) = opened(&governor).await;
    assert_eq!(by, OpenedBy::Quiet);
    near(at, secs(15));
}

/// I14: the runtime takes the future with it, and every handle is resolved.
#[test]
fn a_future_that_is_dropped_with_its_runtime_is_said_to_be_dropped() {
    let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let governor =
        builder().runtime(runtime.handle().clone()).interactive_when(pending::<()>()).build().unwrap();
    let task = idle(&governor);
    runtime.block_on(breathe());
    drop(runtime);
    assert!(task.try_get().expect("nobody waits for ever").unwrap_err().is_cancelled());
    let report = governor.report().current();
    assert_eq!(report.interactive_failed.as_deref(), Some("dropped before it resolved"));
}

/// I12: what comes when the gate is open decides nothing, and the report does not say that it did.
#[tokio::test(start_paused = true)]
async fn a_future_that_fails_when_the_gate_is_open_already_takes_nothing_over() {
    let late = || async {
        sleep(secs(50)).await;
        Err::<(), _>("too late")
    };
    for by_hand in [true, false] {
        let governor = builder().interactive_when(late()).build().unwrap();
        if by_hand {
            governor.open_gate();
        }
        within(idle(&governor).wait()).await.unwrap();
        sleep(secs(60)).await;
        let report = governor.report().current();
        let text = report.to_string();
        assert!(matches!(report.gate, GateState::Open { by: OpenedBy::Manual | OpenedBy::Timeout, .. }));
        assert!(!text.contains("the quiet window was used"), "{text}");
    }
}

/// I12: one that resolves too late does not open it a second time.
#[tokio::test(start_paused = true)]
async fn the_first_word_opens_the_gate_and_the_later_ones_change_nothing() {
    let governor = builder().interactive_when(sleep(secs(3))).build().unwrap();
    let task = idle(&governor);
    sleep(secs(1)).await;
    governor.open_gate();
    within(task.wait()).await.unwrap();
    let open = governor.gate();
    assert!(matches!(open, GateState::Open { by: OpenedBy::Manual, .. }), "{open}");
    sleep(secs(60)).await;
    governor.open_gate();
    idle(&governor);
    assert_eq!(governor.gate(), open);
}

/// I12.
#[tokio::test(start_paused = true)]
async fn ready_is_said_when_its_future_resolves_and_the_window_begins_then() {
    let governor = builder().ready_when(sleep(secs(10))).build().unwrap();
    let task = idle(&governor);
    sleep(ms(9_900)).await;
    assert!(!governor.snapshot().ready);
    assert!(matches!(governor.gate(), GateState::Shut { why: WaitReason::NotReady, .. }));
    within(task.wait()).await.unwrap();
    assert!(governor.snapshot().ready);
    let GateState::Open { by: OpenedBy::Quiet, at, .. } = governor.gate() else { panic!() };
    near(at, secs(15));
}

/// I12: the word that comes first counts.
#[tokio::test(start_paused = true)]
async fn ready_by_hand_is_not_taken_back_by_a_future_that_resolves_later() {
    let governor = builder().ready_when(sleep(secs(4))).build().unwrap();
    governor.ready();
    let (by, at, _) = opened(&governor).await;
    assert_eq!(by, OpenedBy::Quiet);
    near(at, secs(5));
}

/// I7, I12.
#[tokio::test(start_paused = true)]
async fn a_future_for_ready_that_panics_or_never_resolves_leaves_the_timeout() {
    silence();
    for builder in [builder().ready_when(boom()), builder().ready_when(pending())] {
        let governor = builder.build().unwrap();
        within(idle(&governor).wait()).await.unwrap();
        let GateState::Open { by, at, shut_by, .. } = governor.gate() else { panic!("{}", governor.gate()) };
        assert_eq!((by, shut_by), (OpenedBy::Timeout, WaitReason::NotReady));
        near(at, secs(45));
        assert!(!governor.snapshot().ready);
    }
}

/// I19: nothing is polled before the first task, and nothing is left when all is over.
#[tokio::test(start_paused = true)]
async fn the_futures_are_spawned_with_the_first_task() {
    let mut polls = 0;
    let ready = poll_fn(move |_| {
        polls += 1;
        assert_eq!(polls, 1);
        Poll::Ready(())
    });
    let governor = builder().ready_when(ready).interactive_when(sleep(secs(1))).build().unwrap();
    governor.report();
    sleep(secs(2)).await;
    assert_eq!(alive(), 0);
    assert!(!governor.snapshot().ready);
    governor.govern(Task::new("normal", || async {}));
    assert_eq!(alive(), 3, "two futures and the lane");
    sleep(secs(2)).await;
    assert_eq!(alive(), 0);
    assert!(governor.snapshot().ready);
    assert!(matches!(governor.gate(), GateState::Open { by: OpenedBy::Interactive, .. }));
}

/// I7, I12: why it failed is what it said, however it is dropped.
#[tokio::test(start_paused = true)]
async fn an_error_whose_destructor_panics_is_told_by_its_own_text() {
    struct Explodes(Bomb);
    impl fmt::Display for Explodes {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the login page is down")
        }
    }
    impl fmt::Debug for Explodes {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Display::fmt(self, f)
        }
    }
    impl std::error::Error for Explodes {}
    silence();
    let in_the_future = |bomb: Bomb| {
        let mut bomb = Some(bomb);
        poll_fn(move |_| {
            let _kept = &mut bomb;
            Poll::Ready(Err::<(), _>("the login page is down"))
        })
    };
    let builders = [
        builder().interactive_when(async { Err::<(), _>(Explodes(Bomb)) }),
        builder().interactive_when(in_the_future(Bomb)),
    ];
    for builder in builders {
        let governor = builder.build().unwrap();
        within(idle(&governor).wait()).await.unwrap();
        let report = governor.report().current();
        assert_eq!(report.interactive_failed.as_deref(), Some("the login page is down"));
    }
}
