//! The probe: one task that looks whether the loops come round. It runs while an idle task waits for the gate
//! and not a moment longer.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::RuntimeMetrics;
use tokio::time::timeout_at;

use crate::clock::Stamp;
use crate::shared::Shared;

use super::stalls::LONG_TASK;

/// How long the probe sleeps between two looks. tokio rounds up to whole milliseconds, so a look comes every 6
/// to 7 ms: a stall of 60 ms is late by at least 52 ms whenever in between it began, and one of 50 ms by no
/// more than 51.
const PERIOD: Duration = Duration::from_millis(6);
/// A look that comes this much too late means that a loop did not come round for [`LONG_TASK`]; the one
/// millisecond is the timer's own step.
const LATE: Duration = Duration::from_millis(51);

/// The body of the probe's task.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut workers =
        shared.multi_thread().then(|| Workers::new(shared.runtime.metrics(), shared.clock.now()));
    let mut last = shared.clock.now();
    loop {
        let look_again = workers.as_ref().and_then(|workers| workers.look_again(last));
        let planned = look_again.into_iter().fold(last.after(PERIOD), Stamp::min);
        // Made before the look, so that the end of the need is not missed.
        let over = shared.probe_over.wait();
        if shared.lock().retire_probe() {
            return;
        }
        if timeout_at(shared.clock.instant(planned), over).await.is_ok() {
            continue;
        }
        let now = shared.clock.now();
        let late = now.since(planned);
        shared.apply(|core, _, actions| {
            if late >= LATE {
                core.saw_stall(planned, now, None);
            }
            for (worker, since) in workers.iter_mut().flat_map(|workers| workers.look(now)) {
                core.saw_stall(since, now, Some(worker));
            }
            core.beat(now, actions);
        });
        last = now;
    }
}

/// What the workers' own counters say. A worker that is awake (its park count is even) and whose counters do
/// not move has not come round its loop; the busy time alone does not move during a poll either way.
#[derive(Debug)]
struct Workers {
    metrics: RuntimeMetrics,
    seen: Vec<Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    parks: u64,
    busy: Duration,
    /// Since when both have been like this.
    since: Stamp,
}

impl Workers {
    fn new(metrics: RuntimeMetrics, now: Stamp) -> Workers {
        let seen = (0..metrics.num_workers())
            .map(|worker| Seen {
                parks: metrics.worker_park_unpark_count(worker),
                busy: metrics.worker_total_busy_duration(worker),
                since: now,
            })
            .collect();
        Workers { metrics, seen }
    }

    /// The workers that have not come round for a long task's time, and since when.
    fn look(&mut self, now: Stamp) -> Vec<(usize, Stamp)> {
        let mut stuck = Vec::new();
        for (worker, seen) in self.seen.iter_mut().enumerate() {
            let parks = self.metrics.worker_park_unpark_count(worker);
            let busy = self.metrics.worker_total_busy_duration(worker);
            let parked = parks % 2 == 1;
            if parked || parks != seen.parks || busy != seen.busy {
                *seen = Seen { parks, busy, since: now };
            } else if now.since(seen.since) >= LONG_TASK {
                stuck.push((worker, seen.since));
            }
        }
        stuck
    }

    /// When a worker that has not moved since the last look will have been still for long enough: looking just
    /// then sees short stalls that a look at fixed times would miss.
    fn look_again(&self, last: Stamp) -> Option<Stamp> {
        self.seen.iter().map(|seen| seen.since.after(LONG_TASK)).filter(|at| *at > last).min()
    }
}
