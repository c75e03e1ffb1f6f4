//! What governor, handles, lane and probe share: the one state behind one short lock, and what is done once the lock
//! is released.

use std::borrow::Cow;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::base::catch::{catch_quietly, logged};
use crate::base::clock::{Clock, Stamp};
use crate::base::waiters::Waiters;
use crate::core::stops::Stop;
use crate::core::table::Spec;
use crate::core::{Actions, Core, Resolve, SLOW, Starved};
use crate::model::id::Id;
use crate::model::outcome::Outcome;
use crate::shell::governed::Governed;
use crate::shell::ready::Ready;
use crate::shell::signals::Signals;
use crate::shell::state::{Effects, Start, State};
use crate::shell::witness;
use crate::shell::workers::Workers;

/// What governor, handles, lane and probe share.
pub(crate) struct Shared {
    pub(crate) name: Cow<'static, str>,
    pub(crate) runtime: Handle,
    pub(crate) clock: Clock,
    pub(crate) ready: Arc<Ready>,
    /// The workers of a multi_thread runtime.
    pub(crate) workers: Option<Arc<Workers>>,
    /// Whether a sampler's thread watches observed futures.
    pub(crate) samples: bool,
    /// How long one governed poll may hold the lane.
    pub(crate) stuck_after: Duration,
    /// Woken when the probe is not needed any more.
    pub(crate) probe_over: Waiters,
    /// Woken when a lane has ended, for the watchdog.
    pub(crate) lane_ended: Waiters,
    /// Woken when the run may have come to where somebody waits for it.
    pub(crate) run_changed: Waiters,
    /// How many have ended and are not settled yet. Counted up under the lock and down without it: a second turn at the lock
    /// for each end would cost as much as the first.
    pub(crate) unsettled: Arc<AtomicUsize>,
    /// Woken when something was written into the ring of events.
    pub(crate) events_changed: Waiters,
    /// Starts what runs beside the callers. Given by whoever builds this: the lane and its like know this type, and it does
    /// not know them.
    start: fn(&Arc<Shared>, Start),
    state: Mutex<State>,
}

/// What the shell needs to know of the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) stuck_after: Duration,
    pub(crate) samples: bool,
}

impl Shared {
    pub(crate) fn new(
        name: Cow<'static, str>,
        runtime: Handle,
        core: Core,
        signals: Signals,
        limits: Limits,
        start: fn(&Arc<Shared>, Start),
    ) -> Shared {
        let workers = Workers::of(&runtime);
        let multi_thread = workers.is_some();
        let clock = Clock::start(runtime.clone());
        let unsettled = Arc::new(AtomicUsize::new(0));
        let ready = Arc::new(Ready::new(core.records_segments().then(|| clock.clone())));
        Shared {
            name,
            runtime,
            clock,
            ready,
            workers,
            samples: limits.samples,
            stuck_after: limits.stuck_after,
            probe_over: Waiters::default(),
            lane_ended: Waiters::default(),
            run_changed: Waiters::default(),
            unsettled: Arc::clone(&unsettled),
            events_changed: Waiters::default(),
            start,
            state: Mutex::new(State::new(core, signals, multi_thread, Arc::clone(&unsettled))),
        }
    }

    /// The worker that this code runs on has returned to its event loop: what it did until now was no long task.
    pub(crate) fn came_round(&self, now: Stamp) {
        if let Some(workers) = &self.workers {
            workers.came_round(self.clock.instant(now));
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the core when the process did not run: before it judges how long something held a worker.
    pub(crate) fn hear_witness(&self, state: &mut State) {
        let testimony = witness::ask(&mut state.witness_told);
        for (start, end) in testimony.missed {
            if let (Some(start), Some(end)) = (self.clock.real(start), self.clock.real(end)) {
                state.core.process_stopped(Stop { start, end });
            }
        }
        state.core.attended(testimony.attended);
    }

    /// As [`apply`](Shared::apply), where the core judges how long something held a worker.
    pub(crate) fn judge<R>(self: &Arc<Self>, event: impl FnOnce(&mut Core, Stamp, &mut Actions) -> R) -> R {
        let mut state = self.lock();
        self.hear_witness(&mut state);
        drop(state);
        self.apply(event)
    }

    /// Tells the core what happened and does what follows.
    pub(crate) fn apply<R>(self: &Arc<Self>, event: impl FnOnce(&mut Core, Stamp, &mut Actions) -> R) -> R {
        let mut actions = Actions::default();
        let mut effects = Effects::default();
        let returned = {
            let mut state = self.lock();
            let now = self.clock.now();
            let returned = event(&mut state.core, now, &mut actions);
            state.apply_actions(now, &self.ready, &mut actions, &mut effects);
            returned
        };
        self.perform(&mut effects);
        returned
    }

    /// Writes down what the shell itself has to say.
    pub(crate) fn update(self: &Arc<Self>, what: impl FnOnce(&mut State, Stamp, &mut Effects)) {
        let mut effects = Effects::default();
        {
            let mut state = self.lock();
            let now = self.clock.now();
            what(&mut state, now, &mut effects);
        }
        self.perform(&mut effects);
    }

    /// Takes a task in; `cell` makes what its handle and the lane share.
    pub(crate) fn declare<C: Governed + 'static>(
        self: &Arc<Self>,
        spec: Spec,
        cell: impl FnOnce(Id) -> C,
    ) -> Arc<C> {
        let mut actions = Actions::default();
        let mut effects = Effects::default();
        let cell = {
            let mut state = self.lock();
            let now = self.clock.now();
            let id = state.core.declare(spec, now, &mut actions);
            let cell = Arc::new(cell(id));
            state.enter(id, Arc::clone(&cell) as Arc<dyn Governed>);
            state.start_signals(&mut effects);
            state.apply_actions(now, &self.ready, &mut actions, &mut effects);
            cell
        };
        self.perform(&mut effects);
        cell
    }

    /// Does what had to wait for the lock to be released. Leaves `effects` empty, for use again.
    pub(crate) fn perform(self: &Arc<Self>, effects: &mut Effects) {
        if !effects.settle.is_empty() {
            // A destructor may need the runtime, also where a handle is cancelled from a foreign thread.
            let _entered = self.runtime.enter();
            for (cell, resolve) in effects.settle.drain(..) {
                self.settle(cell, resolve);
                self.settled();
            }
        }
        for (cell, name, outcome) in effects.dropped.drain(..) {
            // The handle has its outcome; a closure that has begun goes on.
            cell.settle(outcome, name);
        }
        if let Some(starved) = effects.starved.take() {
            let Starved { name, behind, .. } = *starved;
            let behind: Vec<_> = behind.into_iter().map(|(_, name)| name.into_text()).collect();
            logged(|| {
                tracing::warn!(target: "afterboot", governor = %self.name, task = %name, ?behind, "no slot for a minute: none of the running tasks has ended");
            });
        }
        for task in effects.slow.drain(..) {
            logged(|| {
                tracing::warn!(target: "afterboot", governor = %self.name, %task, "running for {} s", SLOW.as_secs());
            });
        }
        if std::mem::take(&mut effects.run_changed) {
            self.run_changed.wake_all();
        }
        if std::mem::take(&mut effects.notify_listeners) {
            self.events_changed.wake_all();
        }
        for wanted in effects.start.drain(..) {
            (self.start)(self, wanted);
        }
        if std::mem::take(&mut effects.wake_lane) {
            self.ready.wake_lane();
        }
        if std::mem::take(&mut effects.stop_probe) {
            self.probe_over.wake_all();
        }
    }

    /// Resolves a handle and drops what is not needed any more; user code, so no lock is held.
    pub(crate) fn settle(&self, cell: Arc<dyn Governed>, resolve: Resolve) {
        let Resolve { name, outcome, still_running, .. } = resolve;
        match &outcome {
            Outcome::Completed | Outcome::Skipped(_) | Outcome::Cancelled(_) => {
                logged(
                    || tracing::debug!(target: "afterboot", governor = %self.name, task = %name, %outcome, "task ended"),
                );
            }
            _ => {
                logged(
                    || tracing::warn!(target: "afterboot", governor = %self.name, task = %name, %outcome, "task did not complete"),
                );
            }
        }
        if still_running {
            cell.resolve_early(outcome, name);
        } else {
            cell.settle(outcome, name);
        }
        catch_quietly("the destructor of a value nobody claimed", || drop(cell));
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}
