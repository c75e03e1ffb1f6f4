//! The four sentences and the critical chain.

use afterboot::{Governor, Profile, Report, Task, TaskError};
use tokio::time::{advance, sleep};

use crate::common::{fast, ms, secs, within};

fn names(report: &Report) -> Vec<&str> {
    let name =
        |number: &u64| report.tasks.iter().find(|task| task.number == *number).map(|task| task.name.as_str());
    report.critical_chain().iter().map(|number| name(number).expect("it is in the report")).collect()
}

#[tokio::test(start_paused = true)]
async fn the_chain_goes_back_over_the_predecessor_that_finished_last() {
    let governor = fast(9);
    let short = governor.govern(Task::new("short", || sleep(ms(10))));
    let long = governor.govern(Task::new("long", || sleep(ms(50))));
    let middle = governor.govern(Task::new("middle", || sleep(ms(5))).after(&short).after(&long));
    governor.govern(Task::new("last", || sleep(ms(5))).after(&short).after(&middle));
    governor.govern(Task::new("aside", || sleep(ms(55))));
    let report = within(governor.report().finished()).await;
    assert_eq!(names(&report), ["long", "middle", "last"]);
}

#[tokio::test(start_paused = true)]
async fn the_chain_goes_back_over_the_task_that_freed_the_slot() {
    let governor = fast(2);
    governor.govern(Task::new("first", || sleep(ms(30))));
    governor.govern(Task::new("second", || sleep(ms(20))));
    governor.govern(Task::new("third", || sleep(ms(50))));
    let report = within(governor.report().finished()).await;
    assert_eq!(names(&report), ["second", "third"]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_waited_for_comes_before_a_predecessor_that_ended_earlier() {
    let governor = fast(2);
    let before = governor.govern(Task::new("before", || sleep(ms(10))));
    governor.govern(Task::new("blocker", || sleep(ms(40))));
    governor.govern(Task::new("filler", || sleep(ms(60))));
    governor.govern(Task::new("last", || sleep(ms(50))).after(&before));
    let report = within(governor.report().finished()).await;
    assert_eq!(names(&report), ["blocker", "last"]);
}

/// What ends while slots are free frees nothing.
#[tokio::test(start_paused = true)]
async fn a_task_that_waited_for_the_pulse_alone_begins_its_chain() {
    let profile = Profile::default().concurrency(3).delay(ms(0)).pulse(ms(20));
    let governor = Governor::builder().profile(profile).build().unwrap();
    governor.govern(Task::new("short", || sleep(ms(5))));
    governor.govern(Task::new("last", || sleep(ms(50))));
    let report = within(governor.report().finished()).await;
    assert_eq!(names(&report), ["last"]);
}

#[tokio::test(start_paused = true)]
async fn the_gate_begins_a_chain_and_a_demand_waits_for_no_slot() {
    let governor = fast(1);
    let before = governor.govern(Task::new("before", || sleep(ms(10))));
    let idle = governor.govern(Task::new("idle", || sleep(ms(10))).idle().after(&before));
    governor.govern(Task::new("after the gate", || sleep(ms(10))).idle().after(&idle));
    let report = within(governor.report().finished()).await;
    assert_eq!(names(&report), ["idle", "after the gate"], "the gate held it last, not its predecessor");

    let governor = fast(1);
    governor.govern(Task::new("before", || sleep(ms(10))));
    let demanded = governor.govern(Task::new("demanded", || sleep(ms(30))));
    sleep(ms(10)).await;
    demanded.demand().await.unwrap();
    let report = within(governor.report().finished()).await;
    assert_eq!(names(&report), ["demanded"]);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_has_ended_there_is_no_chain() {
    let governor = fast(1);
    assert_eq!(governor.report().current().critical_chain(), [] as [u64; 0]);
    governor.govern(Task::new("never", std::future::pending::<()>));
    governor.govern(Task::new("skipped", || async {}).when(false));
    sleep(ms(5)).await;
    let report = governor.report().current();
    assert_eq!(report.critical_chain(), [] as [u64; 0]);
    assert_eq!(report.headlines()[3], "No task has ended yet.");
}

#[tokio::test(start_paused = true)]
async fn the_sentences_tell_a_whole_boot() {
    let profile = Profile::default().concurrency(2).delay(ms(0)).pulse(ms(0));
    let governor = Governor::builder().profile(profile).await_ready().quiet(secs(2)).build().unwrap();
    let cache = governor.govern(Task::new("migrate cache", || async { Err::<(), _>("no") }));
    governor.govern(Task::new("warm cache", || async {}).after(&cache));
    for n in 0..4 {
        governor.govern(Task::new(format!("off {n}"), || async {}).when(false));
    }
    let index = governor.govern(Task::new("index", || sleep(ms(400))).idle());
    governor.govern(Task::new("pictures", || sleep(ms(200))).idle().after(&index));
    let run = governor.report();
    sleep(ms(100)).await;
    let shut = run.current().headlines();
    assert_eq!(shut[1], "The gate is shut: ready() was not called; it opens at 45.00 s at the earliest.");
    advance(ms(120)).await;
    sleep(ms(30)).await;
    governor.ready();
    sleep(ms(2_100)).await;
    let busy: Vec<_> = (0..3).map(|_| governor.in_flight("GET /search")).collect();
    sleep(ms(450)).await;
    drop(busy);
    let report = within(run.finished()).await;
    let told = report.headlines();
    assert_eq!(
        told[0],
        "8 tasks: 1 failed, 5 skipped, 2 completed. Skipped: warm cache (predecessor \"migrate cache\"), off 0 \
         (condition), off 1 (condition) and 2 more. 1 idle start was held: pictures for 646 ms by 3 in flight: GET \
         /search (3)."
    );
    assert!(
        told[1].starts_with("The gate opened at 2.25 s: the application was quiet; last reason to wait: "),
        "{}",
        told[1]
    );
    assert!(told[2].starts_with("A worker was blocked for 1"), "{}", told[2]);
    assert!(told[2].ends_with(", by an unknown task."), "{}", told[2]);
    assert!(
        told[3].contains("was determined by a chain of 2: index → pictures; from 2.25 s on they ran 600 ms."),
        "{}",
        told[3]
    );
}

#[tokio::test(start_paused = true)]
async fn the_sentences_of_a_plain_run_say_that_nothing_happened() {
    let governor = fast(1);
    assert_eq!(fast(1).report().current().headlines()[0], "No task was declared.");
    governor.govern(Task::new("solo", || sleep(ms(20))));
    assert_eq!(
        within(governor.report().finished()).await.headlines(),
        [
            "1 task: 1 completed.",
            "The gate stayed shut: no idle task waits.",
            "Long tasks were not observed: the probe runs only while idle tasks wait.",
            "The end, at 20.0 ms, was determined by solo alone: it started at 0 µs and ran 20.0 ms.",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_chain_is_told_by_its_ends() {
    let governor = fast(1);
    let first = governor.govern(Task::new("t0", || sleep(ms(10))));
    let mut before = first;
    for n in 1..10 {
        before = governor.govern(
            Task::new(format!("t{n}"), || async {
                sleep(ms(10)).await;
                Ok::<(), TaskError>(())
            })
            .after(&before),
        );
    }
    let told = within(governor.report().finished()).await.headlines();
    assert_eq!(
        told[3],
        "The end, at 100 ms, was determined by a chain of 10: t0 → t1 → t2 → 4 more → t7 → t8 → t9; from 0 µs on they ran 100 ms."
    );
}

/// I20.
#[tokio::test(start_paused = true)]
async fn a_hostile_name_in_a_sentence_is_cut_and_cannot_turn_it() {
    let governor = fast(1);
    governor.govern(Task::new(format!("\u{202e}\x1b[2J\n{}", "x".repeat(500)), || sleep(ms(5))));
    let told = within(governor.report().finished()).await.headlines();
    assert!(told[3].chars().all(|c| !c.is_control() && c != '\u{202e}'), "{}", told[3]);
    assert!(told[3].chars().count() < 140, "{}", told[3]);
}
