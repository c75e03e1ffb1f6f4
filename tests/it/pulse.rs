//! The rest between two starts, measured from what happened.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use afterboot::{Report, Task};
use tokio::time::{advance, sleep};

use crate::common::{Log, breathe, fast, ms, paced, secs, within};

fn starts(report: &Report) -> Vec<Duration> {
    let mut starts: Vec<_> = report.tasks.iter().filter_map(|task| task.started).collect();
    starts.sort();
    starts
}

fn rests(report: &Report) -> Vec<Duration> {
    starts(report).windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// I5
#[tokio::test(start_paused = true)]
async fn the_first_start_comes_after_the_delay_and_each_next_one_after_the_pulse() {
    let governor = paced(3, ms(40), ms(10));
    sleep(secs(7)).await;
    for n in 0..20 {
        governor.govern(Task::new(format!("{n}"), || async {}));
        if n < 3 {
            sleep(ms(10)).await;
        }
    }
    let report = within(governor.report().finished()).await;
    let first = starts(&report)[0];
    assert!(first >= secs(7) + ms(40) && first <= secs(7) + ms(42), "{first:?}");
    for rest in rests(&report) {
        assert!(rest >= ms(10) && rest <= ms(12), "{rest:?}");
    }
}

/// I5: over both queues together.
#[tokio::test(start_paused = true)]
async fn idle_and_normal_starts_rest_from_each_other_and_an_opening_makes_no_burst() {
    let governor = paced(5, ms(0), ms(20));
    for n in 0..10 {
        governor.govern(Task::new(format!("idle {n}"), || sleep(ms(3))).idle());
        governor.govern(Task::new(format!("{n}"), || sleep(ms(3))));
    }
    sleep(secs(2)).await;
    for n in 10..15 {
        governor.govern(Task::new(format!("{n}"), || sleep(ms(3))));
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(starts(&report).len(), 25);
    assert!(rests(&report).iter().all(|rest| *rest >= ms(20)), "{:?}", rests(&report));
}

/// I5: the rest is counted from the end of a start's first poll, not of any poll.
#[tokio::test(start_paused = true)]
async fn a_chatty_task_does_not_push_the_next_start_back() {
    let governor = paced(3, ms(0), ms(10));
    let chatty = governor.govern(Task::new("chatty", || async {
        for _ in 0..1_000_000 {
            sleep(ms(1)).await;
        }
    }));
    for n in 0..10 {
        governor.govern(Task::new(format!("{n}"), || async {}));
    }
    let last = governor.govern(Task::new("last", || async {}));
    within(last.wait()).await.unwrap();
    chatty.cancel();
    let report = within(governor.report().finished()).await;
    for rest in rests(&report) {
        assert!(rest >= ms(10) && rest <= ms(12), "{rest:?}");
    }
}

/// I5: the clock moves inside the first poll, as it does where that poll burns CPU; the rest comes after it.
#[tokio::test(start_paused = true)]
async fn the_rest_is_counted_from_the_end_of_the_first_poll() {
    let governor = paced(3, ms(0), ms(10));
    governor.govern(Task::new("long first poll", || {
        // `advance` moves the clock when it is polled, and only then yields.
        let mut moved = Box::pin(advance(ms(500)));
        poll_fn(move |cx| {
            let _yields = moved.as_mut().poll(cx);
            Poll::Ready(())
        })
    }));
    governor.govern(Task::new("next", || async {}));
    let report = within(governor.report().finished()).await;
    let rest = rests(&report)[0];
    assert!(rest >= ms(510) && rest <= ms(512), "{rest:?}");
}

/// I5
#[tokio::test(start_paused = true)]
async fn a_pulse_of_zero_means_a_tick_and_takes_no_time() {
    let governor = fast(3);
    for n in 0..100 {
        governor.govern(Task::new(format!("{n}"), || async {}));
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(starts(&report).last(), Some(&ms(0)));
}

/// I5: however late the clock is, one start follows another.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_an_hour_makes_no_burst_and_keeps_the_order() {
    let governor = paced(3, ms(1), ms(10));
    let log = Log::default();
    for n in 0..50 {
        let log = log.clone();
        governor.govern(Task::new(format!("{n}"), move || async move { log.add(n.to_string()) }));
    }
    sleep(ms(35)).await;
    advance(secs(3_600)).await;
    breathe().await;
    let now = log.all().len();
    assert!(now <= 6, "{now} tasks started at once");
    let report = within(governor.report().finished()).await;
    assert_eq!(log.all(), (0..50).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(rests(&report).iter().all(|rest| *rest >= ms(10)), "{:?}", rests(&report));
}

/// I5: what comes long after everything has rested needs no new delay, and is not held back by the old one.
#[tokio::test(start_paused = true)]
async fn a_task_declared_long_afterwards_starts_at_once() {
    let governor = paced(3, ms(100), ms(10));
    within(governor.govern(Task::new("first", || async {})).wait()).await.unwrap();
    sleep(secs(60)).await;
    governor.govern(Task::new("later", || async {}));
    governor.govern(Task::new("next", || async {}));
    let report = within(governor.report().finished()).await;
    let starts = starts(&report);
    assert!(starts[1] - report.task("later").unwrap().declared <= ms(1), "{starts:?}");
    assert!(starts[2] - starts[1] >= ms(10), "{starts:?}");
}

/// I5: neither a task that is skipped nor one that is cancelled costs a rest.
#[tokio::test(start_paused = true)]
async fn tasks_that_never_start_cost_no_rest() {
    let governor = paced(3, ms(0), secs(10));
    governor.govern(Task::new("first", || async {}));
    for _ in 0..100 {
        governor.govern(Task::new("off", || async {}).when(false));
        governor.govern(Task::new("cancelled", || async {})).cancel();
    }
    governor.govern(Task::new("last", || async {}));
    let report = within(governor.report().finished()).await;
    assert!(report.taken < secs(11), "{:?}", report.taken);
}
