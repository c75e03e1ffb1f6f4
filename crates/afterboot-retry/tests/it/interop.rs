//! Other crates' loops, driven by our decisions.

use std::cell::RefCell;
use std::iter::repeat;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afterboot_retry::{BackoffPolicy, Clock, Failure, JitterRng, Limits, Retry, RetryPolicy};
use backon::{BackoffBuilder as _, Retryable as _};
use tokio::time::Instant;

use crate::common::{ms, s};

fn start(limits: Limits) -> Retry {
    let policy = RetryPolicy::from(BackoffPolicy::uploader()).limits(limits);
    policy.start_with(Clock::tokio(), JitterRng::constant(0.5))
}

#[tokio::test(start_paused = true)]
async fn backon_takes_a_retry_as_its_backoff() {
    fn is_backoff<B: backon::Backoff>(backoff: B) -> B {
        backoff
    }
    let waits = RefCell::new(Vec::new());
    let mut calls = 0;
    let result: Result<(), &str> = (|| {
        calls += 1;
        async { Err("down") }
    })
    .retry(is_backoff(start(Limits::unlimited().max_retries(3))))
    .notify(|_, wait: Duration| waits.borrow_mut().push(wait))
    .await;
    assert_eq!(result, Err("down"));
    assert_eq!(*waits.borrow(), [ms(500), ms(550), ms(625)]);
    assert_eq!(calls, 4);
}

#[tokio::test(start_paused = true)]
async fn tokio_retry2_takes_a_retry_as_its_strategy() {
    let begun = Instant::now();
    let mut calls = 0;
    let result: Result<(), &str> =
        tokio_retry2::Retry::spawn(start(Limits::unlimited().max_retries(2)), || {
            calls += 1;
            async { tokio_retry2::RetryError::to_transient("down") }
        })
        .await;
    assert_eq!((result, calls, begun.elapsed()), (Err("down"), 3, ms(1050)));
}

/// `adjust` as backon documents it for `Retry-After`: the server's wait if there is one, else the backoff's. Its answer
/// replaces a `None`, so the limit of 3 is never heard; the 501st call succeeds, or this would not end.
#[tokio::test(start_paused = true)]
async fn retry_after_through_backons_adjust_outlives_backons_limit() {
    let mut calls = 0;
    let result: Result<u32, Option<Duration>> = (|| {
        calls += 1;
        let call = calls;
        async move { if call > 500 { Ok(call) } else { Err(Some(s(2))) } }
    })
    .retry(backon::ExponentialBuilder::default().with_max_times(3).build())
    .adjust(|asked: &Option<Duration>, wait| asked.or(wait))
    .await;
    assert_eq!(result, Ok(501));
}

#[tokio::test(start_paused = true)]
async fn our_decision_inside_backons_adjust_keeps_the_limit() {
    let retry = Rc::new(RefCell::new(start(Limits::unlimited().max_retries(3))));
    let mut calls = 0;
    let result: Result<(), Option<Duration>> = (|| {
        calls += 1;
        async { Err(Some(s(2))) }
    })
    .retry(repeat(Duration::ZERO))
    .adjust(move |asked, _| {
        let decision = retry.borrow_mut().decide(Failure::transient().retry_after(*asked));
        decision.into_result().ok().map(|wait| wait.after)
    })
    .await;
    assert_eq!((result, calls), (Err(Some(s(2))), 4));
}

/// What COMPARE.md says of it, as it is in 0.9.1.
#[tokio::test(start_paused = true)]
async fn tokio_retry2s_retry_after_reaches_its_notification_and_not_its_sleep() {
    let begun = Instant::now();
    let told = Arc::new(Mutex::new(Vec::new()));
    let notified = told.clone();
    let result: Result<(), &str> = tokio_retry2::Retry::spawn_notify(
        [ms(100)],
        || async { tokio_retry2::RetryError::to_retry_after("down", s(60)) },
        move |_: &&str, wait: Duration| notified.lock().unwrap().push(wait),
    )
    .await;
    assert_eq!((result, begun.elapsed()), (Err("down"), ms(100)));
    assert_eq!(told.lock().unwrap()[0], s(60));
}
