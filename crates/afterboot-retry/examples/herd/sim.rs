//! The thundering herd in virtual time: clients that lose their server together, and how they come back.
//!
//! Nothing here waits and nothing takes time: a request is answered at once, one that is sent while the server is down
//! fails, and one that is sent afterwards succeeds. Clients do not influence one another, save through a gate.

use std::time::Duration;

use afterboot_retry::{Clock, Failure, GatePolicy, JitterRng, Limits, RetryPolicy};

/// Arrivals are counted in windows of this length, aligned to the server's return.
pub(crate) const WINDOW: Duration = Duration::from_millis(100);

/// The first failures of all clients fall into this time.
const FIRST_FAILURES: Duration = Duration::from_millis(50);

/// What happens to the clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    pub(crate) clients: usize,
    pub(crate) outage: Duration,
}

impl World {
    /// A thousand clients.
    pub(crate) fn of(outage_seconds: u64) -> World {
        World { clients: 1000, outage: Duration::from_secs(outage_seconds) }
    }
}

/// How the clients behave.
pub(crate) enum Behaviour {
    /// Each on its own, and what the server tells them.
    Alone(RetryPolicy, Server),
    /// In so many processes, each with a gate.
    Gated(GatePolicy, usize),
    /// Each by the delays of another crate.
    Delays(fn() -> Box<dyn Iterator<Item = Duration>>),
}

/// What a server that is down says in `Retry-After`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Server {
    SaysNothing,
    Says(Duration),
    /// It knows when it will be back, and says so.
    SaysTheTimeLeft,
}

/// What one seed gave.
pub(crate) struct Outcome {
    /// Retries sent, the one that succeeds included; the first request, which fails, is not.
    pub(crate) retries: u64,
    /// Arrivals in each window since the server's return.
    pub(crate) arrivals: Vec<u32>,
    /// From the server's return to each client's success, shortest first.
    waits: Vec<Duration>,
}

impl Outcome {
    pub(crate) fn peak(&self) -> u32 {
        self.arrivals.iter().copied().max().unwrap_or(0)
    }

    fn mean_wait(&self) -> Duration {
        self.waits.iter().sum::<Duration>().div_f64(self.waits.len() as f64)
    }

    fn p99_wait(&self) -> Duration {
        self.waits[(self.waits.len() - 1) * 99 / 100]
    }
}

/// The mean over several seeds.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) retries: f64,
    pub(crate) peak: f64,
    pub(crate) mean_wait: Duration,
    pub(crate) p99_wait: Duration,
}

/// Runs seeds 0 to `seeds`.
pub(crate) fn summary(world: World, behaviour: &Behaviour, seeds: u64) -> Summary {
    let mut sum = Summary { retries: 0.0, peak: 0.0, mean_wait: Duration::ZERO, p99_wait: Duration::ZERO };
    for seed in 0..seeds {
        let outcome = run(world, behaviour, seed);
        sum.retries += outcome.retries as f64;
        sum.peak += f64::from(outcome.peak());
        sum.mean_wait += outcome.mean_wait();
        sum.p99_wait += outcome.p99_wait();
    }
    let n = seeds as f64;
    Summary {
        retries: sum.retries / n,
        peak: sum.peak / n,
        mean_wait: sum.mean_wait.div_f64(n),
        p99_wait: sum.p99_wait.div_f64(n),
    }
}

/// One seed.
pub(crate) fn run(world: World, behaviour: &Behaviour, seed: u64) -> Outcome {
    let mut log = Log::new(world);
    let family = JitterRng::seeded(seed);
    match behaviour {
        Behaviour::Alone(policy, server) => {
            let policy = policy.clone().limits(Limits::unlimited());
            // Without limits the time plays no part in the decision.
            let clock = Clock::new(|| Duration::ZERO);
            for _ in 0..world.clients {
                let mut rng = family.clone();
                let mut now = rng.within(FIRST_FAILURES);
                let mut retry = policy.start_with(clock.clone(), rng);
                while now < world.outage {
                    let asked = match server {
                        Server::SaysNothing => None,
                        Server::Says(asked) => Some(*asked),
                        Server::SaysTheTimeLeft => Some(world.outage - now),
                    };
                    match retry.decide(Failure::transient().retry_after(asked)).into_result() {
                        Ok(wait) => now += wait.after,
                        Err(given_up) => panic!("seed {seed}: {given_up}"),
                    }
                    log.request(now);
                }
                log.success(now);
            }
        }
        Behaviour::Gated(policy, processes) => {
            for process in 0..*processes {
                // The clients are dealt out to the processes.
                let clients = (world.clients + processes - 1 - process) / processes;
                gated(world, policy, clients, family.clone(), &mut log);
            }
        }
        Behaviour::Delays(delays) => {
            for _ in 0..world.clients {
                let mut now = family.clone().within(FIRST_FAILURES);
                let mut delays = delays();
                while now < world.outage {
                    now += delays.next().expect("these delays have no end");
                    log.request(now);
                }
                log.success(now);
            }
        }
    }
    log.outcome()
}

/// One process: one of its clients probes, the others wait at the gate and come back over the ramp.
fn gated(world: World, policy: &GatePolicy, clients: usize, mut rng: JitterRng, log: &mut Log) {
    let down_since = (0..clients).map(|_| rng.within(FIRST_FAILURES)).min().unwrap_or_default();
    let mut now = down_since;
    let mut previous = None;
    for probe in 1.. {
        let delay = policy.probe().delay(probe, previous, &mut rng).expect("a gate's probes have no end");
        previous = Some(delay);
        now += delay;
        log.request(now);
        if now >= world.outage {
            break;
        }
    }
    log.success(now);
    let ramp = policy.ramp(now - down_since);
    for _ in 1..clients {
        let released = now + rng.within(ramp);
        log.request(released);
        log.success(released);
    }
}

struct Log {
    outage: Duration,
    outcome: Outcome,
}

impl Log {
    fn new(world: World) -> Log {
        let waits = Vec::with_capacity(world.clients);
        Log { outage: world.outage, outcome: Outcome { retries: 0, arrivals: Vec::new(), waits } }
    }

    fn request(&mut self, at: Duration) {
        self.outcome.retries += 1;
        let Some(since) = at.checked_sub(self.outage) else { return };
        let window = (since.as_nanos() / WINDOW.as_nanos()) as usize;
        let arrivals = &mut self.outcome.arrivals;
        if arrivals.len() <= window {
            arrivals.resize(window + 1, 0);
        }
        arrivals[window] += 1;
    }

    fn success(&mut self, at: Duration) {
        self.outcome.waits.push(at - self.outage);
    }

    fn outcome(mut self) -> Outcome {
        self.outcome.waits.sort_unstable();
        self.outcome
    }
}
