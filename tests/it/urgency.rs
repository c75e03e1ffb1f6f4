//! Who is polled next: demanded before normal before idle, and nobody starves.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use afterboot::{Governor, Report, Task, TaskHandle};
use tokio::time::{Instant, advance, sleep, timeout};

use crate::common::{breathe, fast, ms, secs, within};
use crate::lending::Later;

/// Whose, from when to when.
type Polled = (&'static str, Duration, Duration);

/// One entry a poll.
#[derive(Clone)]
struct Polls {
    begun: Instant,
    log: Arc<Mutex<Vec<Polled>>>,
}

impl Polls {
    fn new() -> Polls {
        Polls { begun: Instant::now(), log: Arc::default() }
    }

    fn all(&self) -> Vec<Polled> {
        self.log.lock().unwrap().clone()
    }

    fn names(&self) -> Vec<&'static str> {
        self.all().into_iter().map(|(name, ..)| name).collect()
    }

    /// One poll that lasts `length` on the paused clock; the task is woken again at once.
    async fn one(&self, name: &'static str, length: Duration) {
        let began = self.begun.elapsed();
        // `advance` moves the clock when it is polled, and only then yields.
        let mut moved = Box::pin(advance(length));
        poll_fn(|cx| Poll::Ready(moved.as_mut().poll(cx).is_pending())).await;
        self.log.lock().unwrap().push((name, began, self.begun.elapsed()));
        tokio::task::yield_now().await;
    }

    fn task(&self, name: &'static str, polls: usize, length: Duration) -> Task<()> {
        let log = self.clone();
        Task::new(name, move || async move {
            for _ in 0..polls {
                log.one(name, length).await;
            }
        })
    }

    /// Never ends by itself.
    fn endless(&self, name: &'static str, length: Duration) -> Task<()> {
        self.task(name, usize::MAX, length)
    }

    /// How much of the time between the first and the last poll of `name` others were polled.
    fn share_of_others(&self, name: &str) -> f64 {
        let all = self.all();
        let mine = |(of, ..): &&Polled| *of == name;
        let from = all.iter().find(mine).unwrap().1;
        let to = all.iter().rfind(mine).unwrap().2;
        let others = all.iter().filter(|(of, start, _)| *of != name && *start >= from && *start < to);
        let others: Duration = others.map(|(_, start, end)| *end - *start).sum();
        others.as_secs_f64() / (to - from).as_secs_f64()
    }
}

fn ran(report: &Report, name: &str) -> Duration {
    report.task(name).unwrap().ran().unwrap()
}

async fn over(governor: &Governor, others: &[TaskHandle<()>]) -> Report {
    for other in others {
        other.cancel();
    }
    within(governor.report().finished()).await
}

/// I35: alone it takes 300 ms; short polls and long ones.
#[tokio::test(start_paused = true)]
async fn a_demanded_task_is_hardly_slowed_by_others_of_its_kind() {
    for (polls, length) in [(60, ms(5)), (6, ms(50))] {
        let (governor, log) = (fast(3), Polls::new());
        let others = ["a", "b", "c"].map(|name| governor.govern(log.endless(name, length)));
        breathe().await;
        let demanded = governor.govern(log.task("demanded", polls, length).idle());
        within(demanded.demand()).await.unwrap();
        let report = over(&governor, &others).await;
        let took = ran(&report, "demanded");
        assert!(took <= ms(345) + length, "{polls} polls of {length:?}: {took:?}");
    }
}

/// I35: its urgency does not end at its start, and one that runs already gets it.
#[tokio::test(start_paused = true)]
async fn a_running_task_that_is_demanded_goes_first_from_then_on() {
    let (governor, log) = (fast(3), Polls::new());
    let others = ["a", "b"].map(|name| governor.govern(log.endless(name, ms(5))));
    let demanded = governor.govern(log.task("demanded", 70, ms(5)));
    while log.names().iter().filter(|name| **name == "demanded").count() < 10 {
        tokio::task::yield_now().await;
    }
    let asked = log.begun.elapsed();
    within(demanded.demand()).await.unwrap();
    let took = log.begun.elapsed() - asked;
    assert!(took <= ms(345 + 5), "{took:?}");
    let report = over(&governor, &others).await;
    assert!(!report.task("demanded").unwrap().demanded, "it had started before");
}

/// I35, I9: what a demanded task waits for is demanded with it, past the gate; and those behind it too.
#[tokio::test(start_paused = true)]
async fn what_a_demanded_task_waits_for_is_demanded_too_though_the_gate_is_shut() {
    let (governor, log) = (Governor::builder().await_ready().build().unwrap(), Polls::new());
    let others = ["a", "b", "c"].map(|name| governor.govern(log.endless(name, ms(5))));
    sleep(ms(20)).await;
    let deep = governor.govern(log.task("deep", 30, ms(5)).idle());
    let inner = log.clone();
    let middle = governor.govern(
        Task::new("middle", move || async move {
            deep.wait().await?;
            inner.one("middle", ms(5)).await;
            Ok::<_, afterboot::TaskError>(())
        })
        .idle(),
    );
    let inner = log.clone();
    let front = governor.govern(
        Task::new("front", move || async move {
            middle.wait().await?;
            inner.one("front", ms(5)).await;
            Ok::<_, afterboot::TaskError>(())
        })
        .idle(),
    );
    let asked = log.begun.elapsed();
    within(front.demand()).await.unwrap();
    let took = log.begun.elapsed() - asked;
    assert!(took <= ms(160) * 115 / 100 + ms(5), "{took:?}");
    let report = over(&governor, &others).await;
    for name in ["deep", "middle", "front"] {
        assert!(report.task(name).unwrap().demanded, "{report}");
    }
}

/// I35: a task that waits already hands on what it gets later.
#[tokio::test(start_paused = true)]
async fn a_demand_of_a_task_that_waits_reaches_what_it_waits_for() {
    let (governor, log) = (Governor::builder().await_ready().build().unwrap(), Polls::new());
    let gated = governor.govern(log.task("gated", 3, ms(5)).idle());
    let inner = gated.clone();
    let waits = governor.govern(Task::new("waits", move || async move { inner.wait().await.map(drop) }));
    sleep(secs(1)).await;
    assert!(!gated.is_finished());
    within(timeout(ms(100), waits.demand())).await.unwrap().unwrap();
}

/// I35, I10: a demand passes through order as well: whoever runs before it goes first.
#[tokio::test(start_paused = true)]
async fn a_running_predecessor_of_a_demanded_task_goes_first() {
    let (governor, log) = (fast(3), Polls::new());
    let others = ["a", "b"].map(|name| governor.govern(log.endless(name, ms(5))));
    let before = governor.govern(log.task("before", 60, ms(5)));
    let after = governor.govern(log.task("after", 1, ms(5)).after(&before).idle());
    while !log.names().contains(&"before") {
        tokio::task::yield_now().await;
    }
    let asked = log.begun.elapsed();
    within(after.demand()).await.unwrap();
    let took = log.begun.elapsed() - asked;
    assert!(took <= ms(305) * 115 / 100 + ms(5), "{took:?}");
    over(&governor, &others).await;
}

/// I35, I4: an idle task that runs already does not hold back a normal one.
#[tokio::test(start_paused = true)]
async fn a_normal_task_is_hardly_slowed_by_idle_ones_that_run() {
    let (governor, log) = (fast(3), Polls::new());
    governor.open_gate();
    let idle = ["a", "b"].map(|name| governor.govern(log.endless(name, ms(5)).idle()));
    sleep(ms(50)).await;
    let normal = governor.govern(log.task("normal", 60, ms(5)));
    within(normal.wait()).await.unwrap();
    let report = over(&governor, &idle).await;
    assert!(ran(&report, "normal") <= ms(350), "{:?}", ran(&report, "normal"));
}

/// I35, I4: so that the slot gets free.
#[tokio::test(start_paused = true)]
async fn idle_tasks_that_hold_slots_count_as_normal_while_a_normal_one_waits_for_a_slot() {
    let (governor, log) = (fast(2), Polls::new());
    governor.open_gate();
    let idle = governor.govern(log.task("idle", 30, ms(5)).idle());
    sleep(ms(20)).await;
    let chatty = governor.govern(log.endless("chatty", ms(5)));
    let waits = governor.govern(log.task("waits", 1, ms(5)));
    within(idle.wait()).await.unwrap();
    assert!(log.begun.elapsed() <= ms(330), "half of the time is its: {:?}", log.begun.elapsed());
    within(waits.wait()).await.unwrap();
    over(&governor, &[chatty]).await;
}

/// I35: an endless demanded task leaves the others their share, and they are all polled.
#[tokio::test(start_paused = true)]
async fn nobody_starves_behind_an_endless_demanded_task_and_it_is_hardly_slowed() {
    let (governor, log) = (fast(2), Polls::new());
    governor.open_gate();
    let demanded = governor.govern(log.endless("demanded", ms(5)));
    drop(demanded.demand());
    let normal = governor.govern(log.task("normal", 20, ms(7)));
    let idle = governor.govern(log.task("idle", 3, ms(20)).idle());
    within(normal.wait()).await.unwrap();
    within(idle.wait()).await.unwrap();
    let share = log.share_of_others("demanded");
    assert!((0.055..0.07).contains(&share), "{share}");
    over(&governor, &[demanded]).await;
}

/// I35: a task that came back ready while the others had the lane for themselves owes nobody anything.
#[tokio::test(start_paused = true)]
async fn time_in_which_nobody_more_urgent_waited_is_not_counted() {
    let (governor, log) = (fast(3), Polls::new());
    let others = ["a", "b"].map(|name| governor.govern(log.endless(name, ms(5))));
    sleep(secs(10)).await;
    for _ in 0..3 {
        let demanded = governor.govern(log.task("demanded", 60, ms(5)));
        within(demanded.demand()).await.unwrap();
        sleep(secs(2)).await;
    }
    let report = over(&governor, &others).await;
    for task in report.tasks.iter().filter(|task| task.demanded) {
        assert!(task.ran().unwrap() <= ms(350), "{report}");
    }
}

/// I35: polls of no length at all are polls all the same: whoever is behind gets his.
#[tokio::test(start_paused = true)]
async fn a_demanded_task_that_spins_until_a_normal_one_has_run_does_not_spin_for_ever() {
    let governor = fast(1);
    let later = Later::<()>::default();
    let other = Arc::clone(&later);
    let spins = governor.govern(Task::new("spins", move || async move {
        while !other.wait().is_finished() {
            tokio::task::yield_now().await;
        }
    }));
    drop(spins.demand());
    let aside = governor.govern(Task::new("aside", || async {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    }));
    later.set(aside.clone()).unwrap();
    drop(aside.demand());
    within(spins.wait()).await.unwrap();
}

/// I35: among equals, who was woken first is polled first, and starts come in turn.
#[tokio::test(start_paused = true)]
async fn starts_and_woken_tasks_of_one_class_alternate() {
    let (governor, log) = (fast(2), Polls::new());
    let first = governor.govern(log.task("first", 8, ms(5)));
    let second = governor.govern(log.task("second", 8, ms(5)));
    drop((first.demand(), second.demand()));
    let third = governor.govern(log.task("third", 8, ms(5)));
    drop(third.demand());
    within(third.wait()).await.unwrap();
    assert_eq!(log.names()[..8], ["first", "first", "second", "first", "third", "second", "first", "third"]);
    within(governor.report().finished()).await;
}
