//! Input from the application: ready, stalls, requests in flight.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::stalls::{LONG_TASK, Poll, WORTH_REMEMBERING, Whose};
use crate::core::stops::{Stop, Stops};
use crate::model::id::Id;

use super::actions::Actions;
use super::lifecycle::Phase;
use super::notes::Note;
use super::polling::Polling;
use super::scheduler::Core;

impl Core {
    /// Who is polled now, for attribution; polls that were left behind go on too.
    fn in_progress(&self) -> Vec<Poll> {
        self.polls
            .iter()
            .filter_map(|&Polling { id, since, worker, .. }| {
                let record = self.table.get(id)?;
                let whose = Whose::Governed(record.line);
                Some(Poll { start: since, end: None, name: record.name.shared(), whose, worker })
            })
            .filter(|poll| self.stalls.may_explain(poll))
            .collect()
    }

    /// The probe detected that a worker was blocked from `start` until now.
    pub(crate) fn saw_stall(&mut self, start: Stamp, now: Stamp, worker: Option<usize>) {
        let in_progress = self.in_progress();
        self.take_sighting(start, now, worker, &in_progress);
    }

    /// The witness missed this period, or still misses it: the process did not run, whatever was being polled.
    pub(crate) fn process_stopped(&mut self, stop: Stop) {
        if let Some(Stop { start, end }) = self.stops.learn(stop) {
            let length = end.since(start);
            self.gate.window_mut().stopped(end, length);
            self.note(Note::Stopped { start, length });
        }
    }

    /// Whether the witness is running. Without it a stop cannot be distinguished from a long poll, and nothing is
    /// attributed.
    pub(crate) fn attended(&mut self, attended: bool) {
        self.stalls.unattributed = !attended;
    }

    /// Polls on threads that are no workers keep no worker's loop.
    pub(crate) fn knows_workers(&mut self) {
        self.stalls.on_workers_only = true;
    }

    pub(crate) fn stops(&self) -> &Stops {
        &self.stops
    }

    /// How much of what a poll took until now was its own.
    pub(crate) fn own_time(&self, id: Id, took: Duration, now: Stamp) -> Duration {
        let polling = self.polls.of(id);
        let lost = polling.map_or(Duration::ZERO, |polling| {
            now.since(polling.since).saturating_sub(self.stops.ran(polling.since, now))
        });
        took.saturating_sub(lost)
    }

    /// The sampler saw a poll of the application's that has lasted from `start` until now.
    pub(crate) fn saw_poll(&mut self, start: Stamp, now: Stamp, worker: Option<usize>, name: Arc<str>) {
        let poll = Poll { start, end: None, name, whose: Whose::Application, worker };
        self.take_sighting(start, now, worker, &[poll]);
    }

    /// A poll of the application's ended, long enough to explain a stall.
    pub(crate) fn application_polled(
        &mut self,
        start: Stamp,
        end: Stamp,
        worker: Option<usize>,
        name: Arc<str>,
    ) {
        if self.stops.ran(start, end) >= WORTH_REMEMBERING {
            self.stalls.poll_ended(Poll { start, end: Some(end), name, whose: Whose::Application, worker });
        }
    }

    fn take_sighting(&mut self, start: Stamp, now: Stamp, worker: Option<usize>, in_progress: &[Poll]) {
        // What is left when the process did not run is the task's own; less than a long task is none.
        let ran = self.stops.ran(start, now);
        let start = if ran < now.since(start) { now.before(ran) } else { start };
        if self.stops.any() && ran < LONG_TASK {
            return;
        }
        let sighting = self.stalls.saw(start, now, worker, in_progress);
        if sighting.new {
            self.note(Note::LongTask { start, length: sighting.length, who: Arc::clone(&sighting.who) });
        }
        if !sighting.by_idle_task {
            self.gate.window_mut().long_task(now, sighting.length, Arc::clone(&sighting.who));
        }
        if !sighting.governed {
            self.gate.application_long_task(now, sighting.length, sighting.who);
        }
    }

    /// The application tells of a long task that ends now.
    pub(crate) fn record_long_task(&mut self, who: Arc<str>, length: Duration, now: Stamp) {
        if length < LONG_TASK {
            return;
        }
        let start = now.before(length);
        self.stalls.record(start, now, Arc::clone(&who));
        self.gate.window_mut().long_task(now, length, Arc::clone(&who));
        self.gate.application_long_task(now, length, Arc::clone(&who));
        self.note(Note::LongTask { start, length, who });
    }

    /// The probe has told all it saw until now.
    pub(crate) fn probe_tick(&mut self, now: Stamp, actions: &mut Actions) {
        self.cost.looks += 1;
        if self.gate.check_window(now) {
            self.note(Note::GateOpened);
            actions.lane = true;
        }
    }

    pub(crate) fn wants_probe(&self) -> bool {
        self.idle_tasks.unstarted > 0 && self.lifecycle.phase == Phase::Open
    }

    /// A request of the application begins.
    pub(crate) fn request_enters(&mut self, name: Cow<'static, str>, now: Stamp) {
        self.in_flight.enter(name);
        self.tell_the_window(now);
    }

    /// A request of the application is over.
    pub(crate) fn request_leaves(&mut self, name: &str, now: Stamp, actions: &mut Actions) {
        self.in_flight.leave(name);
        if self.in_flight.total() == self.gate.rules().max_in_flight {
            self.gate.window_mut().in_flight_back(now);
            // A held start may come sooner now.
            actions.lane |= self.holds.now.is_some();
        }
        self.tell_the_window(now);
    }

    /// While an idle task waits, what is over the limit is kept by name, as it stands.
    fn tell_the_window(&mut self, now: Stamp) {
        if self.in_flight.total() > self.gate.rules().max_in_flight && self.idle_tasks.unstarted > 0 {
            let held = self.in_flight.describe();
            self.gate.window_mut().in_flight_over(held, now);
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.total()
    }

    /// An idle task waits from now on: with the first one, somebody begins to look whether it is quiet.
    pub(super) fn idle_joins(&mut self, now: Stamp) {
        if self.idle_tasks.unstarted == 0 {
            self.gate.idle_waits(now);
        }
        self.idle_tasks.unstarted += 1;
        self.tell_the_window(now);
    }

    /// An idle task waits no more: with the last one, nobody looks.
    pub(super) fn idle_leaves(&mut self, now: Stamp) {
        self.idle_tasks.unstarted -= 1;
        if self.idle_tasks.unstarted == 0 {
            self.gate.no_idle_waits(now);
        }
    }

    pub(crate) fn ready(&mut self, now: Stamp) {
        self.gate.ready(now);
    }

    pub(crate) fn open_gate(&mut self, now: Stamp, actions: &mut Actions) {
        if self.gate.open_manually(now) {
            self.note(Note::GateOpened);
        }
        actions.lane = true;
    }

    /// The future that takes the window's place resolved, or failed.
    pub(crate) fn interactive(&mut self, failed: Option<Arc<str>>, now: Stamp, actions: &mut Actions) {
        if self.gate.interactive(failed, now) {
            self.note(Note::GateOpened);
        }
        actions.lane = true;
    }
}
