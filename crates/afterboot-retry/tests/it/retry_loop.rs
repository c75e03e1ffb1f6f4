//! The loop on tokio's clock, paused.

use std::cell::Cell;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afterboot_retry::{
    BackoffPolicy, BudgetPolicy, Clock, Failure, GiveUpReason, JitterRng, LastAttempt, Limits, RetryBudget,
    RetryEvent, RetryGate, RetryLoop, RetryPolicy, SkipWait, retry,
};
use tokio::time::{Instant, sleep};

use crate::common::{ms, s};

fn uploader(limits: Limits) -> RetryPolicy {
    RetryPolicy::from(BackoffPolicy::uploader()).limits(limits)
}

/// Without jitter from chance: the middle of every draw.
fn exact(limits: Limits) -> RetryLoop {
    RetryLoop::from_retry(uploader(limits).start_with(Clock::tokio(), JitterRng::constant(0.5)))
}

const DOWN: fn(&u32) -> Failure = |_| Failure::transient();

/// R12.
#[tokio::test(start_paused = true)]
async fn a_limit_of_n_retries_is_n_plus_one_calls() {
    for limit in [0, 1, 3] {
        let calls = Cell::new(0);
        let policy = uploader(Limits::unlimited().max_retries(limit));
        let operation = |_| {
            calls.set(calls.get() + 1);
            ready(Err::<(), u32>(calls.get()))
        };
        let error = retry(&policy, operation, DOWN).await.unwrap_err();
        assert_eq!(calls.get(), limit + 1);
        assert_eq!(error.given_up().reason, GiveUpReason::TotalRetries);
        assert_eq!(error.into_error(), Some(limit + 1), "the last error is handed out");
    }
}

/// R13.
#[tokio::test(start_paused = true)]
async fn retry_after_through_the_loop_keeps_the_limit_of_three() {
    let calls = Cell::new(0);
    let policy = uploader(Limits::unlimited().max_retries(3));
    let begun = Instant::now();
    let operation = |_| {
        calls.set(calls.get() + 1);
        ready(Err::<(), Duration>(s(2)))
    };
    let error =
        retry(&policy, operation, |asked| Failure::transient().retry_after(*asked)).await.unwrap_err();
    assert_eq!((calls.get(), error.given_up().reason.name()), (4, "total-retries"));
    assert!(begun.elapsed() >= s(6) && begun.elapsed() <= s(15), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_permanent_is_not_repeated() {
    let error =
        retry(&RetryPolicy::default(), |_| ready(Err::<(), u32>(400)), |_| Failure::permanent()).await;
    let error = error.unwrap_err();
    assert_eq!((error.given_up().reason.clone(), error.given_up().retries), (GiveUpReason::Predicate, 0));
    assert_eq!(error.to_string(), "gave up after 0 retries: predicate; last error: 400");
}

#[tokio::test(start_paused = true)]
async fn progress_within_an_attempt_makes_the_next_delay_the_first_again() {
    let begun = Instant::now();
    let mut ends = Vec::new();
    let result = exact(Limits::unlimited())
        .run(
            |attempt| {
                ends.push(begun.elapsed());
                if attempt.number() == 3 {
                    attempt.on_progress();
                }
                ready(if attempt.number() == 6 { Ok(()) } else { Err(0) })
            },
            DOWN,
        )
        .await;
    assert_eq!(result, Ok(()));
    let waits: Vec<Duration> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits, [500, 550, 500, 550, 625].map(ms));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_hangs_is_dropped_and_tried_again() {
    let begun = Instant::now();
    let result = exact(Limits::unlimited())
        .attempt_timeout(s(5))
        .run(
            |attempt| async move {
                if attempt.number() == 1 {
                    pending::<()>().await;
                }
                Ok::<_, u32>(attempt.number())
            },
            DOWN,
        )
        .await;
    assert_eq!((result, begun.elapsed()), (Ok(2), ms(5500)));
}

#[tokio::test(start_paused = true)]
async fn the_overall_time_drops_the_running_attempt_and_begins_no_wait_past_it() {
    let begun = Instant::now();
    let error = exact(Limits::unlimited()).timeout(s(7)).run(|_| pending::<Result<(), u32>>(), DOWN).await;
    let error = error.unwrap_err();
    assert_eq!((begun.elapsed(), error.last()), (s(7), &LastAttempt::TimedOut(s(7))));
    assert_eq!(error.given_up().reason, GiveUpReason::Timeout { next_sleep: None });

    let begun = Instant::now();
    let late = |_| async {
        sleep(ms(6800)).await;
        Err::<(), u32>(7)
    };
    let error = exact(Limits::unlimited()).timeout(s(7)).run(late, DOWN).await.unwrap_err();
    assert_eq!(error.given_up().reason, GiveUpReason::Timeout { next_sleep: Some(ms(500)) });
    assert_eq!((begun.elapsed(), error.given_up().retries), (ms(6800), 0));
}

#[tokio::test(start_paused = true)]
async fn a_skip_ends_the_wait_but_not_what_the_server_asked_for() {
    let skip = SkipWait::default();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let begun = Instant::now();
    let policy = RetryPolicy::default().retry_after_spread(Duration::ZERO);
    let running = RetryLoop::from_retry(policy.start_with(Clock::tokio(), JitterRng::constant(0.5)))
        .skip_wait(skip.clone())
        .on_event(move |event| seen.lock().unwrap().push(event))
        .run(
            |attempt| {
                let asked = (attempt.number() == 2).then_some(s(4));
                ready(if attempt.number() == 3 { Ok(()) } else { Err(asked) })
            },
            |asked| Failure::transient().retry_after(*asked),
        );
    let skipping = async {
        sleep(ms(10)).await;
        skip.skip();
        sleep(ms(10)).await;
        skip.skip();
    };
    let (result, ()) = tokio::join!(running, skipping);
    assert_eq!((result, begun.elapsed()), (Ok(()), ms(4010)));
    let events = events.lock().unwrap();
    assert_eq!(events.iter().filter(|event| **event == RetryEvent::Skipped).count(), 1);
    assert!(matches!(events.last(), Some(RetryEvent::Succeeded { number: 3, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_shared_budget_ends_the_loop_and_a_success_pays_back() {
    let policy = BudgetPolicy::default().capacity(2.0).per_second(0.0).per_success(1.0);
    let budget = RetryBudget::new(policy, Clock::tokio()).unwrap();
    let with_budget = || {
        let retry = uploader(Limits::unlimited()).start_with(Clock::tokio(), JitterRng::seeded(1));
        RetryLoop::from_retry(retry.budget(budget.clone()))
    };
    let error = with_budget().run(|_| ready(Err::<(), u32>(0)), DOWN).await.unwrap_err();
    assert_eq!((error.given_up().retries, error.given_up().reason.name()), (2, "budget"));
    with_budget().run(|_| ready(Ok::<(), u32>(())), DOWN).await.unwrap();
    assert_eq!(budget.available(), 1);
}

/// Every place where a loop can be dropped: in the attempt, in a wait, at the gate.
#[tokio::test(start_paused = true)]
async fn a_loop_that_is_dropped_leaves_nothing_behind() {
    let gate = RetryGate::default();
    for millis in [0, 5, 300, 2000, 20_000] {
        let attempts = Arc::new(());
        let held = attempts.clone();
        let running = RetryLoop::new(&RetryPolicy::default()).gate(gate.clone()).run(
            move |_| {
                let held = held.clone();
                async move {
                    sleep(ms(7)).await;
                    drop(held);
                    Err::<(), u32>(0)
                }
            },
            DOWN,
        );
        let dropped = tokio::time::timeout(ms(millis), running).await;
        assert!(dropped.is_err());
        assert_eq!(Arc::strong_count(&attempts), 1, "after {millis} ms");
    }
    // The seat is free: somebody gets to probe.
    let pass =
        tokio::time::timeout(s(10), gate.reenter()).await.expect("the seat was kept by a dropped loop");
    assert!(pass.is_probe());
}

#[test]
fn the_loops_future_can_be_spawned() {
    fn is_send(_: impl Send) {}
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _inside = runtime.enter();
    let gate = RetryGate::default();
    is_send(RetryLoop::new(&RetryPolicy::default()).gate(gate).run(|_| ready(Ok::<(), u32>(())), DOWN));
}

/// R7: what ends at the loop's time does not end past it.
#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_exactly_at_the_loops_time_is_made() {
    let calls = Cell::new(0);
    let fails = |_| {
        calls.set(calls.get() + 1);
        ready(Err::<(), u32>(503))
    };
    let error = exact(Limits::default()).timeout(ms(500)).run(fails, DOWN).await.unwrap_err();
    assert_eq!((calls.get(), &error.given_up().reason), (2, &GiveUpReason::Timeout { next_sleep: None }));
}

/// R22: a stream that was well for hours and then breaks is retried, one that hung for hours is not well.
#[tokio::test(start_paused = true)]
async fn a_long_attempt_begins_a_new_outage_unless_it_was_cut_short() {
    let calls = Cell::new(0);
    let long = |_| {
        calls.set(calls.get() + 1);
        let last = calls.get() == 20;
        async move {
            sleep(s(5 * 3600)).await;
            if last { Ok(()) } else { Err(503) }
        }
    };
    let policy = RetryPolicy::default().limits(Limits::default().max_retries(1));
    retry(&policy, long, DOWN).await.unwrap();
    assert_eq!(calls.get(), 20);

    let cut = RetryLoop::new(&policy).attempt_timeout(s(5 * 3600));
    let error = cut.run(|_| pending::<Result<(), u32>>(), DOWN).await.unwrap_err();
    assert_eq!(error.given_up().reason, GiveUpReason::TotalTime { next_sleep: None });
}
