//! Does a shutdown keep its deadline where the server never answers?

use std::time::{Duration, Instant};

use afterboot_beacon::Beacon;

use crate::collector::{Mode, Server};
use crate::floor::{DATA, EVENT, USER, instant};

const DEADLINE: Duration = Duration::from_millis(300);
const EVENTS: u64 = 1_000;
/// The median may be this late.
const LATE: Duration = Duration::from_millis(100);
/// One in 20 may be later than this.
const VERY_LATE: Duration = Duration::from_secs(1);

/// How much longer than the deadline each of them took, the shortest first; negative where it was done before.
pub(crate) struct Late(Vec<f64>);

pub(crate) fn measure(rounds: usize) -> Result<Late, String> {
    let mut late = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let server = Server::start(Mode::Hung);
        let beacon = Beacon::builder("shop").user(USER).endpoint(&server.url()).build();
        let beacon = beacon.map_err(|error| error.to_string())?;
        for _ in 0..EVENTS {
            beacon.post(EVENT, &DATA);
        }
        let patience = instant() + Duration::from_secs(5);
        while beacon.counters().in_flight == 0 && instant() < patience {
            std::thread::yield_now();
        }
        let begun: Instant = instant();
        let counters = beacon.shutdown_blocking(DEADLINE);
        let took = begun.elapsed();
        if !counters.balances() || counters.dropped_in_all() != EVENTS {
            return Err(format!("all {EVENTS} events should be dropped and counted: {counters:?}"));
        }
        late.push((took.as_secs_f64() - DEADLINE.as_secs_f64()) * 1e3);
    }
    late.sort_by(f64::total_cmp);
    Ok(Late(late))
}

impl Late {
    pub(crate) fn median_ms(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    pub(crate) fn worst_ms(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The median is at most 100 ms late, and 19 of 20 are at most 1 s late.
    pub(crate) fn keeps_the_promise(&self) -> bool {
        let very_late = self.0.iter().filter(|&&late| late > VERY_LATE.as_secs_f64() * 1e3).count();
        self.median_ms() <= LATE.as_secs_f64() * 1e3 && very_late * 20 <= self.0.len()
    }
}
