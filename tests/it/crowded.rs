//! Normal tasks that wait for a slot behind tasks that do not end are named.

use std::future::pending;

use afterboot::{Event, Events, Task};
use futures::FutureExt;
use tokio::time::sleep;

use crate::common::{alive, breathe, fast, ms, secs, within};

/// When, who, since when, behind whom.
fn named(events: &mut Events) -> Vec<(u64, String, u64, Vec<String>)> {
    let mut names = Vec::new();
    while let Some(Some((at, event))) = events.next().now_or_never() {
        if let Event::Starved { task, since, behind, .. } = event {
            let behind = behind.iter().map(ToString::to_string).collect();
            names.push((at.as_secs(), task.to_string(), since.as_secs(), behind));
        }
    }
    names
}

/// I36, I14: in an event, the report and the snapshot, once, while it waits for an hour.
#[tokio::test(start_paused = true)]
async fn a_normal_task_behind_endless_ones_is_named_once_with_those_that_hold_the_slots() {
    let governor = fast(3);
    let mut events = governor.events();
    let endless: Vec<_> = (0..3).map(|_| governor.govern(Task::new("endless", pending::<()>))).collect();
    sleep(secs(10)).await;
    let fourth = governor.govern(Task::new("fourth", || async {}));
    governor.govern(Task::new("fifth", || async {}));
    sleep(ms(59_900)).await;
    assert_eq!((governor.snapshot().starved, named(&mut events)), (None, vec![]));
    sleep(secs(3600)).await;
    let behind = ["endless", "endless#2", "endless#3"].map(str::to_owned).to_vec();
    assert_eq!(named(&mut events), [(70, "fourth".to_owned(), 10, behind)]);
    let snapshot = governor.snapshot();
    let starved = snapshot.starved.as_ref().unwrap();
    assert_eq!(
        (starved.task.as_str(), &starved.behind_numbers[..], starved.more),
        ("fourth", &[0, 1, 2][..], 0)
    );
    let says = "; \"fourth\" has waited for a slot since 10.00 s behind \"endless\"";
    assert!(snapshot.to_string().contains(says), "{snapshot}");

    let report = governor.report().current();
    assert_eq!(report.starved.len(), 1);
    assert_eq!((report.starved[0].since.as_secs(), report.starved[0].named.as_secs()), (10, 70));
    assert_eq!(report.starved[0].behind, ["endless", "endless#2", "endless#3"]);
    assert!(report.to_string().contains("starved: 1 normal tasks; first \"fourth\" has waited"), "{report}");

    endless[1].cancel();
    within(fourth.wait()).await.unwrap();
    assert_eq!(governor.snapshot().starved, None);
    for endless in &endless {
        endless.cancel();
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(report.starved.len(), 1, "it stays in the report");
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I36: a long queue that moves is no starving, nor is one that waits for the gate, for the pulse or for others.
#[tokio::test(start_paused = true)]
async fn a_queue_that_moves_is_not_named() {
    let governor = fast(2);
    let mut events = governor.events();
    let first = governor.govern(Task::new("first", pending::<()>));
    for n in 0..20 {
        governor.govern(Task::new(format!("{n}"), || sleep(secs(50))));
    }
    governor.govern(Task::new("after", || async {}).after(&first));
    governor.govern(Task::new("idle", || async {}).idle());
    sleep(secs(1_020)).await;
    first.cancel();
    let report = within(governor.report().finished()).await;
    assert_eq!((report.starved, named(&mut events)), (vec![], vec![]));
}

/// I36: the next one is named after a wait of its own; and no more than that, however many wait.
#[tokio::test(start_paused = true)]
async fn each_first_of_the_queue_is_named_after_a_minute_of_its_own() {
    let governor = fast(1);
    let mut events = governor.events();
    let tasks: Vec<_> =
        (0..1_000).map(|n| governor.govern(Task::new(format!("{n}"), pending::<()>))).collect();
    sleep(secs(100)).await;
    tasks[0].cancel();
    sleep(secs(100)).await;
    let names: Vec<_> =
        named(&mut events).into_iter().map(|(at, name, _, behind)| (at, name, behind)).collect();
    let expected = [(60, "1", "0"), (160, "2", "1")];
    assert_eq!(names, expected.map(|(at, name, behind)| (at, name.to_owned(), vec![behind.to_owned()])));
    governor.shutdown(secs(0)).await;
    assert_eq!(governor.snapshot().starved, None);
}

/// I36: of many that hold slots the first sixteen are named, and the others counted.
#[tokio::test(start_paused = true)]
async fn of_many_that_hold_slots_sixteen_are_named_and_the_rest_counted() {
    let governor = fast(20);
    for n in 0..21 {
        governor.govern(Task::new(format!("{n}"), pending::<()>));
    }
    sleep(secs(61)).await;
    let starved = governor.snapshot().starved.unwrap();
    assert_eq!((starved.task.as_str(), starved.behind.len(), starved.more), ("20", 16, 4));
    assert_eq!((starved.behind[0].as_str(), starved.behind[15].as_str()), ("0", "15"));
    governor.shutdown(secs(0)).await;
}
