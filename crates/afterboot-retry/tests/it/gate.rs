//! The gate in front of callers, under a paused clock. Its decisions have tests of their own beside them.

use std::future::ready;
use std::time::Duration;

use afterboot_retry::{
    BackoffPolicy, Failure, GatePolicy, GateState, GiveUpReason, Jitter, JitterRng, LastAttempt, Limits,
    Pass, RetryGate, RetryLoop, RetryPolicy, Schedule, SkipWait,
};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep, timeout};

use crate::common::{ends, ms, s};

fn gate() -> RetryGate {
    RetryGate::with_rng(GatePolicy::default(), JitterRng::constant(0.5))
}

async fn close(gate: &RetryGate) {
    ends(gate.enter()).await.failed();
}

#[tokio::test(start_paused = true)]
async fn one_probes_while_the_rest_wait_and_then_all_come_back_over_the_ramp() {
    let gate = RetryGate::with_rng(GatePolicy::default(), JitterRng::seeded(1));
    let begun = Instant::now();
    close(&gate).await;
    let mut callers = JoinSet::new();
    for _ in 0..1000 {
        let gate = gate.clone();
        callers.spawn(async move {
            let mut probes = 0;
            loop {
                let pass = ends(gate.reenter()).await;
                if !pass.is_probe() {
                    pass.succeeded();
                    return (probes, begun.elapsed());
                }
                probes += 1;
                if begun.elapsed() >= s(20) {
                    pass.succeeded();
                    return (probes, begun.elapsed());
                }
                pass.failed();
            }
        });
    }
    let callers = ends(callers.join_all()).await;
    let probes: u32 = callers.iter().map(|(probes, _)| probes).sum();
    assert!((8..=11).contains(&probes), "{probes} probes in 20 s");
    let back = callers.iter().map(|(_, at)| *at).min().unwrap();
    let last = callers.iter().map(|(_, at)| *at).max().unwrap();
    assert!(back >= s(20), "none before the server was back");
    let ramp = GatePolicy::default().ramp(back).as_secs_f64();
    let took = (last - back).as_secs_f64();
    assert!(took <= ramp + 0.002 && took > ramp * 0.98, "{took} s of a ramp of {ramp} s");
    let first_half = callers.iter().filter(|(_, at)| (*at - back).as_secs_f64() < ramp / 2.0).count();
    assert!((440..560).contains(&first_half), "{first_half} of 1000 in the first half");
    sleep(s(1)).await;
    assert_eq!(gate.state(), GateState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_or_panics_frees_the_seat() {
    let gate = gate();
    close(&gate).await;
    let pass = ends(gate.reenter()).await;
    assert!(pass.is_probe());
    let other = gate.clone();
    let waiting = tokio::spawn(async move { ends(other.reenter()).await.is_probe() });
    yield_now().await;
    drop(pass);
    assert!(waiting.await.unwrap(), "dropped");

    let other = gate.clone();
    let panicking = tokio::spawn(async move {
        let _pass: Pass = ends(other.reenter()).await;
        panic!("in the probe")
    });
    assert!(panicking.await.unwrap_err().is_panic());
    assert!(ends(gate.reenter()).await.is_probe(), "panicked");
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_on_the_seat_hands_it_to_one_who_waits() {
    let gate = gate();
    close(&gate).await;
    let seated = tokio::spawn({
        let gate = gate.clone();
        async move { timeout(ms(100), gate.reenter()).await.is_err() }
    });
    yield_now().await;
    let parked = tokio::spawn({
        let gate = gate.clone();
        async move { timeout(s(2), gate.reenter()).await.is_ok_and(|pass| pass.is_probe()) }
    });
    assert!(seated.await.unwrap(), "the first probe is due after 250 ms at the least");
    assert!(parked.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn new_callers_wait_while_it_is_down_and_pass_at_once_during_the_ramp() {
    let gate = gate();
    close(&gate).await;
    let begun = Instant::now();
    assert!(timeout(ms(200), gate.enter()).await.is_err(), "down");
    ends(gate.enter()).await.succeeded();
    let GateState::Ramp { over_in, .. } = gate.state() else { panic!("{:?}", gate.state()) };
    assert_eq!(over_in, ms(2500));
    let now = begun.elapsed();
    ends(gate.enter()).await.succeeded();
    assert_eq!(begun.elapsed(), now, "a first try is no part of the herd");
    ends(gate.reenter()).await.succeeded();
    assert_eq!(begun.elapsed() - now, ms(1250), "another try is: half the ramp is this one's draw");
}

#[tokio::test(start_paused = true)]
async fn a_closed_gate_says_since_when_and_until_when() {
    let gate = gate();
    close(&gate).await;
    sleep(ms(100)).await;
    let GateState::Down { outage, probes, next_probe_in, .. } = gate.state() else { panic!("open") };
    assert_eq!((outage, probes, next_probe_in), (ms(100), 1, ms(275)));
}

#[tokio::test(start_paused = true)]
async fn loops_behind_a_gate_probe_one_at_a_time() {
    let gate = RetryGate::with_rng(GatePolicy::default(), JitterRng::seeded(2));
    let begun = Instant::now();
    let mut loops = JoinSet::new();
    for _ in 0..50 {
        let running = RetryLoop::new(&RetryPolicy::default()).gate(gate.clone());
        loops.spawn(async move {
            let mut calls = 0;
            let operation = |_| {
                calls += 1;
                ready(if begun.elapsed() < s(6) { Err(0) } else { Ok(()) })
            };
            running.run(operation, |_: &u32| Failure::transient()).await.unwrap();
            calls
        });
    }
    let calls: u32 = ends(loops.join_all()).await.into_iter().sum();
    // The first one's failure closes the gate before the others have tried.
    assert!((55..=60).contains(&calls), "one first try, 50 that succeed and a few probes: {calls}");
}

#[tokio::test(start_paused = true)]
async fn a_loop_gives_up_at_the_gate_when_its_time_is_over() {
    let policy = GatePolicy::builder().probe_lease(Duration::MAX).build().unwrap();
    let gate = RetryGate::with_rng(policy, JitterRng::constant(0.5));
    close(&gate).await;
    let seat = ends(gate.reenter()).await;
    let begun = Instant::now();
    let policy = RetryPolicy::default().limits(Limits::unlimited().max_elapsed(s(30)));
    let never = || RetryLoop::new(&policy).gate(gate.clone());
    let operation = |_| ready(Ok::<(), u32>(()));
    let judge = |_: &u32| Failure::transient();
    let error = never().run(operation, judge).await.unwrap_err();
    assert_eq!((begun.elapsed(), error.last()), (s(30), &LastAttempt::NotMade));
    assert_eq!(error.given_up().reason, GiveUpReason::TotalTime { next_sleep: None });
    let error = never().timeout(s(2)).run(operation, judge).await.unwrap_err();
    assert_eq!(error.given_up().reason, GiveUpReason::Timeout { next_sleep: None });

    let skip = SkipWait::default();
    skip.skip();
    assert!(never().skip_wait(skip).run(operation, judge).await.is_ok(), "demanded, so past the gate");
    assert!(matches!(gate.state(), GateState::Ramp { .. }), "and its success is news");
    drop(seat);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_closes_no_gate() {
    let gate = gate();
    let running = RetryLoop::new(&RetryPolicy::default()).gate(gate.clone());
    running.run(|_| ready(Err::<(), u32>(400)), |_| Failure::permanent()).await.unwrap_err();
    assert_eq!(gate.state(), GateState::Open);
    assert_eq!(Duration::ZERO, timeout(ms(1), gate.reenter()).await.map(|_| Duration::ZERO).unwrap());
}

/// R20: a call may hang, and a future that nobody polls gives nothing back.
#[tokio::test(start_paused = true)]
async fn a_probe_that_never_ends_keeps_the_seat_for_its_lease_and_then_the_next_one_probes() {
    let gate = gate();
    let begun = Instant::now();
    close(&gate).await;
    let hanging = ends(gate.enter()).await;
    let probed = begun.elapsed();
    sleep(s(5)).await;
    let next = ends(gate.enter()).await;
    assert!(hanging.is_probe() && next.is_probe());
    let waited = begun.elapsed() - probed;
    assert!((s(30)..=s(30) + ms(2)).contains(&waited), "{waited:?}");

    hanging.failed();
    let behind = timeout(s(20), gate.enter()).await;
    assert!(behind.is_err(), "what the late one says does not free the seat of the one that probes now");
    next.succeeded();
    assert!(!matches!(gate.state(), GateState::Down { .. }));
}

/// R20: also one that succeeds late has found the dependency up.
#[tokio::test(start_paused = true)]
async fn a_probe_that_succeeds_after_its_lease_opens_the_gate() {
    let policy = GatePolicy::builder().probe_lease(s(3)).build().unwrap();
    let gate = RetryGate::with_rng(policy, JitterRng::constant(0.5));
    close(&gate).await;
    let late = ends(gate.enter()).await;
    let next = timeout(s(4), gate.enter()).await.expect("the lease is over");
    late.succeeded();
    assert!(matches!(gate.state(), GateState::Ramp { .. }));
    next.failed();
    assert!(matches!(gate.state(), GateState::Ramp { .. }), "it was let through before the change");
}

/// R20: the seat is taken before the probe is due, by a future that may never be polled again.
#[tokio::test(start_paused = true)]
async fn a_seat_whose_holder_is_not_polled_is_lost_after_a_lease() {
    let gate = gate();
    close(&gate).await;
    let mut forgotten = Box::pin(gate.enter());
    assert!(timeout(ms(1), &mut forgotten).await.is_err());
    let begun = Instant::now();
    let next = ends(gate.enter()).await;
    assert!(next.is_probe() && begun.elapsed() < s(31), "{:?}", begun.elapsed());
    assert!(timeout(s(20), forgotten).await.is_err(), "and it waits for its turn anew");
}

/// R20: a lease shorter than the schedule makes no more probes than the schedule.
#[tokio::test(start_paused = true)]
async fn probes_that_hang_keep_the_pace_of_the_schedule() {
    let probe = BackoffPolicy::builder()
        .schedule(Schedule::Constant(s(60)))
        .max_delay(s(60))
        .jitter(Jitter::NONE)
        .build()
        .unwrap();
    let policy = GatePolicy::builder().probe(probe).probe_lease(ms(10)).build().unwrap();
    let gate = RetryGate::with_rng(policy, JitterRng::constant(0.5));
    close(&gate).await;
    let mut hanging = Vec::new();
    while let Ok(pass) = timeout(s(70), gate.enter()).await {
        hanging.push(pass);
        if hanging.len() == 5 {
            break;
        }
    }
    let begun = Instant::now();
    assert_eq!(hanging.len(), 5);
    hanging.push(ends(gate.enter()).await);
    assert!(begun.elapsed() >= s(59), "{:?}", begun.elapsed());
}

/// The bounds hold where the share says nothing: zero is a share like any other.
#[test]
fn a_ramp_without_a_share_is_the_least_one() {
    let policy = GatePolicy::builder().ramp_share(0.0).ramp_bounds(s(1), s(1)).build().unwrap();
    assert_eq!(policy.ramp(s(300)), s(1));
    for (share, min) in [(-0.1, s(1)), (f64::NAN, s(1)), (0.5, s(2))] {
        let refused = GatePolicy::builder().ramp_share(share).ramp_bounds(min, s(1)).build().unwrap_err();
        assert_eq!(refused.problems().len(), 1, "{share} {min:?}");
    }
}

/// R5: far away is a moment like any other.
#[tokio::test(start_paused = true)]
async fn the_longest_ramp_and_the_longest_wait_for_a_probe_end_far_away() {
    let ramp = GatePolicy::builder().ramp_bounds(Duration::MAX, Duration::MAX).build().unwrap();
    let gate = RetryGate::with_rng(ramp, JitterRng::constant(1.0));
    close(&gate).await;
    ends(gate.enter()).await.succeeded();
    assert!(timeout(s(86_400), gate.reenter()).await.is_err());
    assert!(!ends(gate.enter()).await.is_probe(), "a newcomer passes");

    let never = BackoffPolicy::builder()
        .schedule(Schedule::Constant(Duration::MAX))
        .max_delay(Duration::MAX)
        .jitter(Jitter::NONE)
        .build()
        .unwrap();
    let policy = GatePolicy::builder().probe(never).probe_lease(Duration::MAX).build().unwrap();
    let gate = RetryGate::new(policy);
    close(&gate).await;
    let (first, second) = (gate.clone(), gate.clone());
    let both = async { tokio::join!(first.enter(), second.enter()) };
    assert!(timeout(s(86_400), both).await.is_err());
}
