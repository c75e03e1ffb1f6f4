//! How a governor stands while it works.

use std::future::pending;
use std::sync::mpsc;

use afterboot::{GateState, Governor, Monkey, OpenedBy, Profile, RunningTask, Snapshot, Task, WaitReason};
use tokio::time::sleep;

use crate::common::{breathe, fast, ms, secs, soon, within};

/// normal, idle, waiting, demanded, running.
fn counts(snapshot: &Snapshot) -> (usize, usize, usize, usize, usize) {
    (snapshot.normal, snapshot.idle, snapshot.waiting, snapshot.demanded, snapshot.running.len())
}

/// I14.
#[tokio::test(start_paused = true)]
async fn a_governor_that_has_done_nothing_says_so() {
    let governor = Governor::builder().name("fresh").build().unwrap();
    let snapshot = governor.snapshot();
    assert_eq!((counts(&snapshot), snapshot.declared, snapshot.in_flight), ((0, 0, 0, 0, 0), 0, 0));
    assert!(snapshot.is_over() && !snapshot.ready && !snapshot.closed && snapshot.delayed.is_none());
    assert!(matches!(snapshot.gate, GateState::Shut { why: WaitReason::NoIdleTask, until: None, .. }));
    assert_eq!(
        snapshot.to_string(),
        "fresh: 0 running, 0 normal and 0 idle queued, 0 waiting, 0 demanded, 0 in flight; gate shut: no idle task waits"
    );
}

/// I14: every task stands in one place, on every step of its way.
#[tokio::test(start_paused = true)]
async fn every_task_is_counted_where_it_stands() {
    let governor = fast(1);
    let first = governor.govern(Task::new("first", || sleep(secs(1))));
    let second = governor.govern(Task::new("second", || sleep(secs(1))));
    let idle = governor.govern(Task::new("idle", || async {}).idle());
    governor.govern(Task::new("after", || async {}).after(&second));
    governor.govern(Task::new("skipped", || async {}).when(false));
    assert_eq!(counts(&governor.snapshot()), (2, 1, 1, 0, 0));
    breathe().await;
    assert_eq!(counts(&governor.snapshot()), (1, 1, 1, 0, 1));
    let waiting = idle.demand();
    assert_eq!(counts(&governor.snapshot()), (1, 0, 1, 1, 1));
    within(waiting).await.unwrap();
    within(first.wait()).await.unwrap();
    breathe().await;
    assert_eq!(counts(&governor.snapshot()), (0, 0, 1, 0, 1));
    assert!(!governor.snapshot().is_over());
    within(governor.report().finished()).await;
    let snapshot = governor.snapshot();
    assert_eq!((counts(&snapshot), snapshot.declared), ((0, 0, 0, 0, 0), 5));
    assert!(snapshot.is_over());
}

/// I14: in order of declaration, with how long; each under its own name.
#[tokio::test(start_paused = true)]
async fn what_runs_is_named_with_how_long_it_has_been_running() {
    let governor = fast(3);
    let demanded = governor.govern(Task::new("x", pending::<()>).idle());
    governor.govern(Task::new("x", pending::<()>));
    sleep(secs(2)).await;
    let waits = demanded.demand();
    sleep(ms(500)).await;
    drop(waits);
    let running: Vec<_> = governor.snapshot().running;
    let shown: Vec<_> =
        running.iter().map(|task| (task.name.as_str(), task.running_for, task.detached)).collect();
    assert_eq!(shown, [("x", ms(500), false), ("x#2", ms(2_500), false)]);
    let text = governor.snapshot().to_string();
    assert!(text.starts_with("boot: 2 running, 0 normal and 0 idle queued"), "{text}");
    assert!(text.ends_with("; \"x\" for 500 ms; \"x#2\" for 2.50 s"), "{text}");
}

/// I12: the same as the gate says, and why.
#[tokio::test(start_paused = true)]
async fn the_gate_is_shown_with_why_and_until_when() {
    let governor = Governor::builder().await_ready().max_in_flight(1).build().unwrap();
    let task = governor.govern(Task::new("idle", || async {}).idle());
    let shut = |gate: GateState| match gate {
        GateState::Shut { why, until: Some(until), .. } => (why, until),
        other => panic!("{other}"),
    };
    assert_eq!(shut(governor.snapshot().gate), (WaitReason::NotReady, secs(45)));
    sleep(secs(1)).await;
    governor.ready();
    let snapshot = governor.snapshot();
    assert!(snapshot.ready && !snapshot.is_over());
    assert_eq!(shut(snapshot.gate), (WaitReason::Window, secs(6)));
    let guards = [(); 2].map(|()| governor.in_flight("GET /"));
    let snapshot = governor.snapshot();
    assert_eq!((snapshot.in_flight, &snapshot.gate), (2, &governor.gate()));
    assert!(snapshot.to_string().contains("2 in flight; gate shut: 2 in flight: GET / (2)"), "{snapshot}");
    drop(guards);
    within(task.wait()).await.unwrap();
    let GateState::Open { by: OpenedBy::Quiet, at, .. } = governor.snapshot().gate else { panic!() };
    assert!(at >= secs(6));
    assert_eq!(governor.snapshot().taken, at, "virtual time has not gone on");
}

/// I15: the one that the monkey holds is in no queue, and it is not over.
#[tokio::test(start_paused = true)]
async fn the_victim_is_named_while_it_is_held() {
    let profile = Profile::default().delay(ms(0)).monkey(Monkey::index(0, secs(60)));
    let governor = Governor::builder().profile(profile).build().unwrap();
    let victim = governor.govern(Task::new("victim", || async {}));
    governor.report();
    assert_eq!(governor.snapshot().delayed, None);
    breathe().await;
    let snapshot = governor.snapshot();
    assert_eq!((snapshot.delayed.as_deref(), counts(&snapshot)), (Some("victim"), (0, 0, 0, 0, 0)));
    assert!(!snapshot.is_over());
    victim.cancel();
    assert!(governor.snapshot().is_over());
}

/// I11, I14: what was left behind is shown until it returns.
#[tokio::test]
async fn what_outlives_its_handle_is_overdue_and_holds_its_slot() {
    let governor = fast(1);
    let (release, released) = mpsc::channel::<()>();
    let (begun, began) = tokio::sync::oneshot::channel();
    let blocking = governor.govern(Task::blocking("blocking", move || {
        let _ = begun.send(());
        let _ = released.recv();
    }));
    soon(began).await.unwrap();
    blocking.cancel();
    assert!(blocking.is_finished());
    let snapshot = governor.snapshot();
    assert!(
        matches!(&snapshot.running[..], [RunningTask { name, detached: true, .. }] if name == "blocking")
    );
    assert!(!snapshot.is_over());
    release.send(()).unwrap();
    soon(async {
        while !governor.snapshot().is_over() {
            sleep(ms(5)).await;
        }
    })
    .await;
}

/// I14.
#[tokio::test(start_paused = true)]
async fn a_shutdown_shows_as_closed_from_the_call_on() {
    let governor = fast(1);
    governor.govern(Task::new("runs", pending::<()>));
    governor.govern(Task::new("queued", || async {}));
    breathe().await;
    let shutdown = governor.shutdown(secs(1));
    let snapshot = governor.snapshot();
    assert!(snapshot.closed && !snapshot.is_over(), "{snapshot}");
    within(shutdown).await;
    assert!(governor.snapshot().closed && governor.snapshot().is_over(), "{}", governor.snapshot());
}

/// I6: a snapshot is a copy, equal to another one of the same moment.
#[tokio::test(start_paused = true)]
async fn a_snapshot_changes_nothing_and_does_not_change() {
    let governor = fast(1);
    governor.govern(Task::new("task", || sleep(ms(5))));
    let before = governor.snapshot();
    assert_eq!(before, governor.snapshot());
    within(governor.report().finished()).await;
    assert_eq!(counts(&before), (1, 0, 0, 0, 0));
    assert_ne!(before, governor.snapshot());
}

/// I14: one task is enough, wherever it stands.
#[tokio::test(start_paused = true)]
async fn it_is_not_over_while_a_single_task_has_not_ended() {
    let governor = fast(1);
    let task = governor.govern(Task::new("task", pending::<()>).idle());
    assert!(!governor.snapshot().is_over(), "in the idle queue");
    drop(task.demand());
    assert_eq!(counts(&governor.snapshot()), (0, 0, 0, 1, 0));
    assert!(!governor.snapshot().is_over(), "demanded");
    breathe().await;
    assert_eq!(counts(&governor.snapshot()), (0, 0, 0, 0, 1));
    assert!(!governor.snapshot().is_over(), "running");
    task.cancel();
    breathe().await;
    assert!(governor.snapshot().is_over());
    governor.govern(Task::new("normal", pending::<()>));
    assert!(!governor.snapshot().is_over(), "in the normal queue");
}
