//! What happens in a run, as a bounded stream that says when it could not keep up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::event::Event;
use crate::shell::shared::Shared;

/// The events of a governor from the moment of [`Governor::events`](crate::Governor::events) on.
///
/// The last 1,024 are kept. A listener that falls further behind gets one [`Event::Lagged`] with the number it
/// missed, then goes on with the oldest kept. Where nobody listens, nothing is written.
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
