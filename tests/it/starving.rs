//! Normal tasks that would keep the idle queue out for ever, and a clock that jumps.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afterboot::{Builder, Delivery, Governor, Monkey, Profile, Report, Task, TaskHandle};
use tokio::time::{Instant, advance, sleep, sleep_until};

use crate::common::{Log, breathe, count, ms, secs, started, within};

/// Neither delay nor pulse.
fn builder(concurrency: usize) -> Builder {
    Governor::builder()
        .profile(Profile::default().concurrency(concurrency).delay(ms(0)).pulse(ms(0)))
        .max_hold(secs(3))
}

fn for_ever(governor: &Governor, tasks: usize) {
    for _ in 0..tasks {
        governor.govern(Task::new("for ever", pending::<()>));
    }
}

fn idle(governor: &Governor, name: &'static str, length: Duration) -> TaskHandle<()> {
    governor.govern(Task::new(name, move || sleep(length)).idle())
}

fn demanded_by_governor(report: &Report, name: &str) -> bool {
    report.task(name).unwrap_or_else(|| panic!("{name} is not in the report")).demanded_by_governor
}

#[track_caller]
fn near(at: Duration, expected: Duration) {
    assert!(at >= expected && at <= expected + ms(20), "{at:?} is not {expected:?}");
}

/// I28, I4: one after the other, each after a hold of its own; the report says so.
#[tokio::test(start_paused = true)]
async fn idle_tasks_start_one_at_a_time_where_all_slots_are_held_for_ever() {
    let governor = builder(2).build().unwrap();
    for_ever(&governor, 2);
    governor.open_gate();
    breathe().await;
    let [_, second] = [idle(&governor, "first", secs(10)), idle(&governor, "second", ms(1))];
    let run = governor.report();
    sleep(ms(2_900)).await;
    assert_eq!(governor.snapshot().idle, 2);
    within(second.wait()).await.unwrap();
    let report = run.current();
    near(started(&report, "first"), secs(3));
    near(started(&report, "second"), secs(3) + secs(10) + secs(3));
    for name in ["first", "second"] {
        assert!(demanded_by_governor(&report, name) && !report.task(name).unwrap().demanded, "{report}");
    }
    assert!(!demanded_by_governor(&report, "for ever"), "{report}");
    assert!(report.to_string().contains("completed, max_hold"), "{report}");
}

/// I28, I4, I12: the hold begins when the gate opens, and never passes it.
#[tokio::test(start_paused = true)]
async fn the_hold_is_counted_from_the_opening_of_the_gate() {
    let governor = builder(1).await_ready().build().unwrap();
    for_ever(&governor, 1);
    let task = idle(&governor, "idle", ms(1));
    let run = governor.report();
    sleep(secs(44)).await;
    assert_eq!(governor.snapshot().idle, 1);
    within(task.wait()).await.unwrap();
    near(started(&run.current(), "idle"), secs(48));
}

/// I28, I4: the normal queue is never empty.
#[tokio::test(start_paused = true)]
async fn an_idle_task_starts_within_the_hold_though_the_normal_queue_never_empties() {
    let governor = builder(3).build().unwrap();
    governor.open_gate();
    for _ in 0..3 {
        governor.govern(Task::new("first", || sleep(ms(7))));
    }
    breathe().await;
    let inner = governor.clone();
    let stream = tokio::spawn(async move {
        loop {
            for _ in 0..2 {
                inner.govern(Task::new("stream", || sleep(ms(7))));
            }
            sleep(ms(2)).await;
        }
    });
    breathe().await;
    let task = idle(&governor, "idle", ms(1));
    within(task.wait()).await.unwrap();
    stream.abort();
    let report = governor.report().current();
    assert!(demanded_by_governor(&report, "idle"), "{}", report.task("idle").unwrap().name);
    near(started(&report, "idle") - report.task("idle").unwrap().declared, secs(3));
}

/// I28, I4: the normal queue is empty each time a task has ended, but the next one is there before the pulse is over.
#[tokio::test(start_paused = true)]
async fn an_idle_task_starts_within_the_hold_though_each_normal_task_is_declared_when_the_last_one_has_ended()
{
    let profile = Profile::default().pulse(ms(10));
    let governor = Governor::builder().profile(profile).max_hold(secs(3)).build().unwrap();
    governor.open_gate();
    let inner = governor.clone();
    let stream = tokio::spawn(async move {
        loop {
            inner.govern(Task::new("step", || async {})).wait().await.unwrap();
        }
    });
    sleep(ms(5)).await;
    let task = idle(&governor, "idle", ms(1));
    sleep(ms(3_050)).await;
    stream.abort();
    assert!(task.is_finished(), "{}", governor.snapshot());
}

/// I28, I4: an idle task that runs is all that the idle queue may ask for.
#[tokio::test(start_paused = true)]
async fn no_idle_task_is_demanded_while_another_one_runs() {
    let governor = builder(2).build().unwrap();
    governor.open_gate();
    idle(&governor, "runs", secs(60));
    breathe().await;
    for_ever(&governor, 1);
    breathe().await;
    let waits = idle(&governor, "waits", ms(1));
    for_ever(&governor, 1);
    let run = governor.report();
    sleep(secs(59)).await;
    assert_eq!((governor.snapshot().idle, governor.snapshot().normal), (1, 1));
    within(waits.wait()).await.unwrap();
    let report = run.current();
    near(started(&report, "waits"), secs(63));
    assert!(demanded_by_governor(&report, "waits") && !demanded_by_governor(&report, "runs"), "{report}");
}

/// I28, I4: a slot that is free now and then is no starving.
#[tokio::test(start_paused = true)]
async fn an_idle_task_that_finds_a_slot_was_not_held_too_long() {
    let governor = builder(1).build().unwrap();
    governor.open_gate();
    governor.govern(Task::new("normal", || sleep(ms(2_900))));
    breathe().await;
    idle(&governor, "idle", ms(1));
    let report = within(governor.report().finished()).await;
    near(started(&report, "idle"), ms(2_900));
    assert!(!demanded_by_governor(&report, "idle"), "{report}");
}

/// I28, I2: it goes over the limit, and counts.
#[tokio::test(start_paused = true)]
async fn a_task_that_was_held_too_long_counts_against_the_limit() {
    let governor = builder(2).build().unwrap();
    for_ever(&governor, 1);
    let long = governor.govern(Task::new("long", || sleep(secs(4))));
    governor.open_gate();
    breathe().await;
    idle(&governor, "idle", secs(10));
    governor.govern(Task::new("normal", || sleep(ms(1))));
    let run = governor.report();
    within(long.wait()).await.unwrap();
    breathe().await;
    assert_eq!(governor.snapshot().running.len(), 2, "{}", governor.snapshot());
    sleep(secs(10)).await;
    let report = run.current();
    near(started(&report, "idle"), secs(3));
    near(started(&report, "normal"), secs(13));
}

/// I28, I4: at once, and still one at a time.
#[tokio::test(start_paused = true)]
async fn a_hold_of_zero_is_no_hold() {
    let governor = builder(1).max_hold(ms(0)).build().unwrap();
    for_ever(&governor, 1);
    governor.open_gate();
    breathe().await;
    let (flying, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handles: Vec<_> = (0..20)
        .map(|_| {
            let (flying, peak) = (Arc::clone(&flying), Arc::clone(&peak));
            governor.govern(
                Task::new("idle", move || async move {
                    peak.fetch_max(flying.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    sleep(ms(10)).await;
                    flying.fetch_sub(1, Ordering::Relaxed);
                })
                .idle(),
            )
        })
        .collect();
    for handle in handles {
        within(handle.wait()).await.unwrap();
    }
    assert_eq!(peak.load(Ordering::Relaxed), 1);
    assert!(governor.snapshot().taken <= ms(300), "{}", governor.snapshot());
}

/// I28, I15: the governor's own demand is no less than another: the report does not say that the delay is to come.
#[tokio::test(start_paused = true)]
async fn a_victim_that_was_held_too_long_is_delayed_or_said_not_to_have_been() {
    let governor = builder(1).monkey(Monkey::task("victim", secs(60))).build().unwrap();
    for_ever(&governor, 1);
    governor.open_gate();
    breathe().await;
    let victim = idle(&governor, "victim", ms(1));
    let run = governor.report();
    within(victim.wait()).await.unwrap();
    let report = run.current();
    let delivery = report.monkey.as_ref().unwrap().delivery.clone();
    if started(&report, "victim") >= secs(60) {
        assert_eq!(delivery, Delivery::Delivered, "{report}");
    } else {
        assert_eq!(delivery, Delivery::Demanded, "{report}");
    }
}

/// I28, I14: a hold that ends together with a shutdown starts nothing.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_hold_starts_nothing_after_a_shutdown() {
    let governor = builder(1).build().unwrap();
    for_ever(&governor, 1);
    governor.open_gate();
    breathe().await;
    let deadline = Instant::now() + secs(3);
    for_ever(&governor, 5_000);
    let log = Log::default();
    let ran = log.clone();
    governor.govern(Task::new("idle", move || async move { ran.add("started") }).idle());
    sleep_until(deadline).await;
    assert_eq!(log.all(), Vec::<String>::new(), "the lane was first, and this test says nothing");
    let report = within(governor.shutdown(secs(1))).await;
    assert_eq!(log.all(), Vec::<String>::new());
    assert_eq!(count(&report, "cancelled"), 5_002);
}

/// I28, I3, I5: an hour that passes in no time, as after a suspended process.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_an_hour_keeps_the_order_of_fifty_tasks_and_makes_no_burst() {
    for is_idle in [false, true] {
        let profile = Profile::default().concurrency(2).delay(ms(20)).pulse(ms(10));
        let governor = Governor::builder().profile(profile).build().unwrap();
        let log = Log::default();
        for n in 0..50 {
            let log = log.clone();
            let task = Task::new(format!("{n}"), move || async move {
                log.add(format!("{n}"));
                sleep(ms(5)).await;
            });
            governor.govern(if is_idle { task.idle() } else { task });
        }
        breathe().await;
        advance(secs(3600)).await;
        let report = within(governor.report().finished()).await;
        assert!(log.all().iter().enumerate().all(|(n, name)| *name == n.to_string()), "{:?}", log.all());
        let starts: Vec<Duration> = report.tasks.iter().filter_map(|task| task.started).collect();
        assert_eq!(starts.len(), 50);
        assert!(starts[0] >= secs(3600));
        assert!(starts.windows(2).all(|pair| pair[1] >= pair[0] + ms(10)), "{starts:?}");
    }
}

/// I28, I4, I5: one hour held is one demand, not seven hundred.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_an_hour_demands_one_idle_task_and_not_all() {
    let governor = builder(1).build().unwrap();
    for_ever(&governor, 1);
    governor.open_gate();
    breathe().await;
    for _ in 0..50 {
        idle(&governor, "idle", secs(1));
    }
    breathe().await;
    advance(secs(3600)).await;
    breathe().await;
    assert_eq!((governor.snapshot().running.len(), governor.snapshot().idle), (2, 49));
    sleep(secs(3)).await;
    assert_eq!((governor.snapshot().running.len(), governor.snapshot().idle), (1, 49));
}
