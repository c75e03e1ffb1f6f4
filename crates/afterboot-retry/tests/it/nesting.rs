//! A retry inside a retry.

use std::cell::Cell;
use std::future::ready;
use std::time::Duration;

use afterboot_retry::{
    BudgetPolicy, Clock, Failure, GiveUpReason, JitterRng, Limits, RetryBudget, RetryError, RetryLoop,
    RetryPolicy, is_nested, retry,
};
use tokio::time::Instant;

use crate::common::s;

fn four_calls() -> RetryPolicy {
    RetryPolicy::default().limits(Limits::unlimited().max_retries(3)).retry_after_spread(Duration::ZERO)
}

const TRANSIENT: fn(&RetryError<Option<Duration>>) -> Failure = |_| Failure::transient();

#[tokio::test(start_paused = true)]
async fn three_layers_of_four_calls_are_four_calls_and_not_64() {
    let calls = Cell::new(0);
    let call = || {
        calls.set(calls.get() + 1);
        ready(Err::<(), u32>(503))
    };
    let policy = four_calls();
    let inner = || retry(&policy, |_| call(), |_| Failure::transient());
    let middle = || retry(&policy, |_| inner(), |_| Failure::transient());
    let error = retry(&policy, |_| middle(), |_| Failure::transient()).await.unwrap_err();
    assert_eq!(calls.get(), 4);
    assert_eq!(error.given_up().reason, GiveUpReason::TotalRetries);
    let middle = error.into_error().unwrap();
    assert_eq!(middle.given_up().reason, GiveUpReason::Nested);
    let inner = middle.into_error().unwrap();
    assert_eq!((inner.given_up().reason.clone(), inner.given_up().retries), (GiveUpReason::Nested, 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_server_asks_of_the_inner_retry_is_waited_by_the_outer_one() {
    let begun = Instant::now();
    let policy = four_calls();
    let first = Cell::new(true);
    let call = || ready(if first.replace(false) { Err(Some(s(60))) } else { Ok(()) });
    let inner = || retry(&policy, |_| call(), |asked| Failure::transient().retry_after(*asked));
    let result = retry(&policy, |_| inner(), TRANSIENT).await;
    assert!(result.is_ok());
    assert_eq!(begun.elapsed(), s(60));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_says_so_in_the_inner_retry_too() {
    let policy = four_calls();
    let inner = || retry(&policy, |_| ready(Err::<(), Option<Duration>>(None)), |_| Failure::permanent());
    let error = retry(
        &policy,
        |_| inner(),
        |inner: &RetryError<_>| Failure::transient_if(inner.given_up().reason == GiveUpReason::Nested),
    );
    let error = error.await.unwrap_err();
    assert_eq!((error.given_up().reason.clone(), error.given_up().retries), (GiveUpReason::Predicate, 0));
    assert_eq!(error.into_error().unwrap().given_up().reason, GiveUpReason::Predicate);
}

#[tokio::test(start_paused = true)]
async fn an_independent_retry_retries_inside_another() {
    let calls = Cell::new(0);
    let policy = four_calls();
    let inner = || {
        RetryLoop::new(&policy).independent().run(
            |_| {
                calls.set(calls.get() + 1);
                ready(Err::<(), Option<Duration>>(None))
            },
            |_| Failure::transient(),
        )
    };
    retry(&policy, |_| inner(), TRANSIENT).await.unwrap_err();
    assert_eq!(calls.get(), 16);
}

#[tokio::test(start_paused = true)]
async fn nesting_is_seen_inside_an_attempt_and_only_there() {
    assert!(!is_nested());
    let seen = retry(
        &four_calls(),
        |_| async {
            let spawned = tokio::spawn(async { is_nested() }).await.unwrap();
            Ok::<_, u32>((is_nested(), spawned))
        },
        |_| Failure::transient(),
    )
    .await;
    assert_eq!(seen, Ok((true, false)));
    assert!(!is_nested());
}

/// R21: the inner loops tried once and paid for nothing.
#[tokio::test(start_paused = true)]
async fn a_success_inside_nested_loops_is_returned_to_their_budget_once() {
    let policy = BudgetPolicy::default().capacity(10.0).per_second(0.0).per_success(1.0);
    let budget = RetryBudget::new(policy, Clock::new(|| Duration::ZERO)).unwrap();
    for _ in 0..5 {
        budget.withdraw().unwrap();
    }
    let paying = || {
        let retry = four_calls().start_with(Clock::tokio(), JitterRng::constant(0.0));
        RetryLoop::from_retry(retry.budget(budget.clone()))
    };
    let calls = Cell::new(0);
    let call = || {
        calls.set(calls.get() + 1);
        ready(if calls.get() == 1 { Err(503) } else { Ok(()) })
    };
    let inner = || paying().run(|_| call(), |_: &u32| Failure::transient());
    let middle = || paying().run(|_| inner(), |_| Failure::transient());
    paying().run(|_| middle(), |_| Failure::transient()).await.unwrap();
    assert_eq!((calls.get(), budget.available()), (2, 5), "one retry was paid for, one success returned");

    paying().independent().run(|_| call(), |_: &u32| Failure::transient()).await.unwrap();
    assert_eq!(budget.available(), 6, "a loop that retries for itself is returned its own");
}
