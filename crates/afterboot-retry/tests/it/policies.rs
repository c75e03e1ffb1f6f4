//! Schedules: their values, their edges, and what is refused.

use std::time::Duration;

use afterboot_retry::{BackoffPolicy, GatePolicy, Jitter, JitterRng, Schedule};
use proptest::prelude::*;

use crate::common::{ms, s};

fn plain(policy: &BackoffPolicy, n: u32) -> u64 {
    policy.plain_delay(n).unwrap().as_secs_f64().mul_add(1000.0, 0.5) as u64
}

#[test]
fn the_uploaders_schedule_is_the_published_one() {
    let policy = BackoffPolicy::uploader();
    let delays: Vec<u64> = (1..=13).map(|n| plain(&policy, n)).collect();
    assert_eq!(delays, [500, 550, 625, 738, 906, 1159, 1539, 2109, 2963, 4244, 6167, 8000, 8000]);
    let mut middle = JitterRng::constant(0.5);
    assert_eq!(policy.delay(1, None, &mut middle), Some(ms(500)), "the middle of the jitter is none");
}

#[test]
fn the_default_is_half_a_second_times_1_4_up_to_6_8_s() {
    let policy = BackoffPolicy::default();
    let delays: Vec<u64> = (1..=10).map(|n| plain(&policy, n)).collect();
    assert_eq!(delays, [500, 700, 980, 1372, 1921, 2689, 3765, 5271, 6800, 6800]);
    assert_eq!(policy.jitter(), Jitter::Scale { lo: 0.3, hi: 1.0 });
    assert_eq!(BackoffPolicy::builder().build().unwrap(), policy);
}

#[test]
fn fibonacci_spans_88_s_and_then_ends() {
    let policy = BackoffPolicy::fibonacci();
    let delays: Vec<u64> = (1..=10).map(|n| policy.plain_delay(n).unwrap().as_secs()).collect();
    assert_eq!(delays, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]);
    assert_eq!(delays.iter().sum::<u64>(), 88);
    assert_eq!(policy.plain_delay(11), None);
}

fn exponential(initial: Duration, base: Duration, multiplier: f64) -> Schedule {
    Schedule::Exponential { initial, base, multiplier }
}

/// R3.
#[test]
fn however_many_retries_the_cap_wins_and_nothing_overflows() {
    let edges = (0..32).flat_map(|bit| [1u32 << bit, (1u32 << bit).wrapping_sub(1), (1u32 << bit) + 1]);
    for n in edges.chain([u32::MAX - 1, u32::MAX]) {
        for multiplier in [1.0, 1.000_000_1, 1.4, 2.0, 1e300, f64::MAX] {
            for jitter in [Jitter::NONE, Jitter::EQUAL, Jitter::Decorrelated] {
                let policy = BackoffPolicy::builder()
                    .schedule(exponential(ms(10), ms(500), multiplier))
                    .max_delay(s(30))
                    .jitter(jitter)
                    .build()
                    .unwrap();
                let delay = policy.delay(n, None, &mut JitterRng::constant(0.5)).unwrap();
                assert!(delay >= ms(250) && delay <= s(30), "n {n}, × {multiplier}, {jitter:?}: {delay:?}");
            }
        }
    }
    let doubling = BackoffPolicy::builder().schedule(exponential(ms(0), s(1), 2.0)).jitter(Jitter::NONE);
    let uncapped = doubling.clone().max_delay(Duration::MAX).build().unwrap();
    assert_eq!(uncapped.plain_delay(u32::MAX), Some(Duration::MAX));
    assert_eq!(uncapped.plain_delay(21), Some(s(1 << 20)), "doubling without a cap: try 21 waits 12 days");
    assert_eq!(doubling.build().unwrap().plain_delay(u32::MAX), Some(ms(6800)));
    let base_only = BackoffPolicy::builder().schedule(exponential(ms(400), ms(0), 2.0)).build().unwrap();
    assert_eq!(base_only.plain_delay(u32::MAX), Some(ms(400)), "nothing grows, however large the power");
}

/// R4.
#[test]
fn every_bad_field_is_refused_by_its_name() {
    let refused = |schedule: Schedule, field: &str| {
        let error = BackoffPolicy::builder().schedule(schedule.clone()).build().unwrap_err();
        assert!(error.to_string().starts_with(field), "{schedule:?}: {error}");
    };
    for multiplier in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 0.999] {
        refused(exponential(ms(1), ms(1), multiplier), "schedule.multiplier");
    }
    refused(exponential(ms(0), ms(0), 2.0), "schedule.base");
    refused(Schedule::Table(Vec::new()), "schedule.table");
    refused(Schedule::Constant(Duration::ZERO), "schedule.constant");
    for jitter in [(0.5, 0.4), (-0.1, 1.0), (0.0, 1.1), (f64::NAN, 1.0), (0.0, f64::NAN), (0.0, 0.0)] {
        let jitter = Jitter::Scale { lo: jitter.0, hi: jitter.1 };
        let error = BackoffPolicy::builder().jitter(jitter).build().unwrap_err();
        assert!(error.to_string().starts_with("jitter.scale"), "{jitter:?}: {error}");
    }
    let error = BackoffPolicy::builder().jitter(Jitter::Fixed { width: s(7) }).build().unwrap_err();
    assert!(error.to_string().starts_with("jitter.fixed.width"), "{error}");
    let error = BackoffPolicy::fibonacci().to_builder().jitter(Jitter::Decorrelated).build().unwrap_err();
    assert!(error.to_string().starts_with("jitter.decorrelated"), "{error}");
    let short = |schedule| BackoffPolicy::builder().schedule(schedule).max_delay(ms(9)).build().unwrap_err();
    for schedule in
        [exponential(ms(10), ms(0), 1.0), Schedule::Constant(ms(10)), Schedule::Table(vec![ms(10), ms(1)])]
    {
        assert!(short(schedule).to_string().starts_with("max_delay: 9ms"));
    }
    let error =
        GatePolicy::builder().probe(BackoffPolicy::fibonacci()).ramp_share(f64::NAN).ramp_bounds(s(2), s(1));
    let fields: Vec<String> = error.build().unwrap_err().problems().to_vec();
    assert_eq!(fields.len(), 3, "all at once: {fields:?}");
}

#[test]
fn a_table_of_zeros_is_a_table_and_builds_again_from_what_it_says_of_itself() {
    let at_once = BackoffPolicy::builder().schedule(Schedule::Table(vec![Duration::ZERO])).build().unwrap();
    assert_eq!(at_once.to_builder().build(), Ok(at_once));
    let never = BackoffPolicy::builder().max_delay(Duration::ZERO).build().unwrap_err();
    assert_eq!(never.to_string(), "max_delay: 0ns; allowed: above 0");
}

/// R6.
#[test]
fn the_first_delay_is_initial_plus_base_and_not_its_power() {
    let policy = |initial, base, max| {
        BackoffPolicy::builder().schedule(exponential(initial, base, 7.0)).max_delay(max).build().unwrap()
    };
    assert_eq!(policy(ms(400), ms(100), s(8)).plain_delay(1), Some(ms(500)));
    assert_eq!(policy(ms(400), ms(100), ms(450)).plain_delay(1), Some(ms(450)));
    assert_eq!(policy(ms(0), ms(100), s(8)).plain_delay(0), Some(ms(100)), "0 is taken as the first");
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        (-0.2..1.3f64, -0.2..1.3f64).prop_map(|(lo, hi)| Jitter::Scale { lo, hi }),
        (0.0..=1.0f64, 0.0..=1.0f64).prop_map(|(a, b)| Jitter::Scale { lo: a.min(b), hi: a.max(b) }),
        Just(Jitter::Decorrelated),
        any_time().prop_map(|width| Jitter::Fixed { width }),
    ]
}

fn any_time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0..10_000_000_000u64).prop_map(Duration::from_nanos),
        (0..=u64::MAX, 0..1_000_000_000u32).prop_map(|(s, n)| Duration::new(s, n)),
        Just(Duration::MAX),
    ]
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        (any_time(), any_time(), prop_oneof![1.0..3.0f64, proptest::num::f64::ANY])
            .prop_map(|(initial, base, multiplier)| exponential(initial, base, multiplier)),
        proptest::collection::vec(any_time(), 0..12).prop_map(Schedule::Table),
        any_time().prop_map(Schedule::Constant),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every policy that builds: bounded, growing, never spinning for ever, and the same again from what it says of itself.
    #[test]
    fn every_policy_that_builds_keeps_its_promises(
        schedule in any_schedule(),
        max in proptest::option::of(any_time()),
        jitter in any_jitter(),
        n in any::<u32>(),
        seed in any::<u64>(),
    ) {
        let mut builder = BackoffPolicy::builder().schedule(schedule).jitter(jitter);
        if let Some(max) = max {
            builder = builder.max_delay(max);
        }
        let Ok(policy) = builder.build() else { return Ok(()) };
        prop_assert_eq!(policy.to_builder().build(), Ok(policy.clone()));

        let mut rng = JitterRng::seeded(seed);
        let cap = policy.max_delay();
        let over = if let Jitter::Fixed { width } = jitter { width / 2 + Duration::from_nanos(1) } else { Duration::ZERO };
        let mut previous = None;
        let mut last_plain = Duration::ZERO;
        let mut all_zero = true;
        for n in (1..40).chain([n, u32::MAX]) {
            let (plain, delay) = (policy.plain_delay(n), policy.delay(n, previous, &mut rng));
            prop_assert_eq!(plain.is_some(), delay.is_some());
            let (Some(plain), Some(delay)) = (plain, delay) else { continue };
            prop_assert!(plain <= cap);
            prop_assert!(delay <= cap.saturating_add(over), "{:?} above {:?}", delay, cap);
            if matches!(policy.schedule(), Schedule::Exponential { .. }) && n < 40 {
                prop_assert!(plain >= last_plain, "{:?} after {:?}", plain, last_plain);
                last_plain = plain;
            }
            all_zero &= delay.is_zero();
            previous = Some(delay);
        }
        // A schedule without an end must wait at some time, down to the step of the clock.
        let tiny = policy.plain_delay(u32::MAX).is_none_or(|last| last < Duration::from_micros(1));
        let nearly_none = matches!(jitter, Jitter::Scale { hi, .. } if hi < 1e-3);
        prop_assert!(tiny || !all_zero || nearly_none);
    }
}
