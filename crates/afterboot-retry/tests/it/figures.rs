//! The thundering herd's published figures: means of 20 seeds; retries within 1 %, peaks and waits within 10 %.

use std::time::Duration;

use afterboot_retry::{BackoffPolicy, GatePolicy, Jitter};

use crate::common::{ms, s};
use crate::rivals;
use crate::schedules::{all, alone, beside, decorrelated, told, uploader};
use crate::sim::{Behaviour, Server, Summary, World, run, summary};

const SEEDS: u64 = 20;
const OUTAGES: [u64; 4] = [6, 20, 60, 300];

/// A published number and how far a mean may be from it.
#[track_caller]
fn near(what: &str, got: f64, published: f64, tolerance: f64) {
    let off = (got - published).abs() / published;
    assert!(off <= tolerance, "{what}: {got:.2}, published {published}, {:.1} % off", off * 100.0);
}

/// Waits are published in tenths or hundredths of a second: half a unit of that is no difference.
#[track_caller]
fn wait_near(what: &str, got: Duration, published: f64, unit: f64) {
    let (got, off) = (got.as_secs_f64(), (got.as_secs_f64() - published).abs());
    assert!(off <= published * 0.1 + unit / 2.0, "{what}: {got:.3} s, published {published} s");
}

#[track_caller]
fn row(name: &str, behaviour: &Behaviour, retries: f64, peak: f64, mean_wait: f64, p99_wait: f64) {
    let got = summary(World::of(6), behaviour, SEEDS);
    near(&format!("{name}, retries"), got.retries, retries, 0.01);
    near(&format!("{name}, peak"), got.peak, peak, 0.10);
    wait_near(&format!("{name}, mean wait"), got.mean_wait, mean_wait, 0.01);
    wait_near(&format!("{name}, p99 wait"), got.p99_wait, p99_wait, 0.1);
}

#[test]
fn the_uploaders_schedule_under_each_jitter_gives_the_published_figures() {
    row("fixed", &alone(BackoffPolicy::uploader()), 7292.0, 470.0, 0.66, 2.1);
    row("equal", &alone(uploader(Jitter::EQUAL)), 8399.0, 87.0, 1.01, 2.8);
    row("full", &alone(uploader(Jitter::FULL)), 9807.0, 56.0, 1.55, 5.5);
    row("decorrelated", &alone(decorrelated()), 4068.0, 39.0, 2.25, 7.0);
}

#[test]
fn the_default_gives_the_published_figures() {
    row("default", &alone(BackoffPolicy::default()), 6840.0, 52.0, 1.45, 4.1);
}

#[test]
fn decorrelated_jitter_loses_its_advantage_in_a_long_outage() {
    let retries = |outage, backoff| summary(World::of(outage), &alone(backoff), SEEDS).retries;
    assert!(retries(6, decorrelated()) < 0.5 * retries(6, uploader(Jitter::FULL)));
    assert!(retries(300, decorrelated()) > retries(300, uploader(Jitter::FULL)));
}

/// The published gate rows had a probe every U[250, 500] ms and a ramp of 2.5 s.
fn constant_gate() -> GatePolicy {
    let probe = BackoffPolicy::builder()
        .schedule(afterboot_retry::Schedule::Constant(ms(500)))
        .jitter(Jitter::EQUAL)
        .build()
        .unwrap();
    GatePolicy::builder().probe(probe).ramp_bounds(ms(2500), ms(2500)).build().unwrap()
}

#[test]
fn a_gate_of_constant_probes_gives_the_published_figures() {
    row("gate, 1 process", &Behaviour::Gated(constant_gate(), 1), 1015.0, 52.0, 1.42, 2.6);
    row("gate, 100 processes", &Behaviour::Gated(constant_gate(), 100), 2544.0, 54.0, 1.31, 2.7);
}

/// R9.
#[test]
fn a_thousand_told_the_same_retry_after_come_back_together_unless_they_spread_it() {
    let two_seconds = Server::Says(s(2));
    row("not spread", &told(two_seconds, Duration::ZERO), 3000.0, 1000.0, 0.03, 0.05);
    let spread = summary(World::of(6), &told(two_seconds, s(3)), SEEDS);
    near("spread, retries", spread.retries, 2215.0, 0.01);
    assert!(spread.peak < 60.0, "{spread:?}");
    row("exact", &told(Server::SaysTheTimeLeft, s(3)), 1000.0, 45.0, 1.50, 3.0);
}

#[test]
fn the_default_and_full_jitter_give_the_published_figures_in_longer_outages() {
    let published = [
        (20, (10_532.0, 30.0), (13_963.0, 32.0)),
        (60, (19_580.0, 31.0), (23_950.0, 32.0)),
        (300, (73_908.0, 31.0), (84_003.0, 32.0)),
    ];
    for (outage, default, full) in published {
        for (name, backoff, published) in
            [("default", BackoffPolicy::default(), default), ("full", uploader(Jitter::FULL), full)]
        {
            let got = summary(World::of(outage), &alone(backoff), SEEDS);
            near(&format!("{name}, {outage} s, retries"), got.retries, published.0, 0.01);
            near(&format!("{name}, {outage} s, peak"), got.peak, published.1, 0.10);
        }
    }
}

#[test]
fn the_default_spares_retries_against_full_jitter_and_peaks_no_higher() {
    for (outage, fewer) in OUTAGES.into_iter().zip([0.28, 0.23, 0.16, 0.10]) {
        let world = World::of(outage);
        let default = summary(world, &alone(BackoffPolicy::default()), 200);
        let full = summary(world, &alone(uploader(Jitter::FULL)), 200);
        let spared = 1.0 - default.retries / full.retries;
        assert!(spared >= fewer, "{outage} s: {:.1} % fewer retries", spared * 100.0);
        let peak = default.peak / full.peak;
        assert!(peak <= 1.05, "{outage} s: peak {:.1} vs {:.1}", default.peak, full.peak);
    }
}

#[test]
fn the_gate_makes_fewer_retries_than_the_default_however_many_processes() {
    for outage in OUTAGES {
        let world = World::of(outage);
        let default = summary(world, &alone(BackoffPolicy::default()), SEEDS);
        for processes in [1, 10, 100] {
            let gate = summary(world, &Behaviour::Gated(GatePolicy::default(), processes), SEEDS);
            assert!(
                gate.retries < default.retries,
                "{outage} s, {processes} processes: {gate:?} vs {default:?}"
            );
        }
    }
    let constant: Summary = summary(World::of(300), &Behaviour::Gated(constant_gate(), 100), SEEDS);
    near("constant probes of 100 processes over 300 s", constant.retries, 80_959.0, 0.01);
}

#[test]
fn every_row_of_the_table_is_replayed_by_its_seed() {
    for schedule in all(10).into_iter().chain(beside(10)) {
        let once = || {
            let outcome = run(World::of(6), &schedule.behaviour, 7);
            (outcome.retries, outcome.peak(), outcome.arrivals)
        };
        assert_eq!(once(), once(), "{}, {}", schedule.name, schedule.title);
        let other = run(World::of(6), &schedule.behaviour, 8);
        assert!(other.retries >= 1000, "{}: every client came back", schedule.name);
    }
}

/// What COMPARE.md says of them. Their randomness is not ours to seed, so the margins are wider than a mean needs.
#[test]
fn other_crates_schedules_give_the_figures_of_the_comparison() {
    let published = [("backon", 3000.0, 35.0, 4.5), ("tokio_retry2", 4145.0, 34.0, 2.7)];
    for (rival, (name, retries, peak, mean_wait)) in rivals::all().into_iter().zip(published) {
        assert_eq!(rival.name, name);
        let got = summary(World::of(6), &rival.behaviour, SEEDS);
        near(&format!("{name}, retries"), got.retries, retries, 0.03);
        near(&format!("{name}, peak"), got.peak, peak, 0.15);
        wait_near(&format!("{name}, mean wait"), got.mean_wait, mean_wait, 0.1);
    }
}
