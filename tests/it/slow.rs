//! A task that runs long is named: it may never end.

use std::future::pending;

use afterboot::{Event, Events, Task};
use futures::FutureExt;
use tokio::time::sleep;

use crate::common::{alive, breathe, fast, ms, secs, within};

fn named_as_slow(events: &mut Events) -> Vec<(u64, String)> {
    let mut names = Vec::new();
    while let Some(Some((at, event))) = events.next().now_or_never() {
        if let Event::Slow { task, .. } = event {
            names.push((at.as_secs(), task.to_string()));
        }
    }
    names
}

/// I31, I14: once each, also in a run that goes on for an hour.
#[tokio::test(start_paused = true)]
async fn a_task_that_has_run_for_30_s_is_named_once() {
    let governor = fast(2);
    let mut events = governor.events();
    let never = governor.govern(Task::new("never ends", pending::<()>));
    sleep(secs(10)).await;
    let late = governor.govern(Task::new("ends late", || sleep(secs(100))));
    sleep(ms(19_900)).await;
    assert!(!governor.report().current().task("never ends").unwrap().slow);
    sleep(ms(200)).await;
    assert!(governor.report().current().task("never ends").unwrap().slow);
    assert!(!governor.report().current().task("ends late").unwrap().slow);
    sleep(secs(3600)).await;
    assert!(late.is_finished());
    assert_eq!(named_as_slow(&mut events), [(30, "never ends".to_owned()), (40, "ends late".to_owned())]);
    never.cancel();
    let report = within(governor.report().finished()).await;
    assert!(report.tasks.iter().all(|task| task.slow), "it stays in the report");
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I31, I14: neither those that ended in time nor those that wait for their turn.
#[tokio::test(start_paused = true)]
async fn a_task_that_ended_or_has_not_started_is_not_named() {
    let governor = fast(1);
    let mut events = governor.events();
    let nearly = governor.govern(Task::new("nearly", || sleep(ms(29_900))));
    governor.govern(Task::new("queued meanwhile", || sleep(secs(20))));
    governor.govern(Task::new("idle", || async {}).idle());
    let held = governor.govern(Task::new("cancelled", pending::<()>));
    within(nearly.wait()).await.unwrap();
    sleep(secs(25)).await;
    held.cancel();
    sleep(secs(600)).await;
    let report = within(governor.report().finished()).await;
    assert!(report.tasks.iter().all(|task| !task.slow));
    assert_eq!(named_as_slow(&mut events), []);
}

/// I31, I14: many at once, behind many that have ended.
#[tokio::test(start_paused = true)]
async fn all_that_run_long_are_named_each_in_its_time() {
    let governor = fast(64);
    let mut events = governor.events();
    for n in 0..200 {
        governor.govern(Task::new(format!("quick {n}"), || async {}));
    }
    let slow: Vec<_> = (0..20).map(|n| governor.govern(Task::new(format!("{n}"), pending::<()>))).collect();
    sleep(ms(30_100)).await;
    let names: Vec<_> = named_as_slow(&mut events).into_iter().map(|(_, name)| name).collect();
    // The first events have fallen out of the ring, these have not.
    assert_eq!(names, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
    for handle in slow {
        handle.cancel();
    }
    within(governor.report().finished()).await;
}

/// I31, I14: a task that waits for another one runs, and a lent slot is no excuse.
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_another_is_named_too() {
    let governor = fast(1);
    let b = governor.govern(Task::new("b", || sleep(secs(40))));
    let awaited = b.clone();
    governor
        .govern(Task::new("a", move || async move { drop(awaited.wait().await) }))
        .demand()
        .await
        .unwrap();
    let report = within(governor.report().finished()).await;
    assert!(report.task("a").unwrap().slow && report.task("b").unwrap().slow);
    assert_eq!(report.task("a").unwrap().awaited, ["b"]);
}
