//! Somebody needs a task now.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afterboot::{Governor, Outcome, Task, TaskHandle};
use futures::FutureExt;
use tokio::time::{sleep, timeout};

use crate::common::{Log, breathe, count, ended, fast, ms, paced, secs, started, within};

fn logged(log: &Log, name: &'static str) -> Task<()> {
    let log = log.clone();
    Task::new(name, move || async move { log.add(name) })
}

/// I9, I6
#[tokio::test(start_paused = true)]
async fn five_callers_that_give_up_make_one_run_whose_result_waits_for_the_sixth() {
    let governor = fast(3);
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let task = governor.govern(
        Task::value("slow", move || async move {
            sleep(ms(500)).await;
            counted.fetch_add(1, Ordering::SeqCst) + 1
        })
        .idle(),
    );
    for _ in 0..5 {
        assert!(timeout(ms(20), task.demand()).await.is_err());
    }
    assert_eq!(*within(task.demand()).await.unwrap(), 1);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(*within(task.demand()).await.unwrap(), 1);
    let report = within(governor.report().finished()).await;
    assert!(report.taken < ms(520), "the first demand started it: {:?}", report.taken);
    assert!(report.tasks[0].demanded);
}

/// I9: the call counts, not the future.
#[tokio::test(start_paused = true)]
async fn a_demand_counts_from_the_call_though_its_future_is_never_polled() {
    let governor = fast(1);
    let task = governor.govern(Task::new("idle", || async {}).idle());
    drop(task.demand());
    let report = within(governor.report().finished()).await;
    assert!(report.taken < ms(10), "{:?}", report.taken);
    assert_eq!(ended(&report, "idle"), Outcome::Completed);
}

/// I9: whatever would hold an ordinary start.
#[tokio::test(start_paused = true)]
async fn a_demanded_task_passes_gate_delay_pulse_and_slots() {
    let governor = Governor::builder()
        .profile("concurrency=1,delay=500ms,pulse=100s".parse().unwrap())
        .await_ready()
        .build()
        .unwrap();
    let log = Log::default();
    let idle = governor.govern(logged(&log, "idle").idle());
    within(idle.demand()).await.unwrap();
    assert!(governor.report().current().taken < ms(10), "past gate and delay");

    governor.govern(Task::new("holds the slot", pending::<()>));
    sleep(secs(300)).await;
    let queued = governor.govern(logged(&log, "queued"));
    let second = governor.govern(logged(&log, "second").idle());
    let before = governor.report().current().taken;
    within(queued.demand()).await.unwrap();
    within(second.demand()).await.unwrap();
    assert!(governor.report().current().taken - before < ms(10), "past pulse and slots");
    assert_eq!(log.all(), ["idle", "queued", "second"]);
}

/// I9, I2: more than allowed run at once, and ordinary starts wait until fewer do.
#[tokio::test(start_paused = true)]
async fn a_demanded_task_counts_against_ordinary_starts() {
    let governor = fast(2);
    governor.govern(Task::new("a", || sleep(ms(100))));
    governor.govern(Task::new("b", || sleep(ms(100))));
    let demanded = governor.govern(Task::new("demanded", || sleep(ms(300))).idle());
    let also = governor.govern(Task::new("also", || sleep(ms(200))).idle());
    governor.govern(Task::new("ordinary", || async {}));
    breathe().await;
    drop((demanded.demand(), also.demand()));
    let report = within(governor.report().finished()).await;
    assert!(started(&report, "demanded") < ms(5));
    assert!(started(&report, "also") < ms(5));
    let ordinary = started(&report, "ordinary");
    assert!(ordinary >= ms(200) && ordinary < ms(210), "when fewer than two ran: {ordinary:?}");
}

/// I9, I10: the whole way back, in order, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_demand_takes_all_that_the_task_depends_on_with_it() {
    let governor = fast(1);
    let log = Log::default();
    governor.govern(Task::new("holds the slot", pending::<()>));
    governor.govern(logged(&log, "other").idle());
    let a = governor.govern(logged(&log, "a").idle());
    let b = governor.govern(logged(&log, "b").after(&a).idle());
    let aside = governor.govern(logged(&log, "aside").after(&a));
    let c = governor.govern(logged(&log, "c"));
    let d = governor.govern(logged(&log, "d").after(&b).after(&c).idle());
    breathe().await;
    within(d.demand()).await.unwrap();
    let order = log.all();
    assert_eq!(order.last().unwrap(), "d");
    let place = |name: &str| order.iter().position(|entry| entry == name);
    assert!(place("a") < place("b") && place("c").is_some(), "{order:?}");
    assert_eq!(order.len(), 4, "{order:?}");
    assert!(!aside.is_finished());
    let report = governor.report().current();
    let demanded: Vec<_> =
        report.tasks.iter().filter(|task| task.demanded).map(|task| task.name.as_str()).collect();
    assert_eq!(demanded, ["a", "b", "c", "d"]);
}

/// I9, I10
#[tokio::test(start_paused = true)]
async fn a_demand_waits_for_a_predecessor_that_is_running_and_is_skipped_with_one_that_fails() {
    let governor = fast(1);
    let running = governor.govern(Task::new("running", || async {
        sleep(ms(50)).await;
        Err::<(), _>("no")
    }));
    let after = governor.govern(Task::new("after", || async {}).after(&running).idle());
    breathe().await;
    let error = within(after.demand()).await.unwrap_err();
    assert_eq!(error.to_string(), "task \"after\" skipped (predecessor \"running\")");
}

/// I9
#[tokio::test(start_paused = true)]
async fn a_demand_of_a_task_that_cannot_run_gives_the_reason() {
    let governor = fast(1);
    let off = governor.govern(Task::new("off", || async {}).when(false));
    let cancelled = governor.govern(Task::new("cancelled", || async {}).idle());
    cancelled.cancel();
    let after = governor.govern(Task::new("after", || async {}).after(&off));
    for (handle, text) in [
        (&off, "task \"off\" skipped (condition)"),
        (&cancelled, "task \"cancelled\" cancelled (requested)"),
        (&after, "task \"after\" skipped (predecessor \"off\")"),
    ] {
        assert_eq!(within(handle.demand()).await.unwrap_err().to_string(), text);
    }
}

/// I9: in the order of the demands, before everything ordinary.
#[tokio::test(start_paused = true)]
async fn demanded_tasks_start_in_the_order_of_the_demands_before_ordinary_ones() {
    let governor = fast(3);
    let log = Log::default();
    let handles: Vec<TaskHandle<()>> =
        ["0", "1", "2", "3", "4"].map(|name| governor.govern(logged(&log, name))).into_iter().collect();
    drop(handles[3].demand());
    drop(handles[1].demand());
    drop(handles[3].demand());
    within(governor.report().finished()).await;
    assert_eq!(log.all(), ["3", "1", "0", "2", "4"]);
}

/// I9, I6: on a running task it only waits.
#[tokio::test(start_paused = true)]
async fn a_demand_of_a_running_or_finished_task_changes_nothing() {
    let governor = fast(1);
    let task = governor.govern(Task::new("t", || sleep(ms(100))));
    sleep(ms(50)).await;
    within(task.demand()).await.unwrap();
    within(task.demand()).await.unwrap();
    let report = within(governor.report().finished()).await;
    assert!(!report.tasks[0].demanded, "it had started before");
    assert_eq!(report.tasks[0].attempts, 1);
}

/// I9, I6: demanded and then cancelled before its tick.
#[tokio::test(start_paused = true)]
async fn a_demanded_task_that_is_cancelled_before_its_tick_never_runs() {
    let governor = fast(1);
    let log = Log::default();
    let task = governor.govern(logged(&log, "t").idle());
    let next = governor.govern(logged(&log, "next"));
    drop(task.demand());
    task.cancel();
    assert!(within(task.demand()).await.unwrap_err().is_cancelled());
    within(next.wait()).await.unwrap();
    assert_eq!(log.all(), ["next"]);
}

/// I9: a task that needs another demands it from inside, with one slot, which it holds itself.
#[tokio::test(start_paused = true)]
async fn a_task_may_demand_another_while_it_holds_the_only_slot() {
    let governor = fast(1);
    let needed = governor.govern(Task::value("needed", || sleep(ms(20)).map(|()| 7)).idle());
    let needs = needed.clone();
    let task =
        governor.govern(Task::value("needs", move || async move { *needs.demand().await.unwrap() + 1 }));
    assert_eq!(*within(task.wait()).await.unwrap(), 8);
    assert_eq!(count(&within(governor.report().finished()).await, "completed"), 2);
}

/// I5, I9: a demand does not shorten the delay of the ordinary tasks.
#[tokio::test(start_paused = true)]
async fn a_demanded_start_does_not_bring_the_first_ordinary_start_before_the_delay() {
    let governor = paced(3, secs(10), ms(1));
    let demanded = governor.govern(Task::new("demanded", || async {}));
    governor.govern(Task::new("ordinary", || async {}));
    within(demanded.demand()).await.unwrap();
    let report = within(governor.report().finished()).await;
    let ordinary = started(&report, "ordinary");
    assert!(ordinary >= secs(10), "{ordinary:?}");
}

/// I9, I5: and a demanded start is one from which the next rests.
#[tokio::test(start_paused = true)]
async fn an_ordinary_start_rests_after_a_demanded_one_too() {
    let governor = paced(3, ms(0), ms(100));
    governor.govern(Task::new("first", || async {}));
    let demanded = governor.govern(Task::new("demanded", || async {}).idle());
    governor.govern(Task::new("second", || async {}));
    sleep(ms(90)).await;
    within(demanded.demand()).await.unwrap();
    let report = within(governor.report().finished()).await;
    assert!(started(&report, "second") >= started(&report, "demanded") + ms(100));
}
