use proptest::prelude::*;

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn until(endpoint: &Endpoint) -> Moment {
    match endpoint.state() {
        State::Healthy => panic!("it is healthy"),
        State::Backoff { until, .. } | State::Held { until, .. } => *until,
    }
}

/// One failing probe after another.
fn waits(
    endpoint: &mut Endpoint,
    mut fail: impl FnMut(&mut Endpoint, bool, Moment),
    count: usize,
) -> Vec<f64> {
    let mut now = secs(0);
    let mut waits = Vec::new();
    for n in 0..count {
        let probe = n > 0;
        if probe {
            assert_eq!(endpoint.permit(now), Permit::Probe);
            endpoint.probe_left();
            assert_eq!(endpoint.permit(now), Permit::No(None), "one probe");
        }
        fail(endpoint, probe, now);
        let next = until(endpoint);
        waits.push((next - now).as_secs_f64());
        assert_eq!(endpoint.permit(next - Duration::from_millis(1)), Permit::No(Some(next)));
        now = next;
    }
    waits
}

/// B11: 1, 2, 4 … 32 s, less up to a quarter.
#[test]
fn waits_double_up_to_32_seconds_and_are_spread() {
    for seed in 0..50 {
        let mut endpoint = Endpoint::new(seed);
        let waits = waits(&mut endpoint, |endpoint, probe, now| endpoint.failed(probe, now, None), 8);
        for (wait, full) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0]) {
            assert!((0.75 * full..=full).contains(wait), "{waits:?}");
        }
    }
}

#[test]
fn a_held_endpoint_is_asked_after_half_a_minute_and_at_least_every_ten() {
    let mut endpoint = Endpoint::new(1);
    let hold = |endpoint: &mut Endpoint, probe, now| endpoint.held(probe, now, HeldReason::Status(403));
    let waits = waits(&mut endpoint, hold, 8);
    for (wait, full) in waits.iter().zip([30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0, 600.0]) {
        assert!((0.75 * full..=full).contains(wait), "{waits:?}");
    }
}

/// B11: the outcome of what left before the failure says nothing of what came after it.
#[test]
fn only_the_probe_leads_out_of_a_backoff_and_only_it_makes_the_next_one_longer() {
    let mut endpoint = Endpoint::new(1);
    endpoint.failed(false, secs(10), None);
    let first = until(&endpoint);
    endpoint.failed(false, secs(10), None);
    assert_eq!(until(&endpoint), first, "two that failed together are one failure");
    endpoint.succeeded(false, 1000);
    assert!(!endpoint.is_open());
    endpoint.probe_left();
    endpoint.succeeded(true, 1000);
    assert!(endpoint.is_open());
    endpoint.failed(false, secs(20), None);
    assert!(until(&endpoint) <= secs(21), "the steps begin anew");
}

/// B13: at least what the server asks for, at most an hour of it, and not all at once.
#[test]
fn a_retry_after_is_a_lower_bound_and_is_itself_bounded() {
    for (asked, least) in [(secs(0), 0.75), (secs(100), 100.0), (Duration::MAX, 3600.0)] {
        let mut endpoint = Endpoint::new(3);
        endpoint.failed(false, secs(0), Some(asked));
        let wait = until(&endpoint).as_secs_f64();
        assert!((least..=least + 3.0).contains(&wait), "{asked:?}: {wait}");
    }
}

#[test]
fn the_second_of_two_failures_may_ask_for_more_time() {
    let mut endpoint = Endpoint::new(3);
    endpoint.failed(false, secs(0), None);
    endpoint.failed(false, secs(0), Some(secs(60)));
    assert!(until(&endpoint) >= secs(60));
}

#[test]
fn a_network_that_is_back_ends_a_backoff_and_no_hold() {
    let mut endpoint = Endpoint::new(1);
    endpoint.failed(false, secs(0), Some(secs(1000)));
    endpoint.offline();
    assert_eq!(endpoint.permit(secs(2000)), Permit::No(None));
    endpoint.online(secs(5));
    assert_eq!(endpoint.permit(secs(5)), Permit::Probe);
    endpoint.held(true, secs(5), HeldReason::Status(302));
    endpoint.online(secs(6));
    assert!(matches!(endpoint.permit(secs(6)), Permit::No(Some(_))));
}

/// B10: the limit follows the refusals down, and comes back more slowly each time that it is refused again.
#[test]
fn the_limit_falls_by_halves_and_grows_by_doubling() {
    let mut endpoint = Endpoint::new(1);
    endpoint.refused_size(false, MAX_BODY);
    assert_eq!(endpoint.limit(), MAX_BODY / 2);
    endpoint.refused_size(false, MAX_BODY / 2);
    assert_eq!(endpoint.limit(), MAX_BODY / 4);
    let taken_before_growing = |endpoint: &mut Endpoint| {
        let limit = endpoint.limit();
        (1..).find(|_| {
            endpoint.succeeded(false, limit);
            endpoint.limit() > limit
        })
    };
    assert_eq!(taken_before_growing(&mut endpoint), Some(REGROW_AFTER));
    endpoint.refused_size(false, MAX_BODY / 2);
    assert_eq!(taken_before_growing(&mut endpoint), Some(2 * REGROW_AFTER));
    endpoint.succeeded(false, 10);
    assert_eq!(endpoint.limit(), MAX_BODY / 2, "a small body says nothing of a large one");
}

proptest! {
    /// Whatever happens, a shut gate opens in bounded time, and there is one probe.
    #[test]
    fn a_gate_never_stays_shut(steps in prop::collection::vec((0..7u8, any::<bool>(), 0..5000u64), 1..100)) {
        let mut endpoint = Endpoint::new(9);
        let mut now = secs(0);
        let mut probing = false;
        for (what, other, wait) in steps {
            now += Duration::from_millis(wait);
            match endpoint.permit(now) {
                Permit::Probe => {
                    prop_assert!(!probing);
                    endpoint.probe_left();
                    probing = true;
                }
                Permit::No(Some(until)) => prop_assert!(until > now && until <= now + secs(3603)),
                Permit::No(None) => prop_assert!(probing || endpoint.is_offline()),
                Permit::Go => prop_assert!(endpoint.is_open()),
            }
            let probe = probing && !other;
            match what {
                0 => endpoint.succeeded(probe, 1000),
                1 => endpoint.failed(probe, now, Some(Duration::from_millis(wait))),
                2 => endpoint.held(probe, now, HeldReason::Status(404)),
                3 => endpoint.refused_size(probe, 3000),
                4 => endpoint.online(now),
                5 => endpoint.offline(),
                _ if probing => {
                    endpoint.probe_aborted();
                    probing = false;
                    continue;
                }
                _ => continue,
            }
            probing &= !(probe && what < 4);
        }
    }
}

/// B13: the second of two requests that failed together may be told a longer time, which is spread like the first.
#[test]
fn a_later_longer_retry_after_is_spread_too() {
    let mut ends = Vec::new();
    for seed in 0..20 {
        let mut endpoint = Endpoint::new(seed);
        endpoint.failed(false, secs(0), None);
        endpoint.failed(false, secs(0), Some(secs(60)));
        ends.push(until(&endpoint));
        endpoint.failed(false, secs(0), Some(secs(10)));
        assert_eq!(until(&endpoint), ends[seed as usize], "a shorter one changes nothing");
    }
    assert!(ends.iter().all(|end| (secs(60)..=secs(63)).contains(end)), "{ends:?}");
    ends.sort();
    ends.dedup();
    assert!(ends.len() > 10, "{ends:?}");
}

/// B13: what a server asked for is not forgotten because the other request was answered otherwise.
#[test]
fn a_retry_after_is_kept_by_an_endpoint_that_is_held_before_or_after() {
    let mut endpoint = Endpoint::new(1);
    endpoint.failed(false, secs(0), Some(secs(3000)));
    endpoint.held(false, secs(0), HeldReason::Status(403));
    assert!(until(&endpoint) >= secs(3000), "{:?}", endpoint.state());
    let mut endpoint = Endpoint::new(1);
    endpoint.held(false, secs(0), HeldReason::Status(403));
    endpoint.failed(false, secs(0), Some(secs(3000)));
    assert!(until(&endpoint) >= secs(3000), "{:?}", endpoint.state());
    assert!(matches!(endpoint.state(), State::Held { .. }));
}
