//! When a retry stops, and what it says then.

use std::time::{Duration, SystemTime};

use afterboot_retry::{
    BackoffPolicy, BudgetPolicy, ElapsedFrom, Failure, GiveUpReason, Jitter, Limits, RetryBudget,
    RetryPolicy, Schedule, parse_retry_after, parse_retry_after_dated, parse_retry_after_now,
};

use crate::common::{Hand, gives_up, ms, s, start, waits};

const FAILED: fn() -> Failure = Failure::transient;

fn uploader(limits: Limits) -> RetryPolicy {
    RetryPolicy::from(BackoffPolicy::uploader()).limits(limits)
}

/// Retries until it gives up; each sleep takes as long as asked.
fn to_the_end(policy: &RetryPolicy, lateness: Duration) -> (u32, GiveUpReason) {
    let hand = Hand::default();
    let mut retry = start(policy, &hand, 0.5);
    loop {
        match retry.decide(FAILED()).into_result() {
            Ok(wait) => hand.advance(wait.after + lateness),
            Err(given_up) => return (given_up.retries, given_up.reason),
        }
    }
}

#[test]
fn the_uploaders_hour_ends_before_its_500_retries() {
    let passing = uploader(Limits::default().sleep_may_pass_limit(true));
    assert_eq!(to_the_end(&passing, Duration::ZERO), (459, GiveUpReason::TotalTime { next_sleep: None }));
    let keeping = uploader(Limits::default());
    let expected = (458, GiveUpReason::TotalTime { next_sleep: Some(s(8)) });
    assert_eq!(to_the_end(&keeping, Duration::ZERO), expected);
}

#[test]
fn limits_are_asked_in_a_fixed_order_and_the_first_that_says_no_is_the_reason() {
    let spent = BudgetPolicy::default().capacity(1.0).per_second(0.0).per_success(0.0);
    // Each step takes one obstacle away: what is then the reason came right after it.
    let table = BackoffPolicy::builder().schedule(Schedule::Table(vec![ms(1)])).build().unwrap();
    let endless = BackoffPolicy::default();
    let limits = Limits::unlimited();
    let now_late = |limits: Limits| limits.max_elapsed(s(1));
    let all = now_late(limits.clone().max_delay_retries(1).max_retries(1));
    let asked = Some(s(7200));
    let steps = [
        (&table, all.clone(), Failure::permanent().retry_after(asked), "predicate"),
        (&table, all, FAILED().retry_after(asked), "delay-retries"),
        (&table, now_late(limits.clone().max_retries(1)), FAILED().retry_after(asked), "total-retries"),
        (&table, now_late(limits.clone()), FAILED().retry_after(asked), "total-time"),
        (&table, limits.clone().max_retry_after(s(3600)), FAILED().retry_after(asked), "table-ended"),
        (&endless, limits.clone().max_retry_after(s(3600)), FAILED().retry_after(asked), "retry-after"),
        (&endless, limits.clone().max_elapsed(ms(1010)), FAILED(), "total-time"),
        (&endless, limits.clone(), FAILED(), "budget"),
    ];
    for (backoff, limits, failure, reason) in steps {
        let hand = Hand::default();
        let budget = RetryBudget::new(spent, hand.clock()).unwrap();
        let mut retry = start(&RetryPolicy::from(backoff.clone()).limits(limits), &hand, 1.0).budget(budget);
        let _ = waits(&mut retry, FAILED());
        hand.advance(s(1));
        assert_eq!(gives_up(&mut retry, failure).reason.name(), reason);
    }
}

/// R5.
#[test]
fn the_longest_duration_is_no_limit_and_overflows_nothing() {
    let limits =
        Limits::default().max_elapsed(Duration::MAX).max_retry_after(Duration::MAX).max_retries(u32::MAX);
    let backoff = BackoffPolicy::builder()
        .schedule(Schedule::Constant(Duration::MAX))
        .jitter(Jitter::NONE)
        .build()
        .unwrap();
    let policy = RetryPolicy::from(backoff).limits(limits).retry_after_spread(Duration::MAX);
    let hand = Hand::default();
    let mut retry = start(&policy, &hand, 1.0);
    assert_eq!(waits(&mut retry, FAILED()).after, Duration::MAX);
    hand.advance(s(1 << 33));
    assert_eq!(waits(&mut retry, FAILED()).after, Duration::MAX);
    assert_eq!(waits(&mut retry, FAILED().retry_after(Duration::MAX)).after, Duration::MAX);
}

/// R7.
#[test]
fn a_sleep_that_would_end_after_the_limit_is_not_begun() {
    let hand = Hand::default();
    let limits = Limits::unlimited().max_elapsed(ms(10_000));
    let mut retry = start(&uploader(limits.clone()), &hand, 0.5);
    hand.advance(ms(9_500));
    assert_eq!(waits(&mut retry, FAILED()).after, ms(500), "one that ends right at the limit is");
    hand.advance(ms(1));
    let given_up = gives_up(&mut retry, FAILED());
    assert_eq!(given_up.reason, GiveUpReason::TotalTime { next_sleep: Some(ms(550)) });
    assert_eq!((given_up.retries, given_up.elapsed), (1, ms(9_501)), "what was not done is not counted");

    let mut passing = start(&uploader(limits.sleep_may_pass_limit(true)), &hand, 0.5);
    hand.advance(ms(9_999));
    assert_eq!(waits(&mut passing, FAILED()).after, ms(500));
    hand.advance(ms(500));
    assert_eq!(gives_up(&mut passing, FAILED()).reason, GiveUpReason::TotalTime { next_sleep: None });
}

/// R8.
#[test]
fn retry_after_is_waited_with_spread_or_ignored_or_ends_the_retry_at_once() {
    let now = SystemTime::UNIX_EPOCH + s(1_445_412_400);
    let cases = [
        ("120", Some(s(120))),
        (" 0\t", Some(s(0))),
        ("Wed, 21 Oct 2015 07:28:00 GMT", Some(s(80))),
        ("Wednesday, 21-Oct-15 07:28:00 GMT", Some(s(80))),
        ("Wed Oct 21 07:28:00 2015", Some(s(80))),
        ("Wed, 21 Oct 2015 07:20:00 GMT", Some(s(0))),
        ("-5", None),
        ("+5", None),
        ("1e9", None),
        ("1.5", None),
        ("", None),
        ("soon", None),
        ("１２０", None),
        ("2015-10-21T07:28:00Z", None),
        ("120, 120", None),
    ];
    for (value, asked) in cases {
        assert_eq!(parse_retry_after(value, now), asked, "{value:?}");
        let wait = |unit| {
            waits(&mut start(&RetryPolicy::default(), &Hand::default(), unit), FAILED().retry_after(asked))
        };
        match asked {
            Some(asked) => assert_eq!((wait(0.0).after, wait(1.0).after), (asked, asked + s(3)), "{value:?}"),
            None => assert_eq!(
                (wait(0.0).after, wait(1.0).after),
                (ms(150), ms(500)),
                "{value:?}: its own schedule"
            ),
        }
        assert_eq!(wait(1.0).asked, asked);
    }
    for (value, limits) in [
        ("99999999999", Limits::default()),
        ("99999999999999999999999999", Limits::default()),
        ("99999999999999999999999999", Limits::unlimited().max_elapsed(s(3600)).sleep_may_pass_limit(true)),
        ("3601", Limits::default()),
        ("61", Limits::unlimited().max_elapsed(s(60)).sleep_may_pass_limit(true)),
        ("59", Limits::unlimited().max_elapsed(s(60))), // with its spread of 3 s
    ] {
        let asked = parse_retry_after(value, now);
        let mut retry = start(&RetryPolicy::default().limits(limits), &Hand::default(), 1.0);
        let given_up = gives_up(&mut retry, FAILED().retry_after(asked));
        assert_eq!(Some(given_up.reason), asked.map(|asked| GiveUpReason::RetryAfter { asked }), "{value:?}");
    }
}

/// R8: the server's clock tells what its date means, whatever ours says.
#[test]
fn a_retry_after_date_is_counted_from_the_date_of_its_own_answer() {
    let (date, later) = ("Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:02 GMT");
    let at = SystemTime::UNIX_EPOCH + s(1_445_412_480);
    for now in [at, at - s(3000), at + s(3000), SystemTime::UNIX_EPOCH] {
        assert_eq!(parse_retry_after_dated(later, Some(date), now), Some(s(2)));
        assert_eq!(parse_retry_after_dated(later, Some(" \t Wed Oct 21 07:28:00 2015 "), now), Some(s(2)));
        assert_eq!(parse_retry_after_dated(date, Some(later), now), Some(s(0)));
        assert_eq!(parse_retry_after_dated("120", Some(date), now), Some(s(120)));
        assert_eq!(parse_retry_after_dated("soon", Some(date), now), None);
    }
    assert_eq!(parse_retry_after_now("120"), Some(s(120)));
    for unreadable in [None, Some(""), Some("now"), Some("1445412480")] {
        let asked = parse_retry_after_dated(later, unreadable, at - s(60));
        assert_eq!(asked, Some(s(62)), "{unreadable:?}: by our own clock");
    }
}

/// R10: the wall clock is read in one place, to turn an HTTP-date into a time from now on.
#[test]
fn a_step_of_the_wall_clock_between_tries_changes_nothing() {
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    let decide = |steps: [i64; 2]| {
        let hand = Hand::default();
        let mut retry = start(&RetryPolicy::default(), &hand, 0.0);
        let mut wall = SystemTime::UNIX_EPOCH + s(1_445_412_400);
        let mut all = Vec::new();
        for step in steps {
            let wait = waits(
                &mut retry,
                FAILED().retry_after(if all.is_empty() { parse_retry_after(date, wall) } else { None }),
            );
            all.push((wait, retry.elapsed()));
            hand.advance(wait.after);
            let hour = s(step.unsigned_abs());
            wall = if step < 0 { wall - hour } else { wall + hour };
        }
        all
    };
    assert_eq!(decide([0, 0]), decide([3600, -3600]));
    assert_eq!(decide([0, 0]), decide([-3600, 3600]));
}

/// R11.
#[test]
fn progress_makes_delays_short_again_and_the_total_stays_bounded() {
    let hand = Hand::default();
    let limits = Limits::default().max_delay_retries(3).elapsed_from(ElapsedFrom::LastProgress);
    let mut retry = start(&uploader(limits), &hand, 0.5);
    let mut flaps = 0;
    let given_up = loop {
        let delays = [waits(&mut retry, FAILED()).after, waits(&mut retry, FAILED()).after];
        assert_eq!(delays, [ms(500), ms(550)], "flap {flaps}");
        hand.advance(s(120));
        retry.on_progress();
        flaps += 1;
        if flaps == 250 {
            break gives_up(&mut retry, FAILED());
        }
    };
    assert_eq!((given_up.reason, given_up.retries), (GiveUpReason::TotalRetries, 500));
    assert!(hand.clock().now() > s(8 * 3600), "it flapped for hours");
}

#[test]
fn total_time_counts_from_where_it_is_told() {
    let late = |from, progress_at: Option<u64>| {
        let hand = Hand::default();
        let limits = Limits::unlimited().max_elapsed(s(60)).elapsed_from(from).sleep_may_pass_limit(true);
        let mut retry = start(&uploader(limits), &hand, 0.5);
        hand.advance(s(50)); // the first try
        let _ = waits(&mut retry, FAILED());
        if let Some(at) = progress_at {
            hand.advance(s(at));
            retry.on_progress();
        }
        hand.advance(s(20));
        matches!(retry.decide(FAILED()), afterboot_retry::Decision::GiveUp(_))
    };
    assert!(late(ElapsedFrom::Creation, None));
    assert!(late(ElapsedFrom::Creation, Some(1)), "progress does not prolong it");
    assert!(!late(ElapsedFrom::FirstFailure, None));
    assert!(late(ElapsedFrom::FirstFailure, Some(40)));
    assert!(late(ElapsedFrom::LastProgress, None), "from the creation where there was none");
    assert!(!late(ElapsedFrom::LastProgress, Some(40)));
}

/// R12.
#[test]
fn n_retries_are_n_plus_one_calls() {
    for limit in [0, 1, 2, 7] {
        let mut retry = start(&uploader(Limits::unlimited().max_retries(limit)), &Hand::default(), 0.5);
        let mut calls = 0;
        let given_up = loop {
            calls += 1;
            if let afterboot_retry::Decision::GiveUp(given_up) = retry.decide(FAILED()) {
                break given_up;
            }
        };
        assert_eq!((calls, given_up.reason), (limit + 1, GiveUpReason::TotalRetries));
    }
    let by_iterator = start(&uploader(Limits::unlimited().max_delay_retries(7)), &Hand::default(), 0.5);
    assert_eq!(by_iterator.count(), 7);
}

/// R17.
#[test]
fn late_timers_count_by_the_clock_and_not_by_the_delays_asked_for() {
    let policy = uploader(Limits::default().sleep_may_pass_limit(true));
    let (retries, reason) = to_the_end(&policy, s(600));
    assert_eq!(
        (retries, reason),
        (6, GiveUpReason::TotalTime { next_sleep: None }),
        "six sleeps of ten minutes"
    );
}

#[test]
fn giving_up_reads_as_a_sentence() {
    let hand = Hand::default();
    let mut retry = start(&uploader(Limits::unlimited().max_elapsed(ms(900))), &hand, 0.5);
    let _ = waits(&mut retry, FAILED());
    hand.advance(ms(500));
    let given_up = gives_up(&mut retry, FAILED());
    let expected = "gave up after 1 retry: total-time (the next sleep, 550ms, would end past the limit)";
    assert_eq!(given_up.to_string(), expected);
    let given_up = gives_up(&mut retry, FAILED().retry_after(s(7200)));
    let expected = "gave up after 1 retry: retry-after (the server asked for 7200s, which is beyond a limit)";
    assert_eq!(given_up.to_string(), expected);
}

/// R22: the default time in all is an hour, and this is no outage of five.
#[test]
fn a_failure_after_hours_of_health_is_a_new_outage() {
    for from in [ElapsedFrom::Creation, ElapsedFrom::FirstFailure, ElapsedFrom::LastProgress] {
        let hand = Hand::default();
        let limits = Limits::default().elapsed_from(from).max_delay_retries(2);
        let mut retry = start(&uploader(limits), &hand, 0.5);
        for outage in 0..300 {
            hand.advance(s(5 * 3600));
            let waits = [waits(&mut retry, FAILED()), waits(&mut retry, FAILED())];
            assert_eq!(waits.map(|wait| wait.after), [ms(500), ms(550)], "{from:?}, outage {outage}");
            assert_eq!(waits.map(|wait| (wait.delay_retry, wait.retry)), [(1, 1), (2, 2)]);
            hand.advance(ms(550));
            retry.on_progress();
        }
        assert!(retry.elapsed() < s(3600), "{from:?}");
    }
}

/// R22: an hour is the span, and the wait before an attempt is no part of its life.
#[test]
fn an_attempt_that_lived_no_longer_than_the_span_belongs_to_the_outage() {
    let mut hand = Hand::default();
    let limits = Limits::default().sleep_may_pass_limit(true);
    let mut retry = start(&uploader(limits.clone()), &hand, 0.5);
    hand.advance(s(3600));
    assert_eq!(gives_up(&mut retry, FAILED()).reason, GiveUpReason::TotalTime { next_sleep: None });

    let mut retry = start(&uploader(limits.clone().new_outage_after(s(10))), &hand, 0.5);
    let wait = waits(&mut retry, FAILED().retry_after(s(600)));
    hand.advance(wait.after + s(10));
    assert_eq!(waits(&mut retry, FAILED()).retry, 2);
    hand.advance(s(11));
    assert_eq!(waits(&mut retry, FAILED()).retry, 1);

    hand = Hand::default();
    let mut never = start(&uploader(limits.new_outage_after(Duration::MAX)), &hand, 0.5);
    hand.advance(s(5 * 3600));
    assert_eq!(gives_up(&mut never, FAILED()).reason, GiveUpReason::TotalTime { next_sleep: None });
}

#[test]
fn an_unlimited_retry_is_ended_by_neither_number_nor_time_nor_what_the_server_asks_for() {
    let hand = Hand::default();
    let mut retry = start(&uploader(Limits::unlimited()), &hand, 0.5);
    for _ in 0..600 {
        hand.advance(s(60) + waits(&mut retry, FAILED()).after);
    }
    assert_eq!(retry.retries(), 600);
    assert!(waits(&mut retry, FAILED().retry_after(s(86_400))).after >= s(86_400));
}

#[test]
fn what_never_comes_is_not_given_in_seconds() {
    let budget = GiveUpReason::Budget { refilled_in: Duration::MAX };
    assert_eq!(budget.to_string(), "budget (does not refill with time)");
    let budget = GiveUpReason::Budget { refilled_in: s(2) };
    assert_eq!(budget.to_string(), "budget (the next retry is available in 2s)");
    let next_sleep = Some(Duration::MAX);
    let never = "(the next sleep would never end)";
    assert_eq!(GiveUpReason::TotalTime { next_sleep }.to_string(), format!("total-time {never}"));
    assert_eq!(GiveUpReason::Timeout { next_sleep }.to_string(), format!("timeout {never}"));
}
