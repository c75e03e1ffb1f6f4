//! A task that waits for another one's handle lends its slot, so tasks that wait for each other's slots do not hang.

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Poll, Waker};

use afterboot::{Task, TaskHandle};
use futures::future::{join_all, select};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use tokio::time::{Instant, sleep, timeout};

use crate::common::{Log, alive, breathe, count, ended, fast, ms, paced, secs, started, within};

/// Handles that a task may wait for although they are made after it.
pub(crate) type Later<T> = Arc<OnceLock<TaskHandle<T>>>;

/// I25, I2: the plainest form: the waiter holds the only slot, and what it waits for stands in the queue.
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_one_that_is_queued_lends_it_its_slot() {
    let governor = fast(1);
    let later = Later::<u32>::default();
    let awaited = Arc::clone(&later);
    let a =
        governor.govern(Task::value("a", move || async move { *awaited.wait().wait().await.unwrap() + 1 }));
    let b = governor.govern(Task::value("b", || async {
        sleep(secs(1)).await;
        1
    }));
    later.set(b).unwrap();
    assert_eq!(*within(a.wait()).await.unwrap(), 2);
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 2);
    assert_eq!(report.task("a").unwrap().awaited, ["b"]);
    assert_eq!(report.task("b").unwrap().awaited, Vec::<String>::new());
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I25, I2, I9: a waiter under a timeout comes back in time, to the slot it has lent.
#[tokio::test(start_paused = true)]
async fn a_wait_under_a_timeout_ends_at_the_timeout_though_what_it_waits_for_goes_on() {
    let governor = fast(1);
    let later = Later::<()>::default();
    let (awaited, log) = (Arc::clone(&later), Log::default());
    let written = log.clone();
    let begun = Instant::now();
    let a = governor.govern(Task::new("a", move || async move {
        assert!(timeout(secs(1), awaited.wait().wait()).await.is_err());
        written.add(format!("{} s", begun.elapsed().as_secs()));
        sleep(secs(2)).await;
    }));
    let b = governor.govern(Task::new("b", || sleep(secs(60))));
    later.set(b.clone()).unwrap();
    let c = governor.govern(Task::new("c", || async {}));
    within(a.wait()).await.unwrap();
    assert!(begun.elapsed() < ms(3_010), "{:?}", begun.elapsed());
    assert_eq!(log.all(), ["1 s"]);
    within(c.wait()).await.unwrap();
    within(b.wait()).await.unwrap();
    let report = within(governor.report().finished()).await;
    // Neither the lent slot nor the one that A came back to is there for it.
    assert!(started(&report, "c") >= report.task("b").unwrap().finished.unwrap());
}

/// I25, I2: the branch that loses the race takes its loan back.
#[tokio::test(start_paused = true)]
async fn a_wait_that_loses_a_race_lends_no_longer() {
    let governor = fast(1);
    let later = Later::<()>::default();
    let awaited = Arc::clone(&later);
    governor.govern(Task::new("a", move || async move {
        let handle = awaited.wait().clone();
        select(Box::pin(handle.wait()), Box::pin(sleep(secs(1)))).await;
        sleep(secs(10)).await;
    }));
    later.set(governor.govern(Task::new("b", || sleep(secs(5))))).unwrap();
    governor.govern(Task::new("c", || async {}));
    let report = within(governor.report().finished()).await;
    assert!(started(&report, "b") < ms(10));
    assert!(
        started(&report, "c") >= report.task("a").unwrap().finished.unwrap(),
        "A holds its slot from 1 s on"
    );
}

/// I25, I2: nested: each link holds a slot only on paper.
#[tokio::test(start_paused = true)]
async fn a_chain_of_a_hundred_waits_needs_one_slot() {
    let governor = fast(1);
    let all: Vec<Later<usize>> = (0..=100).map(|_| Later::default()).collect();
    for n in 0..100 {
        let next = Arc::clone(&all[n + 1]);
        let body = move || async move { *next.wait().wait().await.unwrap() + 1 };
        all[n].set(governor.govern(Task::value(format!("{n}"), body))).unwrap();
    }
    all[100].set(governor.govern(Task::value("100", || async { 0 }))).unwrap();
    assert_eq!(*within(all[0].wait().wait()).await.unwrap(), 100);
    assert_eq!(count(&within(governor.report().finished()).await, "completed"), 101);
}

/// I25, I2: a task that waits for several lends one slot, not several.
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_several_at_once_lends_one_slot() {
    let governor = fast(1);
    let others: Arc<OnceLock<Vec<TaskHandle<()>>>> = Arc::default();
    let (awaited, running, peak) =
        (Arc::clone(&others), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let a = governor.govern(Task::new("a", move || async move {
        let ends = join_all(awaited.wait().iter().map(TaskHandle::wait)).await;
        assert!(ends.iter().all(Result::is_ok));
    }));
    let all = (0..5).map(|n| {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        governor.govern(Task::new(format!("{n}"), move || async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(ms(100)).await;
            running.fetch_sub(1, Ordering::SeqCst);
        }))
    });
    others.set(all.collect()).unwrap();
    within(a.wait()).await.unwrap();
    assert_eq!(peak.load(Ordering::SeqCst), 1);
    let report = within(governor.report().finished()).await;
    assert_eq!(report.task("a").unwrap().awaited.len(), 5);
}

/// I25, I9: a demand waits as any wait, and what is demanded needs no slot.
#[tokio::test(start_paused = true)]
async fn a_task_may_demand_an_idle_one_behind_the_gate() {
    let governor = paced(1, ms(1), ms(1));
    let later = Later::<u32>::default();
    let awaited = Arc::clone(&later);
    let a = governor.govern(Task::value("a", move || async move { *awaited.wait().demand().await.unwrap() }));
    let first = governor.govern(Task::new("first", || sleep(ms(50))).idle());
    later.set(governor.govern(Task::value("b", || async { 5 }).idle().after(&first))).unwrap();
    let queued = governor.govern(Task::new("queued", || async {}));
    assert_eq!(*within(a.wait()).await.unwrap(), 5);
    assert!(!queued.is_finished() || governor.report().current().taken < ms(100));
    within(queued.wait()).await.unwrap();
}

/// I25, I2: a lender that something else wakes is polled before its slot is filled: it may be about to come back.
#[tokio::test(start_paused = true)]
async fn a_lender_that_is_woken_is_polled_before_the_next_start() {
    let governor = fast(1);
    let later = Later::<()>::default();
    let (awaited, log, waker) = (Arc::clone(&later), Log::default(), Arc::new(Mutex::new(None::<Waker>)));
    let (written, given) = (log.clone(), Arc::clone(&waker));
    governor.govern(Task::new("a", move || async move {
        let handle = awaited.wait().clone();
        let mut wait = Box::pin(handle.wait());
        let mut polls = 0;
        let woken = poll_fn(|cx| {
            *given.lock().unwrap() = Some(cx.waker().clone());
            polls += 1;
            // The second poll gives the wait up.
            if polls == 2 { Poll::Ready(()) } else { wait.as_mut().poll(cx).map(drop) }
        });
        woken.await;
        drop(wait);
        written.add("a is back");
        sleep(secs(1)).await;
    }));
    let blocked = governor.govern(Task::new("b", pending::<()>).when(true).idle());
    later.set(blocked.clone()).unwrap();
    breathe().await;
    // In the same moment: A is woken, and a task is queued that would fit into the slot that A lends.
    let written = log.clone();
    let c = governor.govern(Task::new("c", move || async move { written.add("c starts") }));
    waker.lock().unwrap().take().unwrap().wake();
    within(c.wait()).await.unwrap();
    assert_eq!(log.all(), ["a is back", "c starts"]);
    blocked.cancel();
    let report = within(governor.report().finished()).await;
    assert!(started(&report, "c") >= report.task("a").unwrap().finished.unwrap());
}

/// I25, I2: somebody else who never ceases to wake himself must not keep a lent slot empty for ever.
#[tokio::test(start_paused = true)]
async fn a_chatty_task_does_not_keep_a_lent_slot_from_being_filled() {
    for lender_is_chatty in [false, true] {
        let governor = fast(if lender_is_chatty { 1 } else { 2 });
        let later = Later::<()>::default();
        let (awaited, seen) = (Arc::clone(&later), Arc::clone(&later));
        let chatty = move || async move {
            while !seen.wait().is_finished() {
                tokio::task::yield_now().await;
            }
        };
        let a = if lender_is_chatty {
            governor.govern(Task::new("a", move || async move {
                let handle = awaited.wait().clone();
                tokio::join!(chatty(), async { drop(handle.wait().await) });
            }))
        } else {
            governor.govern(Task::new("chatty", chatty));
            governor.govern(Task::new("a", move || async move { drop(awaited.wait().wait().await) }))
        };
        later.set(governor.govern(Task::new("b", || async {}))).unwrap();
        // Busy tasks keep a paused clock from moving: count ticks instead.
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        assert!(a.is_finished(), "B does not get the lent slot; chatty lender: {lender_is_chatty}");
        within(governor.report().finished()).await;
    }
}

/// I25: What the governor cannot see it cannot lend for; I14: but it is named.
#[tokio::test(start_paused = true)]
async fn a_wait_in_a_spawned_child_lends_nothing_and_the_task_is_named_after_30_s() {
    let governor = fast(1);
    let later = Later::<()>::default();
    let awaited = Arc::clone(&later);
    let a = governor.govern(Task::new("a", move || async move {
        drop(tokio::spawn(async move { drop(awaited.wait().wait().await) }).await);
    }));
    let b = governor.govern(Task::new("b", || async {}));
    later.set(b.clone()).unwrap();
    sleep(secs(29)).await;
    assert!(!b.is_finished() && !governor.report().current().task("a").unwrap().slow);
    sleep(secs(2)).await;
    assert!(!b.is_finished() && governor.report().current().task("a").unwrap().slow);
    // Somebody who reads the warning can help.
    within(b.demand()).await.unwrap();
    within(a.wait()).await.unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Sleep(u64),
    Wait(usize),
    WaitFor(usize, u64),
    Demand(usize),
}

fn program() -> impl Strategy<Value = (usize, Vec<Vec<Step>>)> {
    let step = prop_oneof![
        2 => (0..30_u64).prop_map(Step::Sleep),
        3 => (0..12_usize).prop_map(Step::Wait),
        2 => (0..12_usize, 0..40_u64).prop_map(|(of, millis)| Step::WaitFor(of, millis)),
        1 => (0..12_usize).prop_map(Step::Demand),
    ];
    (1..4_usize, prop::collection::vec(prop::collection::vec(step, 0..4), 1..12))
}

/// How many tasks are in their bodies and do not wait for a handle.
#[derive(Default)]
struct Busy(AtomicUsize);

fn the_law_holds(concurrency: usize, tasks: Vec<Vec<Step>>) -> TestCaseResult {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (over, report) = runtime.block_on(async {
        let governor = fast(concurrency);
        let busy = Arc::new(Busy::default());
        let over = Arc::new(Mutex::new(Vec::new()));
        let handles: Arc<OnceLock<Vec<TaskHandle<()>>>> = Arc::default();
        let all = tasks.into_iter().enumerate().map(|(n, steps)| {
            let (busy, over, handles) = (Arc::clone(&busy), Arc::clone(&over), Arc::clone(&handles));
            governor.govern(Task::new(format!("{n}"), move || async move {
                let before = busy.0.fetch_add(1, Ordering::SeqCst);
                if before >= concurrency {
                    over.lock().unwrap().push((n, before));
                }
                for step in steps {
                    if let Step::Sleep(millis) = step {
                        sleep(ms(millis)).await;
                        continue;
                    }
                    let all = handles.get().unwrap();
                    let of = |n: usize| &all[n % all.len()];
                    busy.0.fetch_sub(1, Ordering::SeqCst);
                    match step {
                        Step::Sleep(_) => {}
                        Step::Wait(n) => drop(of(n).wait().await),
                        Step::WaitFor(n, millis) => drop(timeout(ms(millis), of(n).wait()).await),
                        Step::Demand(n) => drop(of(n).demand().await),
                    }
                    busy.0.fetch_add(1, Ordering::SeqCst);
                }
                busy.0.fetch_sub(1, Ordering::SeqCst);
            }))
        });
        drop(handles.set(all.collect()));
        let report = within(governor.report().finished()).await;
        breathe().await;
        (over.lock().unwrap().clone(), (report, alive()))
    });
    let (report, alive) = report;
    for (n, before) in over {
        prop_assert!(
            report.tasks[n].demanded,
            "{n} started although {before} held slots that they did not lend"
        );
    }
    prop_assert_eq!(count(&report, "completed"), report.tasks.len());
    prop_assert_eq!(alive, 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// I25, I2, I14: whatever waits for whatever, all end, and an ordinary start finds a slot that is free or lent.
    #[test]
    fn ordinary_starts_stay_within_the_limit_of_slots_that_are_not_lent((concurrency, tasks) in program()) {
        the_law_holds(concurrency, tasks)?;
    }
}

/// I25, I2, I14: all three of a lent chain fail without harm to the others.
#[tokio::test(start_paused = true)]
async fn a_lender_that_is_dropped_takes_its_loan_with_it() {
    let governor = fast(1);
    let later = Later::<()>::default();
    let awaited = Arc::clone(&later);
    let a = governor
        .govern(Task::new("a", move || async move { drop(awaited.wait().wait().await) }).timeout(secs(1)));
    later.set(governor.govern(Task::new("b", || sleep(secs(5))))).unwrap();
    governor.govern(Task::new("c", || async {}));
    assert!(within(a.wait()).await.unwrap_err().is_timed_out());
    let report = within(governor.report().finished()).await;
    assert_eq!(ended(&report, "a").word(), "timed out");
    assert!(started(&report, "c") >= report.task("b").unwrap().finished.unwrap());
}
