//! A poll that holds the lane for too long. Threads and real time: several workers, short limits, polls that
//! block until they are let go, and deadlines that only a hang comes near.

use std::future::{pending, poll_fn};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use afterboot::{CancelReason, Event, Events, Governor, Outcome, Profile, Task, TaskHandle, TaskReport};
use futures::FutureExt;
use tokio::runtime::worker_index;
use tokio::time::sleep;

use crate::common::{Log, alive, boom, count, ended, hold, ms, secs, silence, soon};

pub(crate) fn quick_to_see(concurrency: usize, limit: Duration) -> Governor {
    let profile = Profile::default().concurrency(concurrency).delay(ms(0)).pulse(ms(0));
    Governor::builder().profile(profile).stuck_after(limit).build().unwrap()
}

/// A task whose poll blocks its thread until it is let go, or for 25 s: then the test fails, but ends.
pub(crate) fn blocks(name: impl Into<String>) -> (Task<u32>, Sender<()>) {
    let (let_go, wait) = mpsc::channel::<()>();
    let task =
        Task::value(name.into(), move || async move { u32::from(wait.recv_timeout(secs(25)).is_ok()) });
    (task, let_go)
}

pub(crate) async fn until(come: impl Fn() -> bool) {
    soon(async {
        while !come() {
            sleep(ms(1)).await;
        }
    })
    .await;
}

/// Whether what is looked for holds of the task's record, in scope or late.
pub(crate) fn of_record(governor: &Governor, name: &str, holds: impl Fn(&TaskReport) -> bool) -> bool {
    let report = governor.report().current();
    report.tasks.iter().chain(&report.late_tasks).any(|task| task.name == name && holds(task))
}

pub(crate) fn is_stuck(governor: &Governor, name: &str) -> bool {
    of_record(governor, name, |task| task.stuck)
}

pub(crate) fn has_started(governor: &Governor, name: &str) -> bool {
    of_record(governor, name, |task| task.started.is_some())
}

fn named_as_stuck(events: &mut Events) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(Some((_, event))) = events.next().now_or_never() {
        if let Event::Stuck { task, .. } = event {
            names.push(task.to_string());
        }
    }
    names
}

/// Where the first poll of a task runs: on which worker, if on one.
fn place(name: &'static str) -> Task<Option<usize>> {
    Task::value(name, || async { worker_index() })
}

/// I26, I7, I14, I19: at concurrency 1 the stuck task has to give up its slot for anything else to run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_that_blocks_holds_up_nobody_is_named_once_and_still_gives_its_value() {
    let governor = quick_to_see(1, ms(50));
    let mut events = governor.events();
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task);
    let others: Vec<_> = (0..5)
        .map(|n| {
            governor.govern(Task::value(format!("{n}"), || async {
                sleep(ms(2)).await;
                worker_index()
            }))
        })
        .collect();
    for other in &others {
        assert_eq!(*soon(other.wait()).await.unwrap(), None, "its poll was on a second worker");
    }
    assert!(!stuck.is_finished());
    assert!(is_stuck(&governor, "stuck"));
    let_go.send(()).unwrap();
    assert_eq!(*soon(stuck.wait()).await.unwrap(), 1);
    assert_eq!(named_as_stuck(&mut events), ["stuck"]);
    until(|| alive() == 0).await;
    let afterwards = soon(governor.govern(place("afterwards")).wait()).await.unwrap();
    assert!(afterwards.is_some(), "the lane is on a worker again");
    let report = soon(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 6);
    assert_eq!(report.tasks.iter().filter(|task| task.stuck).count(), 1);
    until(|| alive() == 0).await;
}

/// I26, I7: no pause between: the lane goes back to a worker while tasks are queued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lane_goes_back_to_a_worker_while_tasks_still_wait() {
    let governor = quick_to_see(1, ms(50));
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task);
    until(|| is_stuck(&governor, "stuck")).await;
    let hold = Arc::new(tokio::sync::Notify::new());
    let held = Arc::clone(&hold);
    let holds = governor.govern(Task::new("holds the slot", move || async move { held.notified().await }));
    let queued = governor.govern(place("queued"));
    until(|| has_started(&governor, "holds the slot")).await;
    let_go.send(()).unwrap();
    soon(stuck.wait()).await.unwrap();
    sleep(ms(20)).await;
    assert!(!queued.is_finished());
    hold.notify_one();
    assert!(soon(queued.wait()).await.unwrap().is_some());
    soon(holds.wait()).await.unwrap();
}

/// I7, I14: more stuck polls than workers, each given up in its turn.
async fn this_many_are_stuck(many: usize) {
    let governor = quick_to_see(1, ms(50));
    let mut events = governor.events();
    let (tasks, let_go): (Vec<_>, Vec<_>) = (0..many).map(|n| blocks(format!("stuck {n}"))).unzip();
    let stuck: Vec<_> = tasks.into_iter().map(|task| governor.govern(task)).collect();
    let other = governor.govern(place("other"));
    assert_eq!(*soon(other.wait()).await.unwrap(), None);
    assert!(stuck.iter().all(|handle| !handle.is_finished()));
    for let_go in let_go {
        let_go.send(()).unwrap();
    }
    for handle in &stuck {
        assert_eq!(*soon(handle.wait()).await.unwrap(), 1);
    }
    let names: Vec<_> = (0..many).map(|n| format!("stuck {n}")).collect();
    assert_eq!(named_as_stuck(&mut events), names, "each once, in their order");
    until(|| alive() == 0).await;
    assert!(soon(governor.govern(place("afterwards")).wait()).await.unwrap().is_some());
}

/// I26
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stuck_polls_hold_up_nobody() {
    this_many_are_stuck(2).await;
}

/// I26
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_stuck_polls_hold_up_nobody() {
    this_many_are_stuck(30).await;
}

/// I26, I6: a wake that comes while the poll is stuck is not lost: the lane that took over cannot poll the task, so
/// the task has to be polled when its stuck poll has returned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_during_a_stuck_poll_is_answered_when_the_poll_has_returned() {
    let governor = quick_to_see(1, ms(50));
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let (given, (let_go, wait)) = (Arc::clone(&waker), mpsc::channel::<()>());
    let mut first = true;
    let stuck = governor.govern(Task::new("stuck", move || {
        poll_fn(move |cx| {
            if std::mem::take(&mut first) {
                *given.lock().unwrap() = Some(cx.waker().clone());
                assert!(wait.recv_timeout(secs(25)).is_ok());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
    }));
    until(|| is_stuck(&governor, "stuck")).await;
    waker.lock().unwrap().take().unwrap().wake();
    soon(governor.govern(Task::new("other", || async {})).wait()).await.unwrap();
    // The lane that took over has looked at the wake by now.
    sleep(ms(50)).await;
    let_go.send(()).unwrap();
    soon(stuck.wait()).await.unwrap();
    let report = soon(governor.report().finished()).await;
    assert_eq!(report.task("stuck").unwrap().polls, 2);
}

/// I26, I7: an ending of its own is an ending like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_poll_that_panics_at_last_has_panicked() {
    silence();
    let governor = quick_to_see(1, ms(50));
    let (let_go, wait) = mpsc::channel::<()>();
    let stuck = governor.govern(Task::new("stuck", move || async move {
        let _ = wait.recv_timeout(secs(25));
        boom().await;
    }));
    until(|| is_stuck(&governor, "stuck")).await;
    let_go.send(()).unwrap();
    assert!(soon(stuck.wait()).await.unwrap_err().is_panicked());
    soon(governor.govern(Task::new("next", || async {})).wait()).await.unwrap();
    until(|| alive() == 0).await;
}

fn outcome<T: Send + Sync + 'static>(handle: &TaskHandle<T>) -> Outcome {
    handle.try_get().unwrap().map_or_else(|error| error.outcome().unwrap().clone(), |_| Outcome::Completed)
}

/// I26, I11, I14: whether or not something has woken the task since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_task_with_a_timeout_is_timed_out_and_still_running() {
    for woken in [false, true] {
        let governor = quick_to_see(1, ms(50));
        let log = Log::default();
        let (let_go, wait) = mpsc::channel::<()>();
        let (value, waker) = (log.on_drop("value"), Arc::new(Mutex::new(None)));
        let given = Arc::clone(&waker);
        let body = move || {
            let mut value = Some(value);
            poll_fn(move |cx| {
                *given.lock().unwrap() = Some(cx.waker().clone());
                let _ = wait.recv_timeout(secs(25));
                value.take().map_or(Poll::Pending, Poll::Ready)
            })
        };
        let stuck = governor.govern(Task::value("stuck", body).timeout(ms(150)));
        until(|| is_stuck(&governor, "stuck")).await;
        let error = soon(stuck.wait()).await.err().unwrap();
        assert_eq!(error.outcome().unwrap(), &Outcome::TimedOut { still_running: true });
        if woken {
            waker.lock().unwrap().take().unwrap().wake();
        }
        soon(governor.govern(Task::new("next", || async {})).wait()).await.unwrap();
        assert_eq!(governor.report().current().task("stuck").unwrap().finished, None, "it still runs");
        assert_eq!(log.all(), Vec::<String>::new());
        let_go.send(()).unwrap();
        until(|| alive() == 0).await;
        until(|| log.all() == ["value dropped"]).await;
        let report = soon(governor.report().finished()).await;
        assert!(report.task("stuck").unwrap().finished.is_some());
        assert_eq!(ended(&report, "stuck"), Outcome::TimedOut { still_running: true });
        soon(governor.govern(Task::new("last", || async {})).wait()).await.unwrap();
        until(|| alive() == 0).await;
    }
}

/// I26, I11, I14: it cannot be dropped inside its poll, so it is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_task_that_is_cancelled_is_abandoned_at_once() {
    let governor = quick_to_see(1, ms(50));
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task);
    until(|| is_stuck(&governor, "stuck")).await;
    stuck.cancel();
    assert_eq!(outcome(&stuck), Outcome::Abandoned);
    soon(governor.govern(Task::new("next", || async {})).wait()).await.unwrap();
    let_go.send(()).unwrap();
    until(|| alive() == 0).await;
    assert_eq!(ended(&soon(governor.report().finished()).await, "stuck"), Outcome::Abandoned);
}

/// I26, I11: asked for before the lane has given the poll up, and judged when it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_cancelled_in_mid_poll_is_resolved_though_the_poll_never_returns() {
    let governor = quick_to_see(1, ms(200));
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task);
    until(|| has_started(&governor, "stuck")).await;
    stuck.cancel();
    assert_eq!(soon(stuck.wait()).await.unwrap_err().outcome().unwrap(), &Outcome::Abandoned);
    let_go.send(()).unwrap();
    until(|| alive() == 0).await;
}

/// I26, I14: a stuck task gives up its slot, but it has not ended: a shutdown waits for it until its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_while_a_poll_is_stuck_abandons_it_at_the_deadline() {
    let governor = quick_to_see(1, ms(50));
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task);
    let runs = governor.govern(Task::new("runs", pending::<()>));
    let queued = governor.govern(Task::new("queued", || async {}));
    until(|| has_started(&governor, "runs")).await;
    let begun = governor.report().current().taken;
    let report = soon(governor.shutdown(ms(300))).await;
    let took = report.taken - begun;
    assert!(took >= ms(300) && took < secs(10), "{took:?}");
    assert_eq!((ended(&report, "stuck"), outcome(&stuck)), (Outcome::Abandoned, Outcome::Abandoned));
    for handle in [&runs, &queued] {
        assert_eq!(outcome(handle), Outcome::Cancelled(CancelReason::Shutdown));
    }
    let_go.send(()).unwrap();
    until(|| alive() == 0).await;
}

/// I26, I14: alone, without a second task that keeps the shutdown waiting; and one that comes back in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_waits_for_a_stuck_poll_alone_and_sees_one_that_returns_in_time() {
    for in_time in [false, true] {
        let governor = quick_to_see(1, ms(50));
        let (task, let_go) = blocks("stuck");
        governor.govern(task);
        until(|| is_stuck(&governor, "stuck")).await;
        let deadline = if in_time { secs(20) } else { ms(200) };
        let shutdown = tokio::spawn(governor.shutdown(deadline));
        if in_time {
            sleep(ms(20)).await;
            let_go.send(()).unwrap();
        }
        let report = soon(shutdown).await.unwrap();
        let expected = if in_time { Outcome::Completed } else { Outcome::Abandoned };
        assert_eq!(report.task("stuck").unwrap().outcome, Some(expected));
        let _ = let_go.send(());
        until(|| alive() == 0).await;
    }
}

/// I26, I14: nobody waits for a handle that is resolved, whatever its code still does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_does_not_wait_for_a_stuck_task_that_has_timed_out() {
    let governor = quick_to_see(1, ms(50));
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task.timeout(ms(60)));
    assert!(soon(stuck.wait()).await.is_err());
    let report = soon(governor.shutdown(secs(3600))).await;
    assert_eq!(ended(&report, "stuck"), Outcome::TimedOut { still_running: true });
    let_go.send(()).unwrap();
    until(|| alive() == 0).await;
}

/// I26, I1, I7: with nowhere to go the lane stays; nothing is lost by it. One worker is as one thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn on_a_single_worker_the_others_run_when_the_poll_has_returned() {
    let governor = quick_to_see(1, ms(50));
    let stuck = governor.govern(Task::new("stuck", || async { hold(ms(200)) }));
    let other = governor.govern(place("other"));
    assert!(soon(other.wait()).await.is_ok());
    soon(stuck.wait()).await.unwrap();
    until(|| alive() == 0).await;
}
