//! The state behind the governor's one lock, and the effects that follow once the lock is released.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::base::chunks::Chunks;
use crate::base::clock::Stamp;
use crate::base::threads::{self, Missed};
use crate::core::handover::Lanes;
use crate::core::handover::Place;
use crate::core::{Actions, Core, Resolve, Starved, Turn, Work};
use crate::model::event::Event;
use crate::model::id::Id;
use crate::model::name::Name;
use crate::model::outcome::Outcome;
use crate::shell::event_ring::{Ring, event};
use crate::shell::governed::Governed;
use crate::shell::ready::{Ready, Slots};
use crate::shell::signals::Signals;

/// Never held across a poll, a destructor or a waker.
pub(crate) struct State {
    pub(crate) core: Core,
    pub(crate) slots: Slots,
    pub(crate) events: Ring,
    multi_thread: bool,
    signals: Signals,
    entries: Chunks<Option<Entry>>,
    lanes: Lanes,
    watchdog: bool,
    /// The system refused the current lane's thread.
    refused: bool,
    pub(crate) threads_missed: Missed,
    /// The shell's; see there.
    pub(crate) unsettled: Arc<AtomicUsize>,
    probe: bool,
    sampler: bool,
    /// The last of the witness's stretches that the core knows.
    pub(crate) witness_told: u64,
}

/// What the shell holds of a task that has not ended.
struct Entry {
    cell: Arc<dyn Governed>,
    slot: Option<u32>,
}

/// What is to run beside whoever calls.
#[derive(Debug)]
pub(crate) enum Start {
    Signals(Signals),
    /// The lane of this number.
    Lane(u64, Place),
    Watchdog,
    Probe,
}

/// What is left to do once the lock is released.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) settle: Vec<(Arc<dyn Governed>, Resolve)>,
    pub(crate) dropped: Vec<(Arc<dyn Governed>, Name, Outcome)>,
    pub(crate) start: Vec<Start>,
    pub(crate) wake_lane: bool,
    pub(crate) stop_probe: bool,
    pub(crate) run_changed: bool,
    pub(crate) notify_listeners: bool,
    /// To be told in the log.
    pub(crate) starved: Option<Box<Starved>>,
    /// Names of tasks to warn of.
    pub(crate) slow: Vec<Name>,
}

impl Effects {
    /// Wakes the lane, where `needed`.
    pub(crate) fn wake_lane(&mut self, needed: bool) {
        self.wake_lane |= needed;
    }
}

impl State {
    pub(crate) fn new(
        mut core: Core,
        signals: Signals,
        multi_thread: bool,
        unsettled: Arc<AtomicUsize>,
    ) -> State {
        if multi_thread {
            core.knows_workers();
        }
        State {
            core,
            slots: Slots::default(),
            events: Ring::default(),
            multi_thread,
            signals,
            entries: Chunks::default(),
            lanes: Lanes::default(),
            watchdog: false,
            refused: false,
            threads_missed: Missed::default(),
            unsettled,
            probe: false,
            sampler: false,
            witness_told: 0,
        }
    }

    pub(crate) fn enter(&mut self, id: Id, cell: Arc<dyn Governed>) {
        while self.entries.len() <= id.place() {
            self.entries.push(None);
        }
        *self.entries.get_mut(id.place()).expect("just made") = Some(Entry { cell, slot: None });
    }

    /// They are polled from the first task on.
    pub(crate) fn start_signals(&mut self, effects: &mut Effects) {
        if !self.signals.is_empty() {
            effects.start.push(Start::Signals(std::mem::take(&mut self.signals)));
        }
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

    /// Tells the core who was woken, and asks whose turn it is; with the slot.
    pub(crate) fn pick(
        &mut self,
        now: Stamp,
        ready: &Arc<Ready>,
        actions: &mut Actions,
    ) -> Option<(Turn, u32)> {
        while let Some((slot, at)) = ready.pop() {
            if let Some((id, _)) = self.slots.get(slot) {
                self.core.woken(id, at);
            }
        }
        let turn = self.core.next(now, actions)?;
        let slot = if turn.starts { self.take_slot(turn.id, ready) } else { self.entry(turn.id)?.slot? };
        Some((turn, slot))
    }

    /// Frees the task's slot; it rests.
    pub(crate) fn give_slot_back(&mut self, id: Id) {
        let entry = self.entries.get_mut(id.place()).and_then(Option::as_mut);
        if let Some(slot) = entry.and_then(|entry| entry.slot.take()) {
            self.slots.give_back(slot);
        }
    }

    /// Forgets the task and frees its slot.
    pub(crate) fn leave(&mut self, id: Id) -> Option<Arc<dyn Governed>> {
        let entry = self.entries.get_mut(id.place())?.take_if(|entry| entry.cell.id() == id)?;
        if let Some(slot) = entry.slot {
            self.slots.give_back(slot);
        }
        Some(entry.cell)
    }

    /// How a task ended whose body may still run.
    pub(crate) fn outcome_of(&self, id: Id) -> Outcome {
        let record = self.core.table().get(id);
        record.and_then(|record| record.outcome.clone()).unwrap_or(Outcome::Abandoned)
    }

    pub(crate) fn name(&self, id: Id) -> Name {
        self.core.table().get(id).map_or("a forgotten task".into(), |record| record.name.clone())
    }

    /// Turns what the core decided into what is to be done without the lock.
    pub(crate) fn apply_actions(
        &mut self,
        now: Stamp,
        ready: &Ready,
        actions: &mut Actions,
        effects: &mut Effects,
    ) {
        for note in self.core.take_notes() {
            let event = event(&self.core, note, now);
            self.events.push(now, event);
            effects.notify_listeners = true;
        }
        // Listeners end when nothing more can come.
        effects.notify_listeners |= self.core.is_over();
        for resolve in actions.resolve.drain(..) {
            let id = resolve.id;
            let cell = if resolve.still_running { self.cell(id) } else { self.leave(id) };
            if let Some(cell) = cell {
                self.unsettled.fetch_add(1, Ordering::AcqRel);
                effects.settle.push((cell, resolve));
            }
        }
        for id in actions.dropped.drain(..) {
            let (name, outcome) = (self.name(id), self.outcome_of(id));
            effects.dropped.extend(self.leave(id).map(|cell| (cell, name, outcome)));
        }
        for id in actions.repoll.drain(..) {
            if let Some(slot) = self.entry(id).and_then(|entry| entry.slot) {
                ready.push(slot);
            }
        }
        if std::mem::take(&mut actions.lane) {
            if self.lanes.any() {
                effects.wake_lane = true;
            } else if self.core.has_work() {
                self.next_lane(Place::Worker, effects);
            }
        }
        // Whatever makes an idle task wait.
        if !self.probe && self.core.wants_probe() {
            self.probe = true;
            effects.start.push(Start::Probe);
        }
        effects.stop_probe |= self.probe && !self.core.wants_probe();
        effects.run_changed |= std::mem::take(&mut actions.run_changed);
        if actions.starved.is_some() {
            effects.starved = actions.starved.take();
        }
        effects.slow.extend(actions.slow.drain(..).map(|id| self.name(id)));
        self.core.forget_retired();
    }

    /// Whether the lane may go on at once, without another look.
    pub(crate) fn goes_on(&self, lane: u64, now: Stamp, ready: &Ready) -> bool {
        self.is_current_lane(lane) && (!ready.is_empty() || self.core.work(now) == Work::Now)
    }

    /// Makes another lane the current one.
    fn next_lane(&mut self, place: Place, effects: &mut Effects) {
        self.refused = false;
        effects.start.push(Start::Lane(self.lanes.next(place == Place::Pool), place));
        // The lane that was current may be waiting: it has to see that it is not any more.
        effects.wake_lane = true;
        if place == Place::Worker && self.multi_thread && !self.watchdog {
            self.watchdog = true;
            effects.start.push(Start::Watchdog);
        }
    }

    pub(crate) fn is_current_lane(&self, number: u64) -> bool {
        self.lanes.is_current(number)
    }

    /// The poll of this lane has returned: whether it is the current one, or becomes that again because the thread that its
    /// successor needs has not been had.
    pub(crate) fn goes_on_as(&mut self, number: &mut u64, now: Stamp, effects: &mut Effects) -> bool {
        if let Some(new) = self.lanes.takes_back(*number) {
            *number = new;
            if !std::mem::take(&mut self.refused) {
                self.thread_refused(threads::LANE, now, effects);
            }
        }
        self.is_current_lane(*number)
    }

    /// The system refuses the thread on which this lane is to go on.
    pub(crate) fn lane_refused(&mut self, number: u64, now: Stamp, effects: &mut Effects) {
        self.refused |= self.is_current_lane(number) && self.lanes.awaits_thread();
        self.thread_refused(threads::LANE, now, effects);
    }

    /// Whether the system should be asked again for a lane's thread.
    pub(crate) fn asks_again(&self) -> bool {
        self.refused && self.lanes.awaits_thread()
    }

    /// The pool has a thread: the lane that waits for it is the first in its line.
    pub(crate) fn has_a_thread(&mut self) {
        self.refused = false;
    }

    pub(crate) fn thread_refused(&mut self, wanted: &'static str, now: Stamp, effects: &mut Effects) {
        self.threads_missed.add(wanted, now);
        if self.events.has_listeners() {
            self.events.push(now, Event::NoThread { wanted: wanted.into() });
            effects.notify_listeners = true;
        }
    }

    /// What the lane may do now. Where everything is over, it has to end: the next task starts another. So has
    /// one on the blocking pool when no worker is held up any more.
    pub(crate) fn work(
        &mut self,
        lane: (u64, Place),
        now: Stamp,
        ready: &Ready,
        effects: &mut Effects,
    ) -> Work {
        let (number, place) = lane;
        if !self.lanes.looks(number) {
            return Work::Over;
        }
        if place == Place::Pool && !self.core.anyone_stuck() && self.core.has_work() {
            self.next_lane(Place::Worker, effects);
            return Work::Over;
        }
        if !ready.is_empty() {
            return Work::Now;
        }
        let work = if self.core.is_lost() { Work::Over } else { self.core.work(now) };
        if work == Work::Over {
            self.lanes.ends(number);
        }
        work
    }

    /// Where the lane's poll has lasted `limit`, another lane takes over, off the workers: the stuck poll keeps
    /// one of them already. The name of the stuck task.
    pub(crate) fn take_over(
        &mut self,
        limit: Duration,
        now: Stamp,
        actions: &mut Actions,
        effects: &mut Effects,
    ) -> Option<(Name, Duration)> {
        let (id, lasted) = self.core.give_up_stuck(limit, now, actions)?;
        self.core.advance(now, actions);
        self.next_lane(Place::Pool, effects);
        Some((self.name(id), lasted))
    }

    /// Whether the watchdog is needed; where it is not, it ends.
    pub(crate) fn wants_watchdog(&mut self) -> bool {
        self.watchdog = self.lanes.any() || self.core.anyone_stuck();
        self.watchdog
    }

    pub(crate) fn lane_is_gone(&mut self, number: u64) {
        self.lanes.ends(number);
    }

    /// Whether a sampler has to be started: none runs.
    pub(crate) fn start_sampler(&mut self) -> bool {
        !std::mem::replace(&mut self.sampler, true)
    }

    /// The sampler has no thread: the next probe tries anew.
    pub(crate) fn no_sampler(&mut self) {
        self.sampler = false;
    }

    /// Whether the sampler goes on; where it does not, it ends.
    pub(crate) fn keeps_sampler(&mut self) -> bool {
        self.sampler = self.core.wants_probe();
        self.sampler
    }

    /// Whether the probe is not needed any more and has to end.
    pub(crate) fn retire_probe(&mut self) -> bool {
        self.probe = self.core.wants_probe();
        !self.probe
    }
}
