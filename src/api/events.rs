//! The stream of a governor's events: bounded, with lost events counted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::event::Event;
use crate::shell::shared::Shared;

/// A stream of a governor's events, starting when [`Governor::events`](crate::Governor::events) is called.
///
/// The last 1,024 events are buffered. A listener that falls further behind receives one [`Event::Lagged`] with the
/// number of lost events, then continues with the oldest buffered one. Without listeners no events are recorded.
#[must_use = "the events are there to be read"]
pub struct Events {
    shared: Arc<Shared>,
    next: u64,
}

impl Events {
    pub(crate) fn listen(shared: &Arc<Shared>) -> Events {
        let mut state = shared.lock();
        state.core.listen(true);
        let next = state.events.listen();
        drop(state);
        Events { shared: Arc::clone(shared), next }
    }

    /// Returns the next event and its time since `build()`, waiting for one if necessary. Returns `None` after a
    /// shutdown, the loss of the runtime, or the drop of the last [`Governor`](crate::Governor), once every task has
    /// ended and every event has been returned.
    ///
    /// # Cancel safety
    /// Safe: an event is consumed only when it is returned.
    pub async fn next(&mut self) -> Option<(Duration, Event)> {
        loop {
            // Made before the look, so that what happens between is not missed.
            let changed = self.shared.events_changed.wait();
            {
                let state = self.shared.lock();
                if let Some((at, event, next)) = state.events.read(self.next) {
                    self.next = next;
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
            let forgotten = state.events.leave();
            if forgotten.is_some() {
                state.core.listen(false);
            }
            forgotten
        };
        drop(forgotten);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("next", &self.next).finish_non_exhaustive()
    }
}
