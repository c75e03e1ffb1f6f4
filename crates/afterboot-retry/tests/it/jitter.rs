//! How delays are spread.

use std::time::Duration;

use afterboot_retry::{BackoffPolicy, Jitter, JitterRng, Schedule};

use crate::common::{ms, s};

const WIDTH: Duration = ms(100);

fn under(jitter: Jitter) -> BackoffPolicy {
    BackoffPolicy::uploader().to_builder().jitter(jitter).build().unwrap()
}

fn all() -> [Jitter; 6] {
    let fixed = Jitter::Fixed { width: WIDTH };
    [Jitter::NONE, Jitter::FULL, Jitter::EQUAL, Jitter::default(), Jitter::Decorrelated, fixed]
}

/// R1.
#[test]
fn no_jitter_goes_above_the_cap_or_below_zero() {
    let mut rng = JitterRng::seeded(1);
    for jitter in all() {
        let policy = under(jitter);
        let most = match jitter {
            Jitter::Fixed { width } => policy.max_delay() + width / 2,
            _ => policy.max_delay(),
        };
        for n in 1..=64 {
            let mut previous = None;
            for _ in 0..10_000 {
                let delay = policy.delay(n, previous, &mut rng).unwrap();
                assert!(delay <= most, "{jitter:?}, n {n}: {delay:?}");
                previous = Some(delay);
            }
        }
    }
    let early = BackoffPolicy::builder()
        .schedule(Schedule::Table(vec![Duration::ZERO, s(1)]))
        .jitter(Jitter::Fixed { width: s(1) })
        .build()
        .unwrap();
    assert_eq!(early.delay(1, None, &mut JitterRng::constant(0.0)), Some(Duration::ZERO));
}

/// R2.
#[test]
fn hardly_a_draw_sits_exactly_at_the_cap() {
    let mut rng = JitterRng::seeded(2);
    for policy in
        [under(Jitter::FULL), under(Jitter::EQUAL), BackoffPolicy::default(), under(Jitter::Decorrelated)]
    {
        let cap = policy.max_delay();
        let mut previous = Some(cap);
        let at_the_cap = (0..10_000)
            .filter(|_| {
                let delay = policy.delay(40, previous, &mut rng).unwrap();
                previous = Some(delay);
                // As a clock of milliseconds would show it.
                delay.as_millis() >= cap.as_millis()
            })
            .count();
        assert!(at_the_cap < 100, "{policy:?}: {at_the_cap} of 10,000 draws");
    }
}

#[test]
fn each_mode_draws_from_its_whole_window_and_nowhere_else() {
    let mut rng = JitterRng::seeded(3);
    let cases = [
        (Jitter::NONE, ms(8000), ms(8000)),
        (Jitter::FULL, ms(0), ms(8000)),
        (Jitter::EQUAL, ms(4000), ms(8000)),
        (Jitter::default(), ms(2400), ms(8000)),
        (Jitter::Fixed { width: WIDTH }, ms(7950), ms(8050)),
    ];
    for (jitter, least, most) in cases {
        let policy = under(jitter);
        let draws: Vec<Duration> = (0..10_000).map(|_| policy.delay(40, None, &mut rng).unwrap()).collect();
        let (low, high) = (*draws.iter().min().unwrap(), *draws.iter().max().unwrap());
        let edge = (most - least) / 100;
        assert!(low >= least && low <= least + edge, "{jitter:?}: {low:?}");
        assert!(high <= most && high >= most - edge, "{jitter:?}: {high:?}");
    }
}

#[test]
fn decorrelated_draws_between_the_first_delay_and_three_times_the_previous() {
    let policy = under(Jitter::Decorrelated);
    let between = |previous, unit| policy.delay(9, previous, &mut JitterRng::constant(unit)).unwrap();
    assert_eq!(
        (between(None, 0.0), between(None, 1.0)),
        (ms(500), ms(1500)),
        "the first stands for the previous"
    );
    assert_eq!((between(Some(s(2)), 0.0), between(Some(s(2)), 1.0)), (ms(500), s(6)));
    assert_eq!((between(Some(s(7)), 0.0), between(Some(s(7)), 1.0)), (ms(500), s(8)), "not above the cap");
    assert_eq!(between(Some(Duration::MAX), 1.0), s(8));
    assert_eq!(between(Some(Duration::ZERO), 1.0), ms(500), "never below the first");
}

#[test]
fn clones_of_a_retry_do_not_come_back_together() {
    let retry = afterboot_retry::RetryPolicy::default()
        .start_with(afterboot_retry::Clock::new(|| Duration::ZERO), JitterRng::seeded(4));
    let mut delays: Vec<Vec<Duration>> = (0..100).map(|_| retry.clone().take(5).collect()).collect();
    delays.sort();
    delays.dedup();
    assert_eq!(delays.len(), 100);
}
