//! What happens in a run, as a bounded stream that says when it could not keep up.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Stamp;
use crate::gate::GateState;
use crate::outcome::Outcome;
use crate::queue::Queue;
use crate::scheduler::{Core, Note};
use crate::shared::Shared;
use crate::table::Id;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Event {
    /// A task was declared.
    Declared {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
        /// In which queue it waits.
        queue: Queue,
    },
    /// A task got its slot; its first poll comes next.
    Started {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
    },
    /// The monkey's delay of a task began.
    Delayed {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
    },
    /// A task's handle is resolved.
    Ended {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
        /// How it ended.
        outcome: Outcome,
    },
    /// A governed poll has held the lane for `stuck_after`: the lane goes on without it.
    Stuck {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
    },
    /// A task has been running for 30 s.
    Slow {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
    },
    /// A normal task, the first of its queue, waits for a slot, and for a minute none of them got one: those that hold the slots may
    /// never end.
    Starved {
        /// Its name, as declared.
        task: Arc<str>,
        /// How many tasks were declared before it.
        number: u64,
        /// Since when it has waited for a slot, since `build()`.
        since: Duration,
        /// Who holds the slots, as declared: the first 16.
        behind: Vec<Arc<str>>,
    },
    /// The gate of the idle queue opened.
    GateOpened {
        /// By what, when, and what held it last.
        gate: GateState,
    },
    /// A worker's loop did not come round for 50 ms or more. Told when it is first seen: it may go on.
    LongTask {
        /// When it began, since `build()`.
        start: Duration,
        /// How long it had lasted when it was seen.
        length: Duration,
        /// Who filled most of it: a governed task, an observed future, a span; else "unknown", with the worker where that is
        /// known.
        who: Arc<str>,
    },
    /// The whole process did not run for 50 ms or more: it was stopped, or the machine was. Told when it is first seen.
    Stopped {
        /// When it began, since `build()`, to within 10 ms.
        start: Duration,
        /// How long it had lasted when it was seen.
        length: Duration,
    },
    /// A thread was wanted and could not be had; whoever wanted it waits or does without.
    NoThread {
        /// For what: the lane that goes on without a stuck poll, a blocking task, the sampler.
        wanted: Arc<str>,
    },
    /// Nothing new starts any more.
    ShuttingDown,
    /// The listener was too slow: this many events were dropped before the next one.
    Lagged {
        /// How many.
        missed: u64,
    },
}

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

    pub(crate) fn is_heard(&self) -> bool {
        self.listeners > 0
    }

    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The event of this number, or how many were missed before the first one kept.
    fn get(&self, number: u64) -> Option<(Stamp, Event)> {
        if number < self.first {
            let at = self.events.front().map(|(at, _)| *at)?;
            return Some((at, Event::Lagged { missed: self.first - number }));
        }
        self.events.get(usize::try_from(number - self.first).ok()?).cloned()
    }
}

/// A public event from the core's note.
pub(crate) fn event(core: &Core, note: Note, now: Stamp) -> Event {
    let task = |id: Id| {
        let record = core.table().get(id);
        (
            record.map_or("a forgotten task".into(), |r| Arc::from(r.name.as_ref())),
            record.map_or(0, |r| r.number),
        )
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
            task: starved.name.as_ref().into(),
            number: starved.number,
            since: starved.since.as_duration(),
            behind: starved.behind.iter().map(|(_, name)| name.as_ref().into()).collect(),
        },
        Note::GateOpened => Event::GateOpened { gate: core.gate().state(now) },
        Note::LongTask { start, length, who } => Event::LongTask { start: start.as_duration(), length, who },
        Note::Stopped { start, length } => Event::Stopped { start: start.as_duration(), length },
        Note::ShuttingDown => Event::ShuttingDown,
    }
}

/// The events of a governor from the moment of [`Governor::events`](crate::Governor::events) on.
///
/// The last 1,024 are kept. A listener that falls further behind gets one [`Event::Lagged`] with the number it
/// missed, then goes on with the oldest kept. Where nobody listens, nothing is written.
pub struct Events {
    shared: Arc<Shared>,
    next: u64,
}

impl Events {
    pub(crate) fn listen(shared: &Arc<Shared>) -> Events {
        let mut state = shared.lock();
        state.events.listeners += 1;
        state.core.listen(true);
        let next = state.events.next();
        drop(state);
        Events { shared: Arc::clone(shared), next }
    }

    /// The next event and when it happened, since `build()`. `None` after a shutdown, the loss of the
    /// runtime, or the drop of the governor's last handle, when every task has ended and every event was given. Until then it waits.
    ///
    /// # Cancel safety
    /// Safe: an event is taken only when it is given.
    pub async fn next(&mut self) -> Option<(Duration, Event)> {
        loop {
            // Made before the look, so that what happens between is not missed.
            let changed = self.shared.events_changed.wait();
            {
                let state = self.shared.lock();
                if let Some((at, event)) = state.events.get(self.next) {
                    self.next = self.next.max(state.events.first);
                    if !matches!(event, Event::Lagged { .. }) {
                        self.next += 1;
                    }
                    return Some((at.as_duration(), event));
                }
                if state.core.is_over() {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let forgotten = {
            let mut state = self.shared.lock();
            state.events.listeners -= 1;
            if state.events.listeners > 0 {
                return;
            }
            state.core.listen(false);
            state.events.first = state.events.next();
            std::mem::take(&mut state.events.events)
        };
        drop(forgotten);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("next", &self.next).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_falls_behind_is_told_how_much_it_missed() {
        let mut ring = Ring::default();
        let at = Stamp::from_duration(Duration::ZERO);
        for number in 0..(KEPT as u64 + 5) {
            ring.push(at, Event::Started { task: "t".into(), number });
        }
        assert_eq!(ring.get(2), Some((at, Event::Lagged { missed: 3 })));
        assert_eq!(ring.get(5), Some((at, Event::Started { task: "t".into(), number: 5 })));
        assert_eq!(ring.get(ring.next()), None);
    }
}
