//! What is heard of the application: ready, stalls, requests in flight.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Stamp;
use crate::queue::Queue;
use crate::quiet::stalls::LONG_TASK;

use super::{Actions, Core, Note};

impl Core {
    /// Who is polled now, for attribution.
    fn in_progress(&self) -> Option<(Stamp, Queue, Arc<str>)> {
        let polling = self.polling?;
        let record = self.table.get(polling.id)?;
        Some((polling.since, record.line, record.name.as_ref().into()))
    }

    /// The probe saw a loop that did not come round from `start` until now.
    pub(crate) fn saw_stall(&mut self, start: Stamp, now: Stamp, worker: Option<usize>) {
        let sighting = self.stalls.saw(start, now, worker, self.in_progress());
        if sighting.new {
            self.note(Note::LongTask { start, length: sighting.length, who: Arc::clone(&sighting.who) });
        }
        if !sighting.by_idle_task {
            self.gate.window_mut().long_task(now, sighting.length, sighting.who);
        }
    }

    /// The application tells of a long task that ends now.
    pub(crate) fn record_long_task(&mut self, who: Arc<str>, length: Duration, now: Stamp) {
        if length < LONG_TASK {
            return;
        }
        let start = Stamp::from_duration(now.as_duration().saturating_sub(length));
        self.stalls.told(start, now, Arc::clone(&who));
        self.gate.window_mut().long_task(now, length, Arc::clone(&who));
        self.note(Note::LongTask { start, length, who });
    }

    /// The probe has told all it saw until now. False where it is not needed any more.
    pub(crate) fn beat(&mut self, now: Stamp, actions: &mut Actions) -> bool {
        self.cost.looks += 1;
        if self.gate.check_window(now) {
            self.note(Note::GateOpened);
            actions.lane = true;
        }
        self.wants_probe()
    }

    pub(crate) fn wants_probe(&self) -> bool {
        !self.gate.is_open() && self.idle_unstarted > 0
    }

    /// Over the in-flight limit: which guards are held. `None`: back at or under it.
    pub(crate) fn in_flight(&mut self, over: Option<Arc<str>>, now: Stamp) {
        match over {
            Some(held) => self.gate.window_mut().in_flight_over(held),
            None => self.gate.window_mut().in_flight_back(now),
        }
    }

    pub(crate) fn ready(&mut self, now: Stamp) {
        self.gate.ready(now);
    }

    pub(crate) fn open_gate(&mut self, now: Stamp, actions: &mut Actions) {
        if self.gate.open_by_hand(now) {
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
