//! The schedules that are compared.

use std::time::Duration;

use afterboot_retry::{BackoffPolicy, GatePolicy, Jitter, RetryPolicy, Schedule};

use crate::sim::{Behaviour, Server};

/// A schedule with its name in `--json` and in the table.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) behaviour: Behaviour,
}

fn named(name: &'static str, title: impl Into<String>, behaviour: Behaviour) -> Named {
    Named { name, title: title.into(), behaviour }
}

/// A policy whose clients hear nothing from the server.
pub(crate) fn alone(backoff: BackoffPolicy) -> Behaviour {
    Behaviour::Alone(RetryPolicy::from(backoff), Server::SaysNothing)
}

/// The uploader's growth under another jitter.
pub(crate) fn uploader(jitter: Jitter) -> BackoffPolicy {
    BackoffPolicy::uploader().to_builder().jitter(jitter).build().expect("the jitter is valid")
}

/// `U[500 ms, min(8 s, 3 · previous)]`.
pub(crate) fn decorrelated() -> BackoffPolicy {
    uploader(Jitter::Decorrelated)
}

/// The default schedule under another server.
pub(crate) fn told(server: Server, spread: Duration) -> Behaviour {
    Behaviour::Alone(RetryPolicy::default().retry_after_spread(spread), server)
}

const TWO_SECONDS: Duration = Duration::from_secs(2);
const SPREAD: Duration = Duration::from_secs(3);

/// All of them, in the order of the table. `processes` is for the gate.
pub(crate) fn all(processes: usize) -> Vec<Named> {
    let plain = |schedule, max| {
        let policy = BackoffPolicy::builder().schedule(schedule).max_delay(max).jitter(Jitter::NONE).build();
        alone(policy.expect("the schedule is valid"))
    };
    let doubling =
        Schedule::Exponential { initial: Duration::ZERO, base: Duration::from_secs(1), multiplier: 2.0 };
    let gate =
        if processes == 1 { "gate, 1 process".to_owned() } else { format!("gate, {processes} processes") };
    vec![
        named("fixed", "uploader, fixed ±50 ms", alone(BackoffPolicy::uploader())),
        named("equal", "uploader, equal jitter", alone(uploader(Jitter::EQUAL))),
        named("full", "uploader, full jitter", alone(uploader(Jitter::FULL))),
        named("decorrelated", "decorrelated jitter, 8 s cap", alone(decorrelated())),
        named("default", "default", alone(BackoffPolicy::default())),
        named("retry_after", "Retry-After 2 s, not spread", told(Server::Says(TWO_SECONDS), Duration::ZERO)),
        named("retry_after_spread", "Retry-After 2 s + U[0, 3 s]", told(Server::Says(TWO_SECONDS), SPREAD)),
        named("gate", gate, Behaviour::Gated(GatePolicy::default(), processes)),
        named("constant", "2 s for ever", plain(Schedule::Constant(TWO_SECONDS), TWO_SECONDS)),
        named("uncapped", "doubling without a cap", plain(doubling, Duration::MAX)),
    ]
}

/// What only the table shows.
pub(crate) fn beside(processes: usize) -> Vec<Named> {
    let exact = told(Server::SaysTheTimeLeft, SPREAD);
    let mut more = vec![named("retry_after_exact", "Retry-After with the time left + U[0, 3 s]", exact)];
    for other in [1, 10, 100].into_iter().filter(|other| *other != processes) {
        let title = format!("gate, {other} process{}", if other == 1 { "" } else { "es" });
        more.push(named("gate", title, Behaviour::Gated(GatePolicy::default(), other)));
    }
    more
}
