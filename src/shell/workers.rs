//! The workers of a multi_thread runtime: their counters, and when each last returned to its event loop. One for all
//! governors of a runtime.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use tokio::runtime::{Handle, Id, RuntimeFlavor, RuntimeMetrics, worker_index};
use tokio::time::Instant;

use crate::core::rounds::{Counters, Gap, Rounds};

/// The runtimes that have a governor; those that are gone fall out.
static ALL: Mutex<Vec<Weak<Workers>>> = Mutex::new(Vec::new());

/// Shared by all governors of one runtime: what one knows of a worker's loop, the others' probes must know too.
pub(crate) struct Workers {
    runtime: Id,
    metrics: RuntimeMetrics,
    /// How many probes look. An atomic, because it is read before and after each governed poll; it guards nothing, so
    /// `Relaxed` will do: a round too few or too many at the edge of a watch is told to a probe that has just begun anew.
    probes: AtomicUsize,
    rounds: Mutex<Rounds>,
}

impl Workers {
    /// Those of this runtime; none on a current_thread one, whose loop the probe shares.
    pub(crate) fn of(runtime: &Handle) -> Option<Arc<Workers>> {
        if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return None;
        }
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|workers| workers.strong_count() > 0);
        if let Some(known) = find(&all, runtime.id()) {
            return Some(known);
        }
        let workers = Arc::new(Workers {
            runtime: runtime.id(),
            metrics: runtime.metrics(),
            probes: AtomicUsize::new(0),
            rounds: Mutex::default(),
        });
        all.push(Arc::downgrade(&workers));
        Some(workers)
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counters(&self, worker: usize) -> Counters {
        Counters {
            parks: self.metrics.worker_park_unpark_count(worker),
            busy: self.metrics.worker_total_busy_duration(worker),
        }
    }

    fn all_counters(&self) -> impl Iterator<Item = Counters> {
        (0..self.metrics.num_workers()).map(|worker| self.counters(worker))
    }

    /// This thread's loop has come round, if it is one of these workers' and somebody wants to know.
    pub(crate) fn came_round(&self, now: Instant) {
        if self.probes.load(Ordering::Relaxed) == 0 {
            return;
        }
        if let Some(worker) = worker_index().filter(|worker| *worker < self.metrics.num_workers()) {
            let counters = self.counters(worker);
            self.rounds().came_round(worker, counters, thread::current().id(), now.into_std());
        }
    }

    /// A probe begins to look.
    pub(crate) fn watch(self: Arc<Self>, now: Instant) -> Watch {
        let mut rounds = self.rounds();
        if self.probes.fetch_add(1, Ordering::Relaxed) == 0 {
            rounds.reset(self.all_counters(), now.into_std());
        }
        let told = rounds.ended();
        drop(rounds);
        Watch { workers: self, told }
    }
}

fn find(all: &[Weak<Workers>], runtime: Id) -> Option<Arc<Workers>> {
    all.iter().filter_map(Weak::upgrade).find(|workers| workers.runtime == runtime)
}

/// The worker that this code runs on has returned to its event loop, in whatever runtime.
pub(crate) fn came_round_here() {
    let Ok(runtime) = Handle::try_current() else { return };
    let known = find(&ALL.lock().unwrap_or_else(PoisonError::into_inner), runtime.id());
    if let Some(workers) = known {
        workers.came_round(Instant::now());
    }
}

/// One probe's view of the workers, while it looks.
pub(crate) struct Watch {
    workers: Arc<Workers>,
    /// The last gap that this probe was told of.
    told: u64,
}

impl Watch {
    /// The new periods of a long task's length in which a worker was blocked.
    pub(crate) fn look(&mut self, now: Instant) -> Vec<Gap> {
        // That the probe is polled here shows that this worker's loop has come round too.
        self.workers.came_round(now);
        self.workers.rounds().look(self.workers.all_counters(), &mut self.told, now.into_std())
    }

    /// When to look once more, if sooner than planned.
    pub(crate) fn look_again(&self, last: Instant) -> Option<Instant> {
        self.workers.rounds().look_again(last.into_std()).map(Instant::from_std)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.workers.probes.fetch_sub(1, Ordering::Relaxed);
    }
}
