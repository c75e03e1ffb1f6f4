//! What the beacon does, as it does it.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::engine::BeaconEvent;

/// What a receiver gets next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A step.
    Event(BeaconEvent),
    /// The receiver was too slow: so many steps are gone.
    Lagged(u64),
}

/// A bounded stream of [`BeaconEvent`]s: a receiver that does not keep up loses the oldest of 256 and is told how many.
#[derive(Debug)]
pub struct BeaconEvents(broadcast::Receiver<BeaconEvent>);

impl BeaconEvents {
    pub(crate) fn new(receiver: broadcast::Receiver<BeaconEvent>) -> BeaconEvents {
        BeaconEvents(receiver)
    }

    /// The next step; none when the beacon has ended and all was read. Works on any runtime.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Next> {
        match self.0.recv().await {
            Ok(event) => Some(Next::Event(event)),
            Err(RecvError::Lagged(count)) => Some(Next::Lagged(count)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next step if there is one already.
    pub fn try_next(&mut self) -> Option<Next> {
        match self.0.try_recv() {
            Ok(event) => Some(Next::Event(event)),
            Err(TryRecvError::Lagged(count)) => Some(Next::Lagged(count)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}
