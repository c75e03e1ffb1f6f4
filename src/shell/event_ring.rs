//! The buffer of the last events, for listeners.

use std::collections::VecDeque;

use crate::base::clock::Stamp;
use crate::core::{Core, Note};
use crate::model::event::Event;
use crate::model::id::Id;
use crate::model::queue::Queue;

/// How many events are kept for the slowest listener.
const KEPT: usize = 1024;

/// The last events, numbered. Written under the governor's lock, so that their order is the order in which
/// things happened; no waker of a listener's is called there.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    events: VecDeque<(Stamp, Event)>,
    /// The number of the first one kept.
    first: u64,
    listeners: usize,
}

impl Ring {
    pub(crate) fn push(&mut self, at: Stamp, event: Event) {
        if self.events.len() == KEPT {
            self.events.pop_front();
            self.first += 1;
        }
        self.events.push_back((at, event));
    }

    pub(crate) fn has_listeners(&self) -> bool {
        self.listeners > 0
    }

    /// Somebody listens from now on. Returns the number of the event that comes next.
    pub(crate) fn listen(&mut self) -> u64 {
        self.listeners += 1;
        self.next()
    }

    /// A listener goes. Where it was the last one, returns what was kept for it, to be dropped without the lock.
    #[must_use]
    pub(crate) fn leave(&mut self) -> Option<VecDeque<(Stamp, Event)>> {
        self.listeners -= 1;
        if self.listeners > 0 {
            return None;
        }
        self.first = self.next();
        Some(std::mem::take(&mut self.events))
    }

    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The event of this number and the number to ask for next; or how many were missed before the first one kept.
    pub(crate) fn read(&self, number: u64) -> Option<(Stamp, Event, u64)> {
        if number < self.first {
            let at = self.events.front().map(|(at, _)| *at)?;
            return Some((at, Event::Lagged { missed: self.first - number }, self.first));
        }
        let (at, event) = self.events.get(usize::try_from(number - self.first).ok()?)?;
        Some((*at, event.clone(), number + 1))
    }
}

/// A public event from the core's note.
pub(crate) fn event(core: &Core, note: Note, now: Stamp) -> Event {
    let task = |id: Id| {
        let record = core.table().get(id);
        (record.map_or("a forgotten task".into(), |r| r.name.shared()), record.map_or(0, |r| r.number))
    };
    match note {
        Note::Declared(id) => {
            let (name, number) = task(id);
            let queue = core.table().get(id).map_or(Queue::Normal, |record| record.queue);
            Event::Declared { task: name, number, queue }
        }
        Note::Started(id) => {
            let (task, number) = task(id);
            Event::Started { task, number }
        }
        Note::Delayed(id) => {
            let (task, number) = task(id);
            Event::Delayed { task, number }
        }
        Note::Ended(id, outcome) => {
            let (task, number) = task(id);
            Event::Ended { task, number, outcome }
        }
        Note::Stuck(id) => {
            let (task, number) = task(id);
            Event::Stuck { task, number }
        }
        Note::Slow(id) => {
            let (task, number) = task(id);
            Event::Slow { task, number }
        }
        Note::Starved(starved) => Event::Starved {
            task: starved.name.shared(),
            number: starved.number,
            since: starved.since.as_duration(),
            behind: starved.behind.iter().map(|(_, name)| name.shared()).collect(),
        },
        Note::GateOpened => Event::GateOpened { gate: core.gate().state(now) },
        Note::LongTask { start, length, who } => Event::LongTask { start: start.as_duration(), length, who },
        Note::Stopped { start, length } => Event::Stopped { start: start.as_duration(), length },
        Note::ShuttingDown => Event::ShuttingDown,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_listener_that_falls_behind_is_told_how_much_it_missed() {
        let mut ring = Ring::default();
        let at = Stamp::from_duration(Duration::ZERO);
        for number in 0..(KEPT as u64 + 5) {
            ring.push(at, Event::Started { task: "t".into(), number });
        }
        assert_eq!(ring.read(2), Some((at, Event::Lagged { missed: 3 }, 5)));
        assert_eq!(ring.read(5), Some((at, Event::Started { task: "t".into(), number: 5 }, 6)));
        assert_eq!(ring.read(ring.next()), None);
    }
}
