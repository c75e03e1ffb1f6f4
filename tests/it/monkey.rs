//! One task is late on purpose: which, for how long, and what the report says of it.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use afterboot::{
    Delivery, GateState, Governor, Monkey, MonkeyReport, Outcome, Profile, Report, Task, TaskHandle,
};
use tokio::time::{Instant, sleep, timeout};

use crate::common::{boom, breathe, ended, ms, secs, started, within};

const MINUTE: Duration = Duration::from_secs(60);

fn governor(concurrency: usize, monkey: Monkey, seed: u64) -> Governor {
    let profile = Profile::default().concurrency(concurrency).delay(Duration::ZERO).pulse(Duration::ZERO);
    Governor::builder().profile(profile).monkey(monkey).seed(seed).build().unwrap()
}

fn quick(governor: &Governor, name: &'static str) -> TaskHandle<()> {
    governor.govern(Task::new(name, || sleep(ms(10))))
}

fn monkey(report: &Report) -> (Option<&str>, Delivery) {
    let MonkeyReport { victim, delivery, .. } = report.monkey.as_ref().expect("there is a monkey");
    (victim.as_deref(), delivery.clone())
}

/// I15, I17.
#[tokio::test(start_paused = true)]
async fn a_random_monkey_picks_among_what_has_not_started_and_the_same_seed_picks_the_same() {
    let mut victims = BTreeSet::new();
    for seed in 0..16 {
        let mut reports = Vec::new();
        for _ in 0..2 {
            let governor = governor(2, Monkey::random(MINUTE), seed);
            for name in ["a", "b", "c", "d", "e"] {
                quick(&governor, name);
            }
            sleep(ms(5)).await;
            let report = within(governor.report().finished()).await;
            assert_eq!(report.seed, seed);
            let (victim, delivery) = monkey(&report);
            let victim = victim.expect("three have not started").to_owned();
            assert_eq!(delivery, Delivery::Delivered, "seed {seed}");
            assert!(started(&report, &victim) >= MINUTE, "seed {seed}: {report}");
            let late = report.tasks.iter().filter(|task| task.started > Some(secs(1)));
            assert_eq!(late.count(), 1, "seed {seed}: one victim at the most: {report}");
            reports.push(victim);
        }
        assert_eq!(reports[0], reports[1], "seed {seed}");
        victims.extend(reports);
    }
    assert_eq!(victims, BTreeSet::from(["c", "d", "e"].map(str::to_owned)), "of all that had not started");
}

/// I15: the delay begins when its turn comes, and takes no slot.
#[tokio::test(start_paused = true)]
async fn a_victim_holds_no_slot_and_is_late_by_the_whole_delay_from_its_turn() {
    let governor = governor(1, Monkey::task("second", MINUTE), 0);
    for name in ["first", "second", "third", "fourth"] {
        quick(&governor, name);
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(monkey(&report), (Some("second"), Delivery::Delivered));
    assert!(started(&report, "fourth") <= ms(40), "{report}");
    let late = started(&report, "second");
    assert!(late >= MINUTE + ms(10) && late <= MINUTE + ms(20), "{report}");
}

/// I15: the first declared has the number 0, and zero is a number.
#[tokio::test(start_paused = true)]
async fn index_0_is_the_task_that_was_declared_first() {
    let governor = governor(1, Monkey::index(0, MINUTE), 0);
    for name in ["x", "x", "y"] {
        quick(&governor, name);
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(monkey(&report), (Some("x"), Delivery::Delivered));
    assert!(started(&report, "x") >= MINUTE && started(&report, "x#2") <= ms(20), "{report}");
}

/// I9, I15.
#[tokio::test(start_paused = true)]
async fn a_demand_ends_the_delay_and_is_recorded() {
    let governor = governor(3, Monkey::task("victim", MINUTE), 0);
    let victim = quick(&governor, "victim");
    let run = governor.report();
    sleep(secs(7)).await;
    assert_eq!(monkey(&run.current()).1, Delivery::Delaying);
    within(victim.demand()).await.unwrap();
    let report = within(run.finished()).await;
    assert_eq!(monkey(&report).1, Delivery::Demanded);
    assert!(started(&report, "victim") >= secs(7) && started(&report, "victim") < ms(7_010), "{report}");
    assert!(report.task("victim").unwrap().demanded);
}

/// I9, I15: also where its turn has not come, because what it comes after still runs.
#[tokio::test(start_paused = true)]
async fn a_demand_before_its_turn_lets_the_victim_off() {
    let governor = governor(3, Monkey::task("victim", MINUTE), 0);
    let before = governor.govern(Task::new("before", || sleep(secs(2))));
    let victim = governor.govern(Task::new("victim", || async {}).after(&before));
    let run = governor.report();
    within(victim.demand()).await.unwrap();
    let report = within(run.finished()).await;
    assert_eq!(monkey(&report).1, Delivery::Demanded);
    assert!(started(&report, "victim") < ms(2_010), "{report}");
}

/// I9, I15: a demand that came before `report()` too.
#[tokio::test(start_paused = true)]
async fn a_victim_that_was_demanded_before_it_was_picked_is_said_to_be_demanded() {
    let governor = governor(3, Monkey::task("victim", MINUTE), 0);
    let victim = quick(&governor, "victim");
    let demand = victim.demand();
    let run = governor.report();
    within(demand).await.unwrap();
    assert_eq!(monkey(&within(run.finished()).await).1, Delivery::Demanded);
}

/// I16.
#[tokio::test(start_paused = true)]
async fn started_waits_neither_for_the_victim_nor_for_what_comes_after_it() {
    let governor = governor(1, Monkey::task("victim", MINUTE), 0);
    let victim = quick(&governor, "victim");
    let next = governor.govern(Task::new("next", || async {}).after(&victim));
    governor.govern(Task::new("next but one", || async {}).after(&next));
    quick(&governor, "other");
    quick(&governor, "last");
    let run = governor.report();
    let report = within(run.started()).await;
    assert!(report.taken < ms(100), "{report}");
    assert!(report.task("last").unwrap().started.is_some(), "{report}");
    for name in ["victim", "next", "next but one"] {
        assert_eq!(report.task(name).unwrap().started, None, "{report}");
    }
    let report = within(run.finished()).await;
    assert!(started(&report, "next but one") >= MINUTE, "{report}");
}

/// I15.
#[tokio::test(start_paused = true)]
async fn a_name_that_was_never_declared_is_said_and_nothing_is_delayed() {
    for monkey_of in [Monkey::task("nobody", MINUTE), Monkey::index(1, MINUTE)] {
        let governor = governor(3, monkey_of, 0);
        quick(&governor, "somebody");
        let report = within(governor.report().finished()).await;
        assert_eq!(monkey(&report), (None, Delivery::Unknown));
        assert!(report.last_start < Some(secs(1)), "{report}");
        assert!(report.to_string().contains("no task by 60.00 s; not delivered: no such task"), "{report}");
    }
}

/// I15.
#[tokio::test(start_paused = true)]
async fn a_task_that_has_started_is_not_stopped_and_the_report_says_so() {
    let governor = governor(3, Monkey::task("early", MINUTE), 0);
    quick(&governor, "early");
    sleep(ms(5)).await;
    quick(&governor, "early");
    let report = within(governor.report().finished()).await;
    assert_eq!(monkey(&report), (Some("early"), Delivery::AlreadyStarted));
    assert!(report.last_finish < Some(secs(1)), "{report}");
}

/// I15: the one that was asked for never ran, and that is not the same as having started.
#[tokio::test(start_paused = true)]
async fn a_victim_that_ended_unstarted_before_the_report_is_not_said_to_have_started() {
    let governor = governor(3, Monkey::task("skipped", MINUTE), 0);
    governor.govern(Task::new("skipped", || async {}).when(false));
    let report = within(governor.report().finished()).await;
    assert_eq!(monkey(&report), (Some("skipped"), Delivery::NotDelivered));
}

/// I6, I15.
#[tokio::test(start_paused = true)]
async fn a_victim_that_is_cancelled_during_its_delay_ends_at_once_and_never_runs() {
    let governor = governor(3, Monkey::task("victim", MINUTE), 0);
    let victim = governor.govern(Task::new("victim", boom));
    let next = governor.govern(Task::new("next", || async {}).after(&victim));
    let run = governor.report();
    sleep(secs(1)).await;
    victim.cancel();
    let report = within(run.finished()).await;
    assert!(report.taken < ms(1_010), "{report}");
    assert_eq!(monkey(&report).1, Delivery::NotDelivered);
    assert!(next.wait().await.unwrap_err().is_skipped());
    timeout(secs(120), pending::<()>()).await.unwrap_err();
    assert_eq!(run.current().task("victim").unwrap().started, None);
}

/// I15.
#[tokio::test(start_paused = true)]
async fn a_delay_of_nothing_delays_by_nothing_and_is_delivered() {
    let governor = governor(1, Monkey::index(0, Duration::ZERO), 0);
    quick(&governor, "first");
    quick(&governor, "second");
    let report = within(governor.report().finished()).await;
    assert_eq!(monkey(&report), (Some("first"), Delivery::Delivered));
    assert!(report.last_finish <= Some(ms(25)), "{report}");
}

/// I12, I15.
#[tokio::test(start_paused = true)]
async fn an_idle_victim_waits_for_the_gate_and_then_for_its_delay() {
    let governor = governor(3, Monkey::task("victim", MINUTE), 0);
    governor.govern(Task::new("victim", || async {}).idle());
    governor.govern(Task::new("other", || async {}).idle());
    let report = within(governor.report().finished()).await;
    let GateState::Open { at, .. } = report.gate else { panic!("{report}") };
    assert!(started(&report, "other") <= at + ms(10), "{report}");
    assert!(started(&report, "victim") >= at + MINUTE, "{report}");
}

/// I14, I15.
#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_the_victim() {
    let governor = governor(3, Monkey::task("victim", MINUTE), 0);
    let victim = quick(&governor, "victim");
    governor.report();
    breathe().await;
    let began = Instant::now();
    let report = within(governor.shutdown(secs(30))).await;
    assert!(began.elapsed() < ms(10));
    assert_eq!(monkey(&report).1, Delivery::NotDelivered);
    assert!(matches!(ended(&report, "victim"), Outcome::Cancelled(_)));
    assert!(victim.is_finished());
}
