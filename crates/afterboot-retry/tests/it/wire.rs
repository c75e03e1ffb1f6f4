//! Policies and rules as they come from a server. Without `serde` there is nothing to claim here.
#![cfg(feature = "serde")]

use afterboot_retry::{
    BackoffPolicy, BudgetPolicy, CodeAction, CodeRules, ElapsedFrom, GatePolicy, GiveUpReason, GivenUp,
    Jitter, Limits, RetryPolicy, Schedule,
};
use serde_json::{from_value, json, to_value};

use crate::common::{ms, s};

#[test]
fn a_policy_is_read_with_defaults_for_what_is_left_out() {
    let policy: RetryPolicy = from_value(json!({})).unwrap();
    assert_eq!(policy, RetryPolicy::default());

    let policy: RetryPolicy = from_value(json!({
        "backoff": {
            "schedule": { "exponential": { "initial_ms": 400, "base_ms": 100, "multiplier": 1.5 } },
            "max_delay_ms": 8000,
            "jitter": { "fixed": { "width_ms": 100 } },
        },
        "limits": { "max_retries": 7, "max_elapsed_ms": null, "elapsed_from": "last_progress" },
        "retry_after_spread_ms": 1500.5,
    }))
    .unwrap();
    assert_eq!(policy.backoff, BackoffPolicy::uploader());
    assert_eq!((policy.limits.max_retries, policy.limits.max_elapsed), (Some(7), None));
    assert_eq!(policy.limits.elapsed_from, ElapsedFrom::LastProgress);
    assert_eq!(policy.limits.max_retry_after, Limits::default().max_retry_after);
    assert_eq!(policy.retry_after_spread, ms(1500) + std::time::Duration::from_micros(500));
}

#[test]
fn what_is_written_is_read_back() {
    for backoff in [
        BackoffPolicy::default(),
        BackoffPolicy::uploader(),
        BackoffPolicy::fibonacci(),
        BackoffPolicy::builder()
            .schedule(Schedule::Constant(ms(3)))
            .jitter(Jitter::Decorrelated)
            .build()
            .unwrap(),
    ] {
        let policy = RetryPolicy::from(backoff).limits(Limits::unlimited().max_elapsed(s(9)));
        assert_eq!(from_value::<RetryPolicy>(to_value(&policy).unwrap()).unwrap(), policy);
    }
    let rules = CodeRules::builder().skip([416]).limit(404, 5).fixed(429, 5000).build().unwrap();
    assert_eq!(from_value::<CodeRules>(to_value(&rules).unwrap()).unwrap(), rules);
    let gate = GatePolicy::builder().ramp_share(0.5).build().unwrap();
    assert_eq!(from_value::<GatePolicy>(to_value(&gate).unwrap()).unwrap(), gate);
    assert_eq!(from_value::<BudgetPolicy>(json!({ "capacity": 5 })).unwrap().per_second, 10.0);
}

#[test]
fn what_does_not_build_is_not_read() {
    let refused = |json: serde_json::Value, field: &str| {
        let error = from_value::<BackoffPolicy>(json).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    };
    refused(
        json!({ "schedule": { "exponential": { "base_ms": 1, "multiplier": 0.5 } } }),
        "schedule.multiplier",
    );
    refused(json!({ "schedule": { "table_ms": [] } }), "schedule.table");
    refused(json!({ "jitter": { "scale": { "lo": 1.0, "hi": 0.5 } } }), "jitter.scale");
    refused(json!({ "max_delay_ms": -1 }), "allowed: 0 or more");
    refused(json!({ "max_delay_ms": 0 }), "max_delay");
    assert!(from_value::<CodeRules>(json!({ "skip_floor_ms": 0 })).is_err());
    assert!(from_value::<GatePolicy>(json!({ "min_ramp_ms": 2, "max_ramp_ms": 1 })).is_err());
}

#[test]
fn rules_from_a_server_classify() {
    let rules: CodeRules =
        from_value(json!({ "end": [404], "fixed_ms": { "429": 5000 }, "limits": { "429": 3 } })).unwrap();
    assert_eq!(rules.classify(404, 0), CodeAction::End);
    assert_eq!(rules.classify(429, 0), CodeAction::Retry { after: s(5) });
}

#[test]
fn giving_up_is_data() {
    let reason = GiveUpReason::TotalTime { next_sleep: Some(ms(550)) };
    let expected = json!({
        "reason": { "total_time": { "next_sleep_ms": 550.0 } },
        "delay_retries": 1, "retries": 2, "elapsed_ms": 3000.0,
    });
    let given_up: GivenUp = from_value(expected.clone()).unwrap();
    assert_eq!((&given_up.reason, given_up.delay_retries, given_up.retries), (&reason, 1, 2));
    assert_eq!((given_up.elapsed, to_value(&given_up).unwrap()), (s(3), expected));
}
