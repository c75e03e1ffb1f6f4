//! Receiving the beacon's own events.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::engine::BeaconEvent;

/// What [`BeaconEvents::next`] returns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// The next event.
    Event(BeaconEvent),
    /// The receiver fell behind, and this many events were discarded.
    Lagged(u64),
}

/// A bounded receiver of [`BeaconEvent`]s, made by [`Beacon::events`](crate::Beacon::events). It buffers 256 events; a
/// receiver that falls behind loses the oldest and gets [`Next::Lagged`].
#[derive(Debug)]
#[must_use = "a receiver does nothing unless it is read"]
pub struct BeaconEvents(broadcast::Receiver<BeaconEvent>);

impl BeaconEvents {
    pub(crate) fn new(receiver: broadcast::Receiver<BeaconEvent>) -> BeaconEvents {
        BeaconEvents(receiver)
    }

    /// Waits for the next event. Returns `None` once the beacon is gone and all events are read. Works on any runtime.
    ///
    /// # Cancel safety
    /// No event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Next> {
        match self.0.recv().await {
            Ok(event) => Some(Next::Event(event)),
            Err(RecvError::Lagged(count)) => Some(Next::Lagged(count)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Returns the next event if one is buffered.
    pub fn try_next(&mut self) -> Option<Next> {
        match self.0.try_recv() {
            Ok(event) => Some(Next::Event(event)),
            Err(TryRecvError::Lagged(count)) => Some(Next::Lagged(count)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}
