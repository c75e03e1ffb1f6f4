//! Tasks that would wait for each other for ever are told so, with the path.

use std::sync::{Arc, Mutex, OnceLock};

use afterboot::{Governor, Task, TaskError, TaskHandle};
use tokio::time::{sleep, timeout};

use crate::common::{alive, breathe, count, ended, fast, ms, secs, started, within};

type Later = Arc<OnceLock<TaskHandle<()>>>;

/// What the tasks of a test were told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<TaskError>>>);

impl Told {
    fn paths(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|error| error.cycle_path().join(" > ")).collect()
    }
}

/// A task that waits for one that is declared later, and keeps what it is told; its error is not its own failure.
fn waits_for(governor: &Governor, name: &'static str, told: &Told) -> (TaskHandle<()>, Later) {
    let (later, told) = (Later::default(), told.clone());
    let awaited = Arc::clone(&later);
    let body = move || async move {
        if let Err(error) = awaited.wait().wait().await {
            told.0.lock().unwrap().push(error);
        }
    };
    (governor.govern(Task::new(name, body)), later)
}

async fn all_completed(governor: &Governor) {
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), report.tasks.len(), "{report}");
    breathe().await;
    assert_eq!(alive(), 0);
}

/// I25, I10: B comes after A, and A demands B.
#[tokio::test(start_paused = true)]
async fn a_task_that_demands_what_comes_after_it_is_told_the_path() {
    let governor = fast(1);
    let (later, told) = (Later::default(), Told::default());
    let (awaited, tell) = (Arc::clone(&later), told.clone());
    let a = governor.govern(Task::new("a", move || async move {
        let error = awaited.wait().demand().await.unwrap_err();
        tell.0.lock().unwrap().push(error);
    }));
    let b = governor.govern(Task::new("b", || async {}).after(&a));
    later.set(b.clone()).unwrap();
    within(a.wait()).await.unwrap();
    within(b.wait()).await.unwrap();
    let error = told.0.lock().unwrap().pop().unwrap();
    assert!(error.is_cycle());
    assert_eq!(error.cycle_path(), ["a", "b", "a"]);
    assert_eq!((error.task(), error.outcome()), ("b", None));
    assert_eq!(error.to_string(), r#"waiting for task "b" would deadlock: "a" waits for "b" waits for "a""#);
    all_completed(&governor).await;
}

/// I25, I14: an error passed on with `?` is a failure like any other, and what comes after it is skipped.
#[tokio::test(start_paused = true)]
async fn a_cycle_that_is_passed_on_fails_the_task_and_skips_its_successors() {
    let governor = fast(1);
    let later = Later::default();
    let awaited = Arc::clone(&later);
    let a = governor.govern(Task::new("a", move || async move {
        awaited.wait().wait().await?;
        Ok::<(), TaskError>(())
    }));
    let b = governor.govern(Task::new("b", || async {}).after(&a));
    later.set(b.clone()).unwrap();
    let error = within(a.wait()).await.unwrap_err();
    assert!(error.is_failed() && error.to_string().contains("would deadlock"), "{error}");
    assert!(within(b.wait()).await.unwrap_err().is_skipped());
}

/// I25, I14: the one that comes second is told; the first goes on waiting and gets its answer.
#[tokio::test(start_paused = true)]
async fn of_two_tasks_that_wait_for_each_other_the_second_is_told() {
    for concurrency in [1, 2] {
        let governor = fast(concurrency);
        let told = Told::default();
        let (a, b_of_a) = waits_for(&governor, "a", &told);
        let (b, a_of_b) = waits_for(&governor, "b", &told);
        b_of_a.set(b).unwrap();
        a_of_b.set(a).unwrap();
        all_completed(&governor).await;
        assert_eq!(told.paths(), ["b > a > b"]);
    }
}

/// I25, I14
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_itself_is_told() {
    let governor = fast(1);
    let told = Told::default();
    let (a, itself) = waits_for(&governor, "a", &told);
    itself.set(a).unwrap();
    all_completed(&governor).await;
    assert_eq!(told.paths(), ["a > a"]);
    assert_eq!(
        told.0.lock().unwrap()[0].to_string(),
        r#"waiting for task "a" would deadlock: "a" waits for "a""#
    );
}

/// I25, I14
#[tokio::test(start_paused = true)]
async fn a_cycle_of_three_is_told_with_all_three() {
    let governor = fast(1);
    let told = Told::default();
    let (a, b_of_a) = waits_for(&governor, "a", &told);
    let (b, c_of_b) = waits_for(&governor, "b", &told);
    let (c, a_of_c) = waits_for(&governor, "c", &told);
    b_of_a.set(b).unwrap();
    c_of_b.set(c).unwrap();
    a_of_c.set(a).unwrap();
    all_completed(&governor).await;
    assert_eq!(told.paths(), ["c > a > b > c"]);
}

/// I25, I10, I14: over order and waits: C after B, B waits for nothing yet; A waits for C, then B waits for A.
#[tokio::test(start_paused = true)]
async fn a_cycle_over_order_and_waits_is_told() {
    let governor = fast(2);
    let told = Told::default();
    let (b, a_of_b) = waits_for(&governor, "b", &told);
    let c = governor.govern(Task::new("c", || async {}).after(&b));
    let later = c.clone();
    let a = governor.govern(Task::new("a", move || async move { drop(later.wait().await) }));
    // B is polled first; its wait for A comes before A's wait for C, which closes the cycle.
    a_of_b.set(a.clone()).unwrap();
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 3);
    // A took the error and ended, so B went on, and C after it.
    assert!(started(&report, "c") >= report.task("b").unwrap().finished.unwrap());
    assert_eq!(told.paths(), Vec::<String>::new());
}

/// I25, I20: names are shown as Rust would, so a path cannot be forged by a name.
#[tokio::test(start_paused = true)]
async fn names_in_a_path_are_quoted() {
    let governor = fast(1);
    let told = Told::default();
    let (a, itself) = waits_for(&governor, "a\" waits for \"b\n\u{1b}[2J", &told);
    itself.set(a).unwrap();
    all_completed(&governor).await;
    let text = told.0.lock().unwrap()[0].to_string();
    assert!(
        !text.contains('\n') && !text.contains('\u{1b}') && text.contains(r#"a\" waits for \"b\n"#),
        "{text}"
    );
}

/// I25, I16: a task that awaits the run's end is left out of it, though others are queued behind its slot.
#[tokio::test(start_paused = true)]
async fn a_task_that_awaits_the_end_of_the_run_does_not_wait_for_itself() {
    for concurrency in [2, 1] {
        let governor = fast(concurrency);
        let inner = governor.clone();
        let awaits = governor.govern(Task::value("awaits the end", move || async move {
            let report = inner.report().finished().await;
            (ended(&report, "b"), report.task("awaits the end").unwrap().outcome.clone())
        }));
        let b = governor.govern(Task::new("b", || sleep(secs(1))));
        sleep(secs(20)).await;
        assert!(
            b.is_finished(),
            "B stands behind the slot of a task that waits for it; concurrency {concurrency}"
        );
        let (b, own) = (*within(awaits.wait()).await.unwrap()).clone();
        assert!(b.is_completed() && own.is_none());
        all_completed(&governor).await;
    }
}

/// I25, I16: what comes after such a task cannot have ended either.
#[tokio::test(start_paused = true)]
async fn what_comes_after_a_task_that_awaits_the_end_is_left_out_with_it() {
    let governor = fast(2);
    let inner = governor.clone();
    let awaits =
        governor.govern(Task::new("awaits", move || async move { drop(inner.report().finished().await) }));
    let after = governor.govern(Task::new("after", || async {}).after(&awaits));
    governor.govern(Task::new("b", || sleep(secs(1))));
    sleep(secs(20)).await;
    assert!(awaits.is_finished(), "it waits for one that waits for it");
    within(after.wait()).await.unwrap();
    all_completed(&governor).await;
}

/// I25, I16: the same for the starts.
#[tokio::test(start_paused = true)]
async fn a_task_that_awaits_the_last_start_does_not_hold_it_up() {
    let governor = fast(1);
    let inner = governor.clone();
    let awaits =
        governor.govern(Task::new("awaits", move || async move { drop(inner.report().started().await) }));
    let b = governor.govern(Task::new("b", || async {}));
    sleep(secs(20)).await;
    assert!(b.is_finished(), "B stands behind the slot of a task that waits for its start");
    within(awaits.wait()).await.unwrap();
}

/// I25, I10: many ways to one end are no cycle.
#[tokio::test(start_paused = true)]
async fn diamonds_are_not_cycles() {
    let governor = fast(1);
    let top = governor.govern(Task::new("top", || async {}));
    let mut layer = vec![top];
    // Doubling ways over order: a search that did not remember where it was would take 2^30 steps.
    for depth in 0..30 {
        let mut next = Vec::new();
        for side in ["left", "right"] {
            let mut task = Task::new(format!("{side} {depth}"), || async {});
            for above in &layer {
                task = task.after(above);
            }
            next.push(governor.govern(task));
        }
        layer = next;
    }
    let bottom = layer.clone();
    let waits = governor.govern(Task::value("waits", move || async move {
        let (left, right) = tokio::join!(bottom[0].wait(), bottom[1].demand());
        let again = bottom[0].wait().await;
        left.is_ok() && right.is_ok() && again.is_ok()
    }));
    assert!(*within(waits.demand()).await.unwrap());
    all_completed(&governor).await;
}

/// I25, I14: a wait that was given up closes no cycle.
#[tokio::test(start_paused = true)]
async fn a_wait_that_gave_up_closes_no_cycle() {
    let governor = fast(1);
    let later = Later::default();
    let awaited = Arc::clone(&later);
    let a = governor.govern(Task::new("a", move || async move {
        assert!(timeout(ms(10), awaited.wait().wait()).await.is_err());
        sleep(ms(10)).await;
    }));
    let of_a = a.clone();
    let b = governor.govern(Task::value("b", move || async move {
        sleep(ms(15)).await;
        of_a.wait().await.is_ok()
    }));
    let of_b = b.clone();
    later.set(governor.govern(Task::new("c", move || async move { drop(of_b.wait().await) }))).unwrap();
    assert!(*within(b.wait()).await.unwrap());
    all_completed(&governor).await;
}

/// I25, I14: the same task waited for twice, and one of the two waits given up: the other one still counts.
#[tokio::test(start_paused = true)]
async fn of_two_waits_for_one_task_the_one_that_is_left_still_closes_a_cycle() {
    let governor = fast(1);
    let (told, later) = (Told::default(), Later::default());
    let awaited = Arc::clone(&later);
    let a = governor.govern(Task::new("a", move || async move {
        let b = awaited.wait();
        let (first, second) = tokio::join!(timeout(ms(10), b.wait()), b.wait());
        assert!(first.is_err() && second.is_ok());
    }));
    let tell = told.clone();
    let b = governor.govern(Task::new("b", move || async move {
        sleep(ms(50)).await;
        let error = a.wait().await.unwrap_err();
        tell.0.lock().unwrap().push(error);
    }));
    later.set(b).unwrap();
    all_completed(&governor).await;
    assert_eq!(told.paths(), ["b > a > b"]);
}

/// I25, I14: outside a governed task, and across governors, nothing is refused.
#[tokio::test(start_paused = true)]
async fn a_wait_from_outside_or_from_another_governor_is_never_a_cycle() {
    let (one, other) = (fast(1), fast(1));
    let a = one.govern(Task::value("a", || sleep(ms(100))));
    let of_a = a.clone();
    let b = other.govern(Task::new("b", move || async move { drop(of_a.wait().await.unwrap()) }).idle());
    other.open_gate();
    within(b.wait()).await.unwrap();
    within(a.demand()).await.unwrap();
    all_completed(&one).await;
}
