//! What holds for a retry under any limits, whatever the clock does and the server asks.

use std::time::Duration;

use afterboot_retry::{ElapsedFrom, Failure, GiveUpReason, JitterRng, Limits, RetryPolicy};
use proptest::option::of;
use proptest::prelude::*;

use crate::common::{Hand, ms};

#[derive(Debug, Clone)]
enum Step {
    Fails { after_ms: u64, asked_ms: Option<u64> },
    Progresses,
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let from = prop_oneof![
        Just(ElapsedFrom::Creation),
        Just(ElapsedFrom::FirstFailure),
        Just(ElapsedFrom::LastProgress)
    ];
    (of(0..6u32), of(0..12u32), of(0..60_000u64), of(0..30_000u64), from, any::<bool>()).prop_map(
        |(delay_retries, retries, elapsed, asked, from, may_pass)| {
            let mut limits = Limits::unlimited().elapsed_from(from).sleep_may_pass_limit(may_pass);
            limits.max_delay_retries = delay_retries;
            limits.max_retries = retries;
            limits.max_elapsed = elapsed.map(ms);
            limits.max_retry_after = asked.map(ms);
            limits
        },
    )
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let fails =
        (0..5_000u64, of(0..40_000u64)).prop_map(|(after_ms, asked_ms)| Step::Fails { after_ms, asked_ms });
    proptest::collection::vec(prop_oneof![5 => fails, 1 => Just(Step::Progresses)], 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_retry_stays_within_its_limits_and_every_no_is_true(
        limits in any_limits(),
        steps in any_steps(),
        seed in any::<u64>(),
    ) {
        let hand = Hand::default();
        let policy = RetryPolicy::default().limits(limits.clone());
        let mut retry = policy.start_with(hand.clock(), JitterRng::seeded(seed));
        for step in steps {
            let Step::Fails { after_ms, asked_ms } = step else {
                retry.on_progress();
                continue;
            };
            hand.advance(ms(after_ms));
            let (asked, before) = (asked_ms.map(ms), retry.clone());
            match retry.decide(Failure::transient().retry_after(asked)).into_result() {
                Ok(wait) => {
                    let elapsed = retry.elapsed();
                    prop_assert!(limits.max_delay_retries.is_none_or(|most| wait.delay_retry <= most));
                    prop_assert!(limits.max_retries.is_none_or(|most| wait.retry <= most));
                    prop_assert!(limits.max_elapsed.is_none_or(|most| elapsed < most));
                    let ends = elapsed + if limits.sleep_may_pass_limit { asked.unwrap_or_default() } else { wait.after };
                    prop_assert!(limits.max_elapsed.is_none_or(|most| ends <= most), "{:?} past the limit", wait);
                    match asked {
                        Some(asked) => {
                            prop_assert!(wait.after >= asked, "waited in full");
                            prop_assert!(wait.after <= asked + policy.retry_after_spread);
                            prop_assert!(limits.max_retry_after.is_none_or(|most| asked <= most));
                        }
                        None => prop_assert!(wait.after <= policy.backoff.max_delay()),
                    }
                    hand.advance(wait.after);
                }
                Err(given_up) => {
                    prop_assert_eq!((given_up.delay_retries, given_up.retries), (before.delay_retries(), before.retries()));
                    let elapsed = given_up.elapsed;
                    let past = |sleep: Duration| limits.max_elapsed.is_some_and(|most| elapsed + sleep > most);
                    let true_no = match given_up.reason {
                        GiveUpReason::DelayRetries => limits.max_delay_retries == Some(given_up.delay_retries),
                        GiveUpReason::TotalRetries => limits.max_retries == Some(given_up.retries),
                        GiveUpReason::TotalTime { next_sleep: None } => {
                            limits.max_elapsed.is_some_and(|most| elapsed >= most)
                        }
                        GiveUpReason::TotalTime { next_sleep: Some(sleep) } => past(sleep) && asked.is_none(),
                        GiveUpReason::RetryAfter { asked: told } => {
                            let beyond = limits.max_retry_after.is_some_and(|most| told > most);
                            asked == Some(told) && (beyond || past(told + policy.retry_after_spread))
                        }
                        _ => false,
                    };
                    prop_assert!(true_no, "{}", given_up);
                    return Ok(());
                }
            }
        }
    }
}
