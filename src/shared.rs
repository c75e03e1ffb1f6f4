//! The one state of a governor, behind one short lock, and what is done once the lock is released.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::catch::catch_quietly;
use crate::cell::Governed;
use crate::chunks::Chunks;
use crate::clock::{Clock, Stamp};
use crate::event::{Ring, event};
use crate::lane;
use crate::outcome::Outcome;
use crate::quiet::in_flight::InFlight;
use crate::quiet::probe;
use crate::ready::{Ready, Slots};
use crate::scheduler::{Actions, Core, Resolve, Work};
use crate::signals::Signals;
use crate::table::{Id, Spec};
use crate::waiters::Waiters;

/// What governor, handles, lane and probe share.
pub(crate) struct Shared {
    pub(crate) name: Cow<'static, str>,
    pub(crate) runtime: Handle,
    pub(crate) clock: Clock,
    pub(crate) ready: Arc<Ready>,
    pub(crate) in_flight: Arc<InFlight>,
    /// Woken when the run may have come to where somebody waits for it.
    pub(crate) run_changed: Waiters,
    /// Woken when something was written into the ring of events.
    pub(crate) events_changed: Waiters,
    state: Mutex<State>,
}

/// Never held across a poll, a destructor or a waker.
pub(crate) struct State {
    pub(crate) core: Core,
    pub(crate) slots: Slots,
    pub(crate) events: Ring,
    signals: Signals,
    entries: Chunks<Option<Entry>>,
    lane: bool,
    probe: bool,
}

/// What the shell holds of a task that has not ended.
struct Entry {
    cell: Arc<dyn Governed>,
    slot: Option<u32>,
}

/// What is left to do once the lock is released.
#[derive(Default)]
pub(crate) struct Effects {
    settle: Vec<(Arc<dyn Governed>, Resolve)>,
    start_lane: bool,
    kick_lane: bool,
    start_probe: bool,
    announce: bool,
    tell: bool,
    signals: Signals,
}

impl Shared {
    pub(crate) fn new(name: Cow<'static, str>, runtime: Handle, core: Core, signals: Signals) -> Shared {
        let max_in_flight = core.gate().rules().max_in_flight;
        Shared {
            name,
            runtime,
            clock: Clock::start(),
            ready: Arc::new(Ready::default()),
            in_flight: Arc::new(InFlight::new(max_in_flight)),
            run_changed: Waiters::default(),
            events_changed: Waiters::default(),
            state: Mutex::new(State {
                core,
                slots: Slots::default(),
                events: Ring::default(),
                signals,
                entries: Chunks::default(),
                lane: false,
                probe: false,
            }),
        }
    }

    pub(crate) fn multi_thread(&self) -> bool {
        self.runtime.runtime_flavor() != RuntimeFlavor::CurrentThread
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the core what happened and does what follows.
    pub(crate) fn apply<R>(self: &Arc<Self>, event: impl FnOnce(&mut Core, Stamp, &mut Actions) -> R) -> R {
        let mut actions = Actions::default();
        let mut effects = Effects::default();
        let told = {
            let mut state = self.lock();
            let now = self.clock.now();
            let told = event(&mut state.core, now, &mut actions);
            state.carry(now, &self.ready, &mut actions, &mut effects);
            told
        };
        self.perform(&mut effects);
        told
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
            effects.signals = std::mem::take(&mut state.signals);
            state.carry(now, &self.ready, &mut actions, &mut effects);
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
            }
        }
        if std::mem::take(&mut effects.announce) {
            self.run_changed.wake_all();
        }
        if std::mem::take(&mut effects.tell) {
            self.events_changed.wake_all();
        }
        if !effects.signals.is_empty() {
            std::mem::take(&mut effects.signals).spawn(self);
        }
        if std::mem::take(&mut effects.start_lane) {
            self.runtime.spawn(lane::run(lane::Guard::new(Arc::clone(self))));
        }
        if std::mem::take(&mut effects.kick_lane) {
            self.ready.kick();
        }
        if std::mem::take(&mut effects.start_probe) {
            self.runtime.spawn(probe::watch(Arc::clone(self)));
        }
    }

    /// Resolves a handle and drops what is not needed any more; user code, so no lock is held.
    pub(crate) fn settle(&self, cell: Arc<dyn Governed>, resolve: Resolve) {
        let Resolve { name, outcome, still_running, .. } = resolve;
        match &outcome {
            Outcome::Completed | Outcome::Skipped(_) | Outcome::Cancelled(_) => {
                tracing::debug!(target: "afterboot", governor = %self.name, task = %name, %outcome, "task ended");
            }
            _ => {
                tracing::warn!(target: "afterboot", governor = %self.name, task = %name, %outcome, "task ended without a value");
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

impl State {
    fn enter(&mut self, id: Id, cell: Arc<dyn Governed>) {
        while self.entries.len() <= id.place() {
            self.entries.push(None);
        }
        *self.entries.get_mut(id.place()).expect("just made") = Some(Entry { cell, slot: None });
    }

    fn entry(&self, id: Id) -> Option<&Entry> {
        self.entries.get(id.place())?.as_ref().filter(|entry| entry.cell.id() == id)
    }

    /// What the task's handle and the lane share, while it has not ended.
    pub(crate) fn cell(&self, id: Id) -> Option<Arc<dyn Governed>> {
        self.entry(id).map(|entry| Arc::clone(&entry.cell))
    }

    /// Gives the task a slot.
    pub(crate) fn take_slot(&mut self, id: Id, ready: &Arc<Ready>) -> u32 {
        let slot = self.slots.take(id, ready);
        if let Some(Some(entry)) = self.entries.get_mut(id.place()) {
            entry.slot = Some(slot);
        }
        slot
    }

    /// Forgets the task and frees its slot.
    pub(crate) fn leave(&mut self, id: Id) -> Option<Arc<dyn Governed>> {
        let entry = self.entries.get_mut(id.place())?.take_if(|entry| entry.cell.id() == id)?;
        if let Some(slot) = entry.slot {
            self.slots.give_back(slot);
        }
        Some(entry.cell)
    }

    pub(crate) fn name(&self, id: Id) -> Cow<'static, str> {
        self.core.table().get(id).map_or(Cow::Borrowed("a forgotten task"), |record| record.name.clone())
    }

    /// Turns what the core decided into what is to be done without the lock.
    pub(crate) fn carry(&mut self, now: Stamp, ready: &Ready, actions: &mut Actions, effects: &mut Effects) {
        for note in self.core.take_notes() {
            let event = event(&self.core, note, now);
            self.events.push(now, event);
            effects.tell = true;
        }
        // Listeners end when nothing more can come.
        effects.tell |= self.core.is_closed() && !self.core.has_work();
        for resolve in actions.resolve.drain(..) {
            let id = resolve.id;
            let cell = if resolve.still_running { self.cell(id) } else { self.leave(id) };
            if let Some(cell) = cell {
                effects.settle.push((cell, resolve));
            }
        }
        for id in actions.poke.drain(..) {
            if let Some(slot) = self.entry(id).and_then(|entry| entry.slot) {
                ready.push(slot);
            }
        }
        if std::mem::take(&mut actions.lane) {
            if self.lane {
                effects.kick_lane = true;
            } else if self.core.has_work() {
                self.lane = true;
                effects.start_lane = true;
            }
        }
        if std::mem::take(&mut actions.probe) && !self.probe && self.core.wants_probe() {
            self.probe = true;
            effects.start_probe = true;
        }
        effects.announce |= std::mem::take(&mut actions.announce);
    }

    /// Whether there is something to do at once, as far as is known without letting time pass.
    pub(crate) fn glance(&self, now: Stamp, ready: &Ready) -> Work {
        if ready.is_empty() { self.core.work(now) } else { Work::Now }
    }

    /// What the lane may do now. Where everything is over, it has to end: the next task starts another.
    pub(crate) fn work(&mut self, now: Stamp, ready: &Ready) -> Work {
        if !ready.is_empty() {
            return Work::Now;
        }
        let work = self.core.work(now);
        if work == Work::Over {
            self.lane = false;
        }
        work
    }

    pub(crate) fn lane_is_gone(&mut self) {
        self.lane = false;
    }

    pub(crate) fn probe_is_gone(&mut self) {
        self.probe = false;
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}
