//! A runtime that goes away at the worst moment: in the middle of a poll, behind the gate, in the monkey's delay,
//! from inside a task. Lane and watchdog each resolve what is left. Threads and real time.

use std::future::pending;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use afterboot::{CancelReason, Governor, Monkey, Outcome, Task, TaskHandle};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::common::{Log, alive, count, ended, fast, hold, ms, secs, silence, soon};
use crate::stuck::{blocks, has_started, is_stuck, quick_to_see, until};

const GONE: Outcome = Outcome::Cancelled(CancelReason::RuntimeGone);

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Drop,
    Timeout,
    Background,
}

impl How {
    const ALL: [How; 3] = [How::Drop, How::Timeout, How::Background];

    fn ends(self, runtime: Runtime) {
        match self {
            How::Drop => drop(runtime),
            How::Timeout => runtime.shutdown_timeout(ms(200)),
            How::Background => runtime.shutdown_background(),
        }
    }
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// What handles say, asked on another runtime; fails instead of hanging.
fn outcomes<T: Send + Sync + 'static>(handles: &[TaskHandle<T>]) -> Vec<Outcome> {
    current_thread().block_on(async {
        let mut outcomes = Vec::new();
        for handle in handles {
            let result = soon(handle.wait()).await;
            outcomes
                .push(result.map_or_else(|error| error.outcome().unwrap().clone(), |_| Outcome::Completed));
        }
        outcomes
    })
}

/// Ends the runtime on a thread of its own, so that one that never ends is seen.
fn ends_on_its_own(how: How, runtime: Runtime) -> Receiver<Duration> {
    let (done, over) = mpsc::channel();
    thread::spawn(move || {
        let begun = Instant::now();
        how.ends(runtime);
        let _ = done.send(begun.elapsed());
    });
    over
}

struct Stuck {
    governor: Governor,
    stuck: TaskHandle<u32>,
    others: Vec<TaskHandle<()>>,
    let_go: Sender<()>,
}

/// One poll is stuck, the lane that took over waits: one task runs, one is queued, one is behind the gate.
async fn stuck(with_timer: bool) -> Stuck {
    let governor = quick_to_see(1, ms(50));
    let (task, let_go) = blocks("stuck");
    let stuck = governor.govern(task);
    let runs = governor.govern(Task::new("runs", pending::<()>));
    let queued = governor.govern(Task::new("queued", || async {}));
    let after = governor.govern(Task::new("after", || async {}).after(&stuck));
    let mut others = vec![runs, queued, after];
    if with_timer {
        others.push(governor.govern(Task::new("idle", || async {}).idle()));
    }
    until(|| is_stuck(&governor, "stuck") && has_started(&governor, "runs")).await;
    sleep(ms(20)).await;
    Stuck { governor, stuck, others, let_go }
}

/// I14: the lane is inside a poll, so its own guard cannot speak: the watchdog's does. The thread on which the lane
/// goes on ends, whether it waits for an event or for a timer.
#[test]
fn while_a_poll_is_stuck_every_handle_resolves_and_no_thread_holds_the_runtime() {
    for (how, with_timer) in How::ALL.into_iter().flat_map(|how| [(how, false), (how, true)]) {
        let runtime = multi_thread();
        let Stuck { governor, stuck, others, let_go } = runtime.block_on(stuck(with_timer));
        let over = ends_on_its_own(how, runtime);
        // None of them waits for the stuck poll to return.
        assert!(outcomes(&others).iter().all(|outcome| *outcome == GONE), "{how:?}");
        assert_eq!(outcomes(&[stuck]), [Outcome::Abandoned], "{how:?}");
        if how != How::Drop {
            let took = over.recv_timeout(secs(20)).expect("the runtime ends without the stuck poll");
            assert!(took < secs(10), "{how:?} {took:?}");
        }
        let_go.send(()).unwrap();
        if how == How::Drop {
            over.recv_timeout(secs(20))
                .expect("nothing but the stuck poll keeps a runtime from being dropped");
        }
        let report = current_thread().block_on(soon(governor.report().finished()));
        assert_eq!(count(&report, "cancelled"), others.len());
        assert_eq!(ended(&report, "stuck"), Outcome::Abandoned);
    }
}

/// I14: the thread on which the lane goes on is gone in time too: with it, it would be the poll's own time.
#[test]
fn a_shutdown_before_the_loss_leaves_the_thread_of_the_lane_nothing_to_wait_for() {
    for how in How::ALL {
        let runtime = multi_thread();
        let Stuck { governor, stuck, others, let_go } = runtime.block_on(stuck(true));
        let report = runtime.block_on(soon(governor.shutdown(ms(100))));
        assert_eq!(ended(&report, "stuck"), Outcome::Abandoned);
        let over = ends_on_its_own(how, runtime);
        thread_time();
        let_go.send(()).unwrap();
        over.recv_timeout(secs(20)).expect("the runtime ends");
        assert_eq!(outcomes(&[stuck]), [Outcome::Abandoned]);
        assert!(
            outcomes(&others).iter().all(|outcome| *outcome == Outcome::Cancelled(CancelReason::Shutdown))
        );
    }
}

/// Lets another thread come to where it waits; nothing depends on it.
fn thread_time() {
    hold(ms(100));
}

/// I14: before anybody has seen that the poll is stuck; on current_thread there is no poll in progress to lose.
#[test]
fn in_the_middle_of_a_poll_every_handle_resolves_though_the_poll_goes_on() {
    for how in [How::Timeout, How::Background] {
        let runtime = multi_thread();
        let (handles, polled, let_go) = runtime.block_on(async {
            let governor = fast(2);
            let waits = governor.govern(Task::new("waits", pending::<()>));
            until(|| has_started(&governor, "waits")).await;
            let (task, let_go) = blocks("in a poll");
            let polled = governor.govern(task);
            let queued = governor.govern(Task::new("queued", || async {}));
            until(|| governor.report().current().late_tasks[0].started.is_some()).await;
            (vec![waits, queued], polled, let_go)
        });
        how.ends(runtime);
        assert_eq!(outcomes(&handles), [GONE, GONE], "{how:?}");
        assert_eq!(outcomes(&[polled]), [Outcome::Abandoned], "{how:?}");
        let _ = let_go.send(());
    }
}

/// I14, I12, I15: behind the gate, and in the monkey's delay, on both runtimes.
#[test]
fn in_mid_gate_and_in_mid_monkey_every_handle_resolves() {
    for how in How::ALL {
        for runtime in [current_thread(), multi_thread()] {
            let log = Log::default();
            let (governor, handles) = runtime.block_on(async {
                let monkey = Monkey::task("victim", secs(60));
                let governor = Governor::builder().await_ready().monkey(monkey).build().unwrap();
                let held = log.on_drop("captured");
                // Its turn must not come before `report()`, however slow this thread is.
                let (sealed, is_sealed) = oneshot::channel::<()>();
                let first = governor.govern(Task::new("first", || is_sealed));
                let victim =
                    governor.govern(Task::new("victim", move || async move { drop(held) }).after(&first));
                let idle = governor.govern(Task::new("idle", || async {}).idle());
                let after = governor.govern(Task::new("after", || async {}).after(&victim));
                governor.report();
                sealed.send(()).unwrap();
                until(|| governor.snapshot().delayed.is_some()).await;
                (governor, vec![victim, idle, after])
            });
            how.ends(runtime);
            assert_eq!(outcomes(&handles), [GONE, GONE, GONE], "{how:?}");
            assert_eq!(log.all(), ["captured dropped"]);
            let report = current_thread().block_on(soon(governor.report().finished()));
            assert_eq!(count(&report, "cancelled"), 3);
        }
    }
}

/// I14: the runtime is shut down by one of its own governed tasks, which then ends or goes on.
#[test]
fn from_inside_a_task_every_handle_resolves() {
    silence();
    for how in How::ALL {
        let runtime = multi_thread();
        let handle = runtime.handle().clone();
        let (give, take) = mpsc::channel::<Runtime>();
        let governor = Governor::builder().runtime(handle).build().unwrap();
        let itself = governor.govern(Task::new("itself", move || async move {
            // Dropping a runtime blocks, and tokio panics where that is not allowed, but it has begun to go away.
            how.ends(take.recv_timeout(secs(20)).unwrap());
        }));
        let others = [
            governor.govern(Task::new("queued", pending::<()>)),
            governor.govern(Task::new("idle", || async {}).idle()),
        ];
        give.send(runtime).unwrap();
        let outcome = outcomes(&[itself]).remove(0);
        assert!(
            matches!(outcome, Outcome::Completed | Outcome::Panicked(_) | Outcome::Abandoned),
            "{how:?}: {outcome}"
        );
        assert_eq!(outcomes(&others), [GONE, GONE], "{how:?}");
        assert_eq!(outcomes(&[governor.govern(Task::new("later", || async {}))]), [GONE]);
    }
}

/// I11, I14: a shutdown does not wait for what cannot be stopped; real time, wide margins.
#[test]
fn a_blocking_task_outlives_a_shutdown_and_the_report_says_so() {
    for runtime in [current_thread(), multi_thread()] {
        let (took, report) = runtime.block_on(async {
            let governor = fast(2);
            let (let_go, wait) = mpsc::channel::<()>();
            governor.govern(Task::blocking("blocking", move || {
                wait.recv_timeout(ms(700)).or(Ok::<_, String>(()))
            }));
            let queued = governor.govern(Task::new("runs", || sleep(secs(60))));
            until(|| has_started(&governor, "runs")).await;
            let begun = Instant::now();
            let report = soon(governor.shutdown(ms(50))).await;
            let took = begun.elapsed();
            assert!(queued.is_finished());
            drop(let_go);
            until(|| alive() == 0).await;
            (took, report)
        });
        assert!(took >= ms(50) && took < ms(500), "{took:?}");
        assert_eq!(ended(&report, "blocking").to_string(), "abandoned, still running");
        assert_eq!(report.task("blocking").unwrap().finished, None);
        assert_eq!(ended(&report, "runs"), Outcome::Cancelled(CancelReason::Shutdown));
    }
}

/// I14: the runtime does not wait for it either, where it is told not to.
#[test]
fn a_blocking_task_outlives_its_runtime() {
    for how in [How::Timeout, How::Background] {
        let runtime = multi_thread();
        let (let_go, wait) = mpsc::channel::<()>();
        let handles = runtime.block_on(async {
            let governor = fast(1);
            let body = move || wait.recv_timeout(secs(25)).or(Ok::<_, String>(()));
            let blocking = governor.govern(Task::blocking("blocking", body));
            let queued = governor.govern(Task::new("queued", || async {}));
            until(|| has_started(&governor, "blocking")).await;
            vec![blocking, queued]
        });
        how.ends(runtime);
        assert_eq!(outcomes(&handles), [Outcome::Abandoned, GONE], "{how:?}");
        drop(let_go);
    }
}

/// I14, I30: no lane is left to see the closure out, and nobody waits for that.
#[test]
fn a_runtime_lost_during_a_blocking_task_ends_the_events_and_the_snapshot_is_over() {
    let runtime = multi_thread();
    let (let_go, wait) = mpsc::channel::<()>();
    let (governor, mut events, blocking) = runtime.block_on(async {
        let governor = fast(1);
        let events = governor.events();
        let (begun, begins) = mpsc::channel();
        let blocking = governor.govern(Task::blocking("blocking", move || {
            begun.send(()).unwrap();
            let _ = wait.recv();
        }));
        tokio::task::spawn_blocking(move || begins.recv()).await.unwrap().unwrap();
        (governor, events, blocking)
    });
    runtime.shutdown_background();
    assert_eq!(outcomes(&[blocking]), [Outcome::Abandoned]);
    current_thread().block_on(async { soon(async { while events.next().await.is_some() {} }).await });
    assert!(governor.snapshot().is_over(), "{}", governor.snapshot());
    let_go.send(()).unwrap();
}

/// I14, I19: a closure that stood in the pool's line is dropped with the runtime, though the governor's handle lives.
#[test]
fn what_a_blocking_task_has_captured_is_dropped_when_the_runtime_goes_away_before_it_began() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).max_blocking_threads(1).enable_all().build().unwrap();
    let [(release, held), (release_too, held_too)] = [(); 2].map(|()| mpsc::channel::<()>());
    let log = Log::default();
    let captured = log.on_drop("captured");
    let (governor, handle) = runtime.block_on(async {
        drop(tokio::task::spawn_blocking(move || held.recv()));
        // The worker's thread looks at the pool's line once more when the runtime goes: it gets stuck here.
        drop(tokio::task::spawn_blocking(move || held_too.recv()));
        let governor = fast(1);
        let handle = governor.govern(Task::blocking("in the line", move || drop(captured)));
        while governor.snapshot().running.is_empty() {
            sleep(ms(1)).await;
        }
        // By now it stands in the pool's line.
        sleep(ms(100)).await;
        (governor, handle)
    });
    runtime.shutdown_background();
    current_thread().block_on(until(|| handle.is_finished() && !log.all().is_empty()));
    assert_eq!(outcomes(&[handle]), [Outcome::Abandoned]);
    assert_eq!(log.all(), ["captured dropped"]);
    drop((release, release_too, governor));
}
