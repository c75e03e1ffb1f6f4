//! From `govern` to the end of the run: slots, queues, order, once each.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use afterboot::{Governor, Outcome, Task};
use futures::FutureExt;
use tokio::time::sleep;

use crate::common::{Log, alive, boom, breathe, count, fast, ms, paced, secs, started, within};

/// I14, I16
#[tokio::test(start_paused = true)]
async fn a_report_asked_for_after_all_have_ended_is_complete_at_once() {
    let governor = fast(3);
    let tasks: Vec<_> =
        (0..10).map(|n| governor.govern(Task::value(format!("{n}"), move || async move { n }))).collect();
    for (n, task) in tasks.iter().enumerate() {
        assert_eq!(*within(task.wait()).await.unwrap(), n);
    }
    let run = governor.report();
    let report = run.finished().now_or_never().expect("at once");
    assert_eq!(report, run.started().now_or_never().expect("at once"));
    assert_eq!(report.tasks.len(), 10);
    assert_eq!(count(&report, "completed"), 10);
    assert_eq!(report.late, 0);
}

/// I2, I4
#[tokio::test(start_paused = true)]
async fn five_tasks_of_awaits_at_concurrency_two_peak_at_exactly_two_over_both_queues() {
    let governor = fast(2);
    governor.open_gate();
    let running = Arc::new(AtomicUsize::new(0));
    let peak = Arc::new(AtomicUsize::new(0));
    for n in 0..5 {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        let task = Task::new(format!("{n}"), move || async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(ms(100)).await;
            running.fetch_sub(1, Ordering::SeqCst);
        });
        governor.govern(if n % 2 == 0 { task } else { task.idle() });
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 5);
    assert_eq!(peak.load(Ordering::SeqCst), 2);
    let taken = report.last_finish.unwrap();
    assert!(taken >= ms(300) && taken < ms(330), "three rounds of 100 ms, not {taken:?}");
}

/// I8: a synchronous prefix is the task's own business.
#[tokio::test(start_paused = true)]
async fn govern_runs_neither_the_closure_nor_the_future() {
    let governor = fast(3);
    let ran = Arc::new(AtomicBool::new(false));
    let (in_closure, in_future) = (Arc::clone(&ran), Arc::clone(&ran));
    let closure = governor.govern(Task::new("closure", move || {
        in_closure.store(true, Ordering::SeqCst);
        async {}
    }));
    let future = governor.govern(Task::new("future", || async move {
        in_future.store(true, Ordering::SeqCst);
    }));
    drop((closure.demand(), future.demand()));
    governor.open_gate();
    drop(governor.report());
    assert!(!ran.load(Ordering::SeqCst), "nothing before the first tick");
    within(closure.wait()).await.unwrap();
    assert!(ran.load(Ordering::SeqCst));
}

/// I8: from any thread, also one that no runtime runs on.
#[tokio::test(start_paused = true)]
async fn a_task_may_be_declared_on_a_thread_without_a_runtime() {
    let governor = fast(1);
    let elsewhere = governor.clone();
    let task = std::thread::spawn(move || elsewhere.govern(Task::value("7", || async { 7 }))).join().unwrap();
    assert_eq!(*within(task.wait()).await.unwrap(), 7);
}

/// I8
#[tokio::test(start_paused = true)]
async fn a_wrong_declaration_resolves_the_handle_as_invalid_and_says_what_is_allowed() {
    let (governor, other) = (fast(1), fast(1));
    let foreign = other.govern(Task::new("foreign", || async {}));
    let log = Log::default();
    let captured = log.on_drop("closure");
    let run = |log: Log| move || async move { log.add("ran") };
    let zero = governor.govern(Task::new("zero", run(log.clone())).timeout(ms(0)));
    let after = governor.govern(Task::new("after", move || async move { drop(captured) }).after(&foreign));
    for (handle, word) in [(&zero, "timeout: 0"), (&after, "another governor")] {
        let error = handle.try_get().expect("at once").unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(word), "{error}");
        assert!(error.to_string().contains("allowed"), "{error}");
    }
    let follows = governor.govern(Task::new("follows", run(log.clone())).after(&zero));
    assert!(follows.try_get().expect("at once").unwrap_err().is_skipped());
    within(other.report().finished()).await;
    within(governor.report().finished()).await;
    assert_eq!(log.all(), ["closure dropped"]);
}

/// I3, I4: an idle task at the head of the list, whose gate is open, still lets the normal ones go first.
#[tokio::test(start_paused = true)]
async fn idle_task_first_in_list_does_not_hold_back_normal_ones() {
    for open in [false, true] {
        let governor = fast(1);
        let log = Log::default();
        if open {
            governor.open_gate();
        }
        for name in ["idle 0", "a", "b", "idle 1", "c"] {
            let log = log.clone();
            let task = Task::new(name, move || async move { log.add(name) });
            governor.govern(if name.starts_with("idle") { task.idle() } else { task });
        }
        let report = within(governor.report().finished()).await;
        assert_eq!(log.all(), ["a", "b", "c", "idle 0", "idle 1"], "open at the start: {open}");
        assert_eq!(count(&report, "completed"), 5);
    }
}

/// I4: with no normal task at all the idle queue goes its way.
#[tokio::test(start_paused = true)]
async fn only_idle_tasks_run_once_the_application_is_quiet() {
    let governor = Governor::builder().quiet(secs(2)).build().unwrap();
    governor.govern(Task::new("a", || async {}).idle());
    governor.govern(Task::new("b", || async {}).idle());
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 2);
    let first = started(&report, "a");
    assert!(first >= secs(2) && first < ms(2_100), "{first:?}");
}

/// I6: who drops the handle changes nothing; who drops the last governor changes nothing.
#[tokio::test(start_paused = true)]
async fn tasks_run_to_their_end_without_handles_and_without_a_governor() {
    let governor = fast(1);
    let log = Log::default();
    for n in 0..3 {
        let log = log.clone();
        drop(governor.govern(Task::new(format!("{n}"), move || async move {
            sleep(ms(10)).await;
            log.add(format!("{n}"));
        })));
    }
    drop(governor);
    sleep(secs(1)).await;
    assert_eq!(log.all(), ["0", "1", "2"]);
    assert_eq!(alive(), 0);
}

/// I6, I2, I19: more slots than tasks, one of them cancelled: nothing phantom takes a slot.
#[tokio::test(start_paused = true)]
async fn a_cancelled_task_leaves_no_phantom_start_and_the_run_ends() {
    let governor = paced(5, ms(1), ms(10));
    let log = Log::default();
    let (first, second) = (log.clone(), log.clone());
    governor.govern(Task::new("first", move || async move { first.add("first") }));
    let between = governor.govern(Task::new("between", boom));
    governor.govern(Task::new("second", move || async move { second.add("second") }));
    sleep(ms(2)).await;
    between.cancel();
    let report = within(governor.report().finished()).await;
    assert_eq!(log.all(), ["first", "second"]);
    assert_eq!(report.tasks.iter().filter(|task| task.started.is_some()).count(), 2);
    assert_eq!(report.tasks.iter().map(|task| task.attempts).sum::<u32>(), 2);
    assert!(within(between.wait()).await.unwrap_err().is_cancelled());
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I19
#[tokio::test(start_paused = true)]
async fn nothing_is_spawned_before_the_first_task_and_nothing_is_left_after_the_last() {
    let governor = Governor::builder().quiet(ms(100)).build().unwrap();
    governor.ready();
    let guard = governor.in_flight("request");
    drop(governor.report());
    drop(guard);
    assert_eq!(alive(), 0);
    for round in 0..3 {
        let normal = governor.govern(Task::new("normal", || sleep(ms(3))));
        assert_eq!(alive(), 1, "round {round}: the lane alone");
        let idle = governor.govern(Task::new("idle", || sleep(ms(3))).idle());
        within(normal.wait()).await.unwrap();
        within(idle.wait()).await.unwrap();
        breathe().await;
        assert_eq!(alive(), 0, "round {round}");
    }
}

/// I2: each governor counts its own.
#[tokio::test(start_paused = true)]
async fn governors_do_not_share_slots() {
    let (one, other) = (fast(1), fast(1));
    one.govern(Task::new("holds the slot for ever", pending::<()>));
    let task = other.govern(Task::new("free", || async {}));
    within(task.wait()).await.unwrap();
}

/// I17
#[test]
fn the_same_declarations_make_the_same_run() {
    let run = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let governor = Governor::builder().seed(7).quiet(ms(50)).build().unwrap();
            let mut last = governor.govern(Task::new("root", || sleep(ms(5))));
            for n in 0..40_u64 {
                let work = move || async move {
                    sleep(ms(n * 7 % 13)).await;
                    tokio::task::yield_now().await;
                    if n % 11 == 3 { Err("no") } else { Ok(()) }
                };
                let mut task = Task::new(format!("{n}"), work);
                if n % 3 == 0 {
                    task = task.idle();
                }
                if n % 4 == 1 {
                    task = task.after(&last);
                }
                if n % 5 == 2 {
                    task = task.timeout(ms(4));
                }
                last = governor.govern(task);
                if n % 7 == 6 {
                    drop(last.demand());
                }
            }
            let mut report = within(governor.report().finished()).await;
            for task in &mut report.tasks {
                // Real time, measured: this and the lane's own time differ.
                task.longest_poll = ms(0);
            }
            report.cost.lane_time = ms(0);
            report
        })
    };
    let first = run();
    assert_eq!(first.tasks.len(), 41);
    for _ in 0..5 {
        assert_eq!(run(), first);
    }
}

/// I6: every caller gets the one value, and it outlives governor, handle and runtime.
#[test]
fn a_value_outlives_everything_that_made_it() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let value = runtime.block_on(async {
        let governor = fast(1);
        let task = governor.govern(Task::new("text", || async { Ok::<_, Infallible>(String::from("kept")) }));
        let (first, second) = tokio::join!(within(task.wait()), within(task.demand()));
        assert!(std::ptr::eq(&*first.unwrap(), &*second.unwrap()));
        within(task.clone().into_future()).await.unwrap()
    });
    drop(runtime);
    assert_eq!(*value, "kept");
}

/// I6: a failure is data, with its source, and goes through `?` into boxed errors.
#[tokio::test(start_paused = true)]
async fn a_failed_task_gives_its_own_error_as_the_source() {
    async fn boot(governor: &Governor) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let task = governor.govern(Task::new("load", || async { Err::<(), _>(io::Error::other("no disk")) }));
        within(task.wait()).await?;
        Ok(())
    }
    let error = boot(&fast(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "task \"load\" failed: no disk");
    assert!(error.source().unwrap().is::<io::Error>());
}

/// I14: a task in scope takes those it declares into the scope, however late; others are counted.
#[tokio::test(start_paused = true)]
async fn what_a_task_in_scope_declares_is_in_scope_and_what_others_declare_later_is_counted() {
    let governor = fast(2);
    let inner = governor.clone();
    governor.govern(Task::new("parent", move || async move {
        sleep(ms(10)).await;
        inner.govern(Task::new("child", || sleep(ms(10))));
    }));
    let run = governor.report();
    governor.govern(Task::new("late", || sleep(ms(500))));
    let report = within(run.finished()).await;
    let names: Vec<_> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["parent", "child"]);
    assert!(report.tasks.iter().all(|task| task.outcome == Some(Outcome::Completed)));
    assert_eq!(report.late, 1);
    assert!(report.taken < ms(100), "it did not wait for the late one");
}

/// I16: told when the last task starts, not when one ends.
#[tokio::test(start_paused = true)]
async fn started_resolves_when_the_last_task_starts_though_none_has_ended() {
    let governor = fast(3);
    governor.govern(Task::new("a", || sleep(secs(600))));
    governor.govern(Task::new("b", || sleep(secs(600))));
    let report = within(governor.report().started()).await;
    assert!(report.taken < secs(1), "{:?}", report.taken);
}
