//! What the application itself counts: what a late task may harm.

use std::future::pending;

use afterboot::{ApplicationOutcome, Governor, Task};
use tokio::time::sleep;

use crate::common::{alive, fast, ms, secs, within};

fn told(governor: &Governor) -> Vec<(String, bool)> {
    governor.report().current().outcomes.into_iter().map(|outcome| (outcome.name, outcome.ok)).collect()
}

/// I14: in the order in which they were told, with their moments; before the first task and after the report too.
#[tokio::test(start_paused = true)]
async fn outcomes_stand_in_the_report_in_their_order_with_their_moments() {
    let governor = fast(1);
    governor.outcome("login", true);
    sleep(ms(20)).await;
    governor.outcome(String::from("search"), false);
    let run = governor.report();
    sleep(ms(30)).await;
    governor.outcome("login", false);
    let outcomes = run.current().outcomes;
    let shown: Vec<_> =
        outcomes.iter().map(|ApplicationOutcome { name, ok, at, .. }| (name.as_str(), *ok, *at)).collect();
    assert_eq!(shown, [("login", true, ms(0)), ("search", false, ms(20)), ("login", false, ms(50))]);
    assert_eq!(run.current().outcomes_forgotten, 0);
    assert_eq!(alive(), 0, "nothing is spawned for it");
}

/// I14: the last thousand, and how many there were before.
#[tokio::test(start_paused = true)]
async fn the_last_thousand_are_kept_and_the_rest_is_counted() {
    let governor = fast(1);
    for n in 0..1_000 {
        governor.outcome(n.to_string(), n % 2 == 0);
    }
    assert_eq!(governor.report().current().outcomes_forgotten, 0);
    for n in 1_000..1_007 {
        governor.outcome(n.to_string(), n % 2 == 0);
    }
    let report = governor.report().current();
    assert_eq!((report.outcomes.len(), report.outcomes_forgotten), (1_000, 7));
    assert!(
        told(&governor)
            .into_iter()
            .zip(7..)
            .all(|((name, ok), n)| name == n.to_string() && ok == (n % 2 == 0))
    );
}

/// I18: told from inside a task and from a thread that knows no runtime; each governor keeps its own.
#[tokio::test(start_paused = true)]
async fn an_outcome_may_be_told_from_anywhere() {
    let (governor, other) = (fast(1), fast(1));
    let inner = governor.clone();
    within(governor.govern(Task::new("task", move || async move { inner.outcome("inside", true) })).wait())
        .await
        .unwrap();
    let thread = governor.clone();
    std::thread::spawn(move || thread.outcome("thread", false)).join().unwrap();
    assert_eq!(told(&governor), [("inside".to_owned(), true), ("thread".to_owned(), false)]);
    assert_eq!(told(&other), []);
}

/// I14: what is told after a shutdown was told all the same; no task is touched by any of it.
#[tokio::test(start_paused = true)]
async fn an_outcome_changes_no_task_and_is_taken_after_a_shutdown_too() {
    let governor = fast(1);
    let task = governor.govern(Task::new("login", pending::<()>).idle());
    governor.outcome("login", false);
    sleep(secs(1)).await;
    assert!(!task.is_finished());
    within(governor.shutdown(ms(1))).await;
    governor.outcome("login", true);
    assert_eq!(told(&governor).len(), 2);
}
