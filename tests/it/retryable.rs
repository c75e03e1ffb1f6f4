//! Tasks that are tried again. Feature `retry`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use afterboot::retry::{BackoffPolicy, Jitter, Limits, RetryPolicy, Schedule, is_nested};
use afterboot::{CancelReason, Governor, Outcome, Task};
use tokio::time::sleep;

use crate::common::{fast, ms, secs};

/// Every wait one second, no jitter.
fn each_second(retries: u32) -> RetryPolicy {
    let backoff = BackoffPolicy::builder().schedule(Schedule::Constant(secs(1))).jitter(Jitter::NONE);
    RetryPolicy::from(backoff.build().unwrap()).limits(Limits::default().max_retries(retries))
}

/// Fails until the call of this number, counted from 1.
fn until(call: u32) -> (Arc<AtomicU32>, impl FnMut() -> std::future::Ready<Result<u32, String>> + Send) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let run = move || {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        std::future::ready(if number >= call { Ok(number) } else { Err(format!("no {number}")) })
    };
    (calls, run)
}

/// I32: as often as the policy says, after the waits it says, and the report counts the attempts.
#[tokio::test(start_paused = true)]
async fn a_retryable_task_is_tried_until_it_completes() {
    let governor = fast(1);
    let (calls, run) = until(3);
    let task = governor.govern(Task::retryable("flaky", run, each_second(5)));
    let report = governor.report().finished().await;
    assert_eq!(*task.wait().await.unwrap(), 3);
    assert_eq!((calls.load(Ordering::SeqCst), report.tasks[0].attempts), (3, 3));
    let ran = report.tasks[0].ran().unwrap();
    assert!(ran >= secs(2) && ran < ms(2_020), "{ran:?}");
}

/// I32: it gives up as the policy says, with the last error and the limit.
#[tokio::test(start_paused = true)]
async fn a_retryable_task_gives_up_with_its_last_error_and_the_limit() {
    let governor = fast(1);
    let (calls, run) = until(u32::MAX);
    let error = governor.govern(Task::retryable("down", run, each_second(2))).await.unwrap_err();
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let text = error.to_string();
    assert!(error.is_failed() && text.contains("no 3; gave up after 2 retries"), "{text}");
    assert_eq!(std::error::Error::source(&error).unwrap().source().unwrap().to_string(), "no 3");
}

/// I32, I2: between two attempts it holds no slot, and takes its turn again.
#[tokio::test(start_paused = true)]
async fn the_wait_between_two_attempts_holds_no_slot() {
    let governor = fast(1);
    let (_, run) = until(4);
    let flaky = governor.govern(Task::retryable("flaky", run, each_second(5)));
    let other = governor.govern(Task::new("other", || sleep(ms(1_500))));
    sleep(ms(500)).await;
    assert_eq!((governor.snapshot().resting, governor.snapshot().running.len()), (1, 1));
    other.wait().await.unwrap();
    flaky.wait().await.unwrap();
    let report = governor.report().finished().await;
    // The second attempt was due after 1 s and waited for the slot until 1.5 s.
    let ended = report.task("flaky").unwrap().finished.unwrap();
    assert!(ended >= ms(3_500) && ended < ms(3_550), "{report}");
}

/// I9, I32: a demand skips the wait, each time.
#[tokio::test(start_paused = true)]
async fn a_demand_skips_the_wait_between_two_attempts() {
    let governor = fast(1);
    let (calls, run) = until(3);
    let task = governor.govern(Task::retryable("flaky", run, each_second(5)).idle());
    for call in 1..=3 {
        drop(task.demand());
        sleep(ms(10)).await;
        assert_eq!(calls.load(Ordering::SeqCst), call);
    }
    assert!(task.is_finished());
}

/// I11, I32: one limit for all, one for each attempt.
#[tokio::test(start_paused = true)]
async fn limits_hold_for_each_attempt_and_for_all_of_them() {
    let governor = fast(2);
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let slow = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        sleep(secs(60))
    };
    let each = governor.govern(Task::retryable("each", slow, each_second(2)).attempt_timeout(secs(3)));
    let (_, never) = until(u32::MAX);
    let all = governor.govern(Task::retryable("all", never, each_second(500)).timeout(ms(2_500)));
    let error = each.await.unwrap_err().to_string();
    assert!(error.contains("the attempt took longer than 3s; gave up after 2 retries"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert!(all.await.unwrap_err().is_timed_out());
    let report = governor.report().finished().await;
    let ran = report.task("all").unwrap().ran().unwrap();
    assert!(ran >= ms(2_500) && ran < ms(2_520), "{ran:?}");
    let ran = report.task("each").unwrap().ran().unwrap();
    assert!(ran >= secs(11) && ran < ms(11_050), "{ran:?}");
}

/// I14, I10: at rest it can be cancelled, shut down, and skips what comes after it.
#[tokio::test(start_paused = true)]
async fn a_resting_task_can_be_ended() {
    let governor = fast(1);
    let task = |name: &'static str| Task::retryable(name, until(u32::MAX).1, each_second(500));
    let asked = governor.govern(task("asked"));
    let after = governor.govern(Task::new("after", || async {}).after(&asked));
    governor.govern(task("shut down").idle());
    sleep(ms(5_200)).await;
    asked.cancel();
    assert!(asked.is_finished() && after.is_finished());
    let report = governor.shutdown(secs(1)).await;
    let ends: Vec<_> = report.tasks.iter().map(|task| task.outcome.clone().unwrap()).collect();
    assert_eq!(ends[0], Outcome::Cancelled(CancelReason::Requested));
    assert_eq!(ends[1].word(), "skipped");
    assert_eq!(ends[2], Outcome::Cancelled(CancelReason::Shutdown));
    assert!(report.tasks[2].attempts >= 1);
    sleep(secs(5)).await;
    assert_eq!(crate::common::alive(), 0);
}

/// I7: a panic is a bug, not a failure.
#[tokio::test(start_paused = true)]
async fn a_panic_is_not_retried() {
    crate::common::silence();
    let governor = fast(1);
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let run = move || {
        let counted = Arc::clone(&counted);
        async move {
            assert!(counted.fetch_add(1, Ordering::SeqCst) > 9, "boom");
        }
    };
    assert!(governor.govern(Task::retryable("panics", run, each_second(5))).await.unwrap_err().is_panicked());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// I32: loops inside an attempt see that somebody further out retries.
#[tokio::test(start_paused = true)]
async fn a_retry_inside_an_attempt_does_not_multiply() {
    let governor = fast(1);
    let nested =
        governor.govern(Task::retryable("nested", || async { Ok::<_, String>(is_nested()) }, each_second(1)));
    let plain = governor.govern(Task::value("plain", || async { is_nested() }));
    assert!(*nested.await.unwrap() && !*plain.await.unwrap());
}

/// I16: `started()` counts a task once, `finished()` waits for its last attempt.
#[tokio::test(start_paused = true)]
async fn the_report_waits_for_the_last_attempt() {
    let governor = Governor::builder().build().unwrap();
    governor.govern(Task::retryable("flaky", until(3).1, each_second(5)));
    governor.govern(Task::new("other", || async {}));
    let run = governor.report();
    assert!(run.started().await.taken < secs(1));
    assert!(run.finished().await.taken >= secs(2));
}

/// I21, I8
#[tokio::test(start_paused = true)]
async fn an_attempt_timeout_for_a_task_that_is_not_retried_is_invalid() {
    let governor = fast(1);
    let plain = governor.govern(Task::new("plain", || async {}).attempt_timeout(secs(1)));
    let zero = Task::retryable("zero", until(1).1, each_second(1)).attempt_timeout(Duration::ZERO);
    for error in [plain.await.unwrap_err(), governor.govern(zero).await.map(drop).unwrap_err()] {
        assert!(error.is_invalid() && error.to_string().contains("attempt_timeout"), "{error}");
    }
}

/// I32: what if. Between two attempts the replayed task holds no slot either, and takes its turn again.
#[cfg(feature = "replay")]
#[tokio::test(start_paused = true)]
async fn a_replayed_task_rests_between_its_attempts_and_takes_its_turn_again() {
    use crate::replay::{find, order, recorded, recorder, replayed_times, slow, times};

    for concurrency in [1, 3] {
        let governor = recorder(slow(concurrency));
        let (_, run) = until(4);
        governor.govern(Task::retryable("flaky", run, each_second(5)));
        for n in 0..40_u64 {
            governor.govern(Task::new(format!("{n}"), move || sleep(ms(20 + 13 * n % 50))));
        }
        let report = governor.report().finished().await;
        let flaky = report.task("flaky").unwrap();
        let rests: Vec<_> = flaky.segments.iter().map(|segment| segment.rests).collect();
        assert_eq!(rests, [Some(secs(1)), Some(secs(1)), Some(secs(1)), None]);
        let replay = recorded(&report);
        assert!(!replay.is_estimate);
        assert_eq!(replay.start_order, order(&report));
        assert_eq!(replayed_times(&replay), times(&report));
        // With a slot for everyone it only waits for its own rests.
        let alone = report.replay(&slow(50)).unwrap();
        let ran = find(&alone, "flaky").finished.unwrap() - find(&alone, "flaky").started.unwrap();
        assert!((secs(3)..ms(3_100)).contains(&ran), "{ran:?}");
    }
}

/// I12, I32: whatever makes an idle task wait, somebody looks whether it is quiet.
#[tokio::test(start_paused = true)]
async fn a_demanded_idle_task_that_is_tried_again_waits_for_the_quiet_window_and_not_for_the_timeout() {
    let governor = Governor::builder().quiet(secs(5)).gate_timeout(secs(45)).build().unwrap();
    let (_, run) = until(2);
    let task = governor.govern(Task::retryable("flaky", run, each_second(5)).idle());
    assert_eq!(*task.demand().await.unwrap(), 2);
    let report = governor.report().finished().await;
    assert!(report.taken >= secs(6) && report.taken < ms(6_100), "{}", report);
}
