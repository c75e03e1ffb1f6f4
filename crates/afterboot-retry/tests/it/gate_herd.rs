//! The simulation of the gate beside the gate itself: a thousand clients on tokio's paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afterboot_retry::{GatePolicy, JitterRng, RetryGate};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::common::{ends, ms, s};
use crate::sim::{Behaviour, World, summary};

/// Retries and the peak after the return, of the gate as it is.
async fn herd(processes: usize, outage: Duration, seed: u64) -> (usize, usize) {
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let family = JitterRng::seeded(seed);
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..processes {
        let gate = RetryGate::with_rng(GatePolicy::default(), family.clone());
        for _ in 0..1000 / processes {
            let (gate, arrivals, mut rng) = (gate.clone(), arrivals.clone(), family.clone());
            clients.spawn(async move {
                let first = gate.bypass();
                sleep(rng.within(ms(50))).await;
                first.failed();
                loop {
                    let pass = gate.reenter().await;
                    let now = begun.elapsed();
                    arrivals.lock().unwrap().push(now);
                    if now >= outage {
                        return pass.succeeded();
                    }
                    pass.failed();
                }
            });
        }
    }
    ends(clients.join_all()).await;
    let arrivals = arrivals.lock().unwrap();
    let mut windows = std::collections::BTreeMap::<u128, usize>::new();
    for at in arrivals.iter().filter_map(|at| at.checked_sub(outage)) {
        *windows.entry(at.as_millis() / 100).or_default() += 1;
    }
    (arrivals.len(), windows.into_values().max().unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_gate_does_what_its_simulation_says() {
    for processes in [1, 10, 100] {
        for outage in [6, 60] {
            let (mut retries, mut peak) = (0.0, 0.0);
            for seed in 0..5 {
                let got = herd(processes, s(outage), seed).await;
                retries += got.0 as f64 / 5.0;
                peak += got.1 as f64 / 5.0;
            }
            let said = summary(World::of(outage), &Behaviour::Gated(GatePolicy::default(), processes), 20);
            let told = format!("{processes} processes, {outage} s: {retries} and {peak}, simulated {said:?}");
            assert!((retries / said.retries - 1.0).abs() < 0.03, "{told}");
            assert!((peak / said.peak - 1.0).abs() < 0.25, "{told}");
        }
    }
}
