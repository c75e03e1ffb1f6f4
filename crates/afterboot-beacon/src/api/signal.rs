//! Ctrl-c and SIGTERM: the process is asked to go, and the events go first.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use super::beacon::Beacon;
use super::error::Error;
use crate::state::command::Command;
use crate::state::reply::{ReplyReceiver, Responder};
use crate::state::signal::{ShutDown, ShutDownResult};

/// Resolves when a signal has come and the beacon has shut down. Await it, or [`wait_blocking`](OnSignal::wait_blocking).
/// Dropping it changes nothing: the beacon leaves all the same.
#[derive(Debug)]
#[must_use = "the process goes on after the signal unless somebody ends it"]
pub struct OnSignal(ReplyReceiver<ShutDownResult>);

impl OnSignal {
    /// Waits on this thread.
    ///
    /// # Errors
    /// Where signals cannot be listened to, or the beacon ended in another way.
    pub fn wait_blocking(self) -> Result<ShutDown, Error> {
        answer(self.0.wait_blocking(Duration::MAX))
    }
}

impl IntoFuture for OnSignal {
    type Output = Result<ShutDown, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<ShutDown, Error>> + Send>>;

    /// Works on any runtime. Cancel safe: dropping the future only forgets the answer.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { answer(self.0.wait().await) })
    }
}

fn answer(left: Option<ShutDownResult>) -> Result<ShutDown, Error> {
    match left {
        Some(Ok(left)) => Ok(left),
        Some(Err(error)) => Err(Error::start(error)),
        None => Err(Error::ended()),
    }
}

impl Beacon {
    /// On ctrl-c or SIGTERM shuts down within this budget, then answers; ending the process is the caller's part.
    ///
    /// Until the beacon has left, these signals do not end the process by themselves. A second one ends the budget at once: what
    /// can be spooled within half a second is. Afterwards they end the process again, also one that listens to them by other means.
    /// Listens on the beacon's own runtime, or on the one it was given, which then needs its I/O driver.
    pub fn on_signal(&self, deadline: Duration) -> OnSignal {
        OnSignal(self.ask(|responder| Command::OnSignal { deadline, responder: Some(responder) }))
    }

    /// On ctrl-c or SIGTERM shuts down within this budget, then ends the process with the code 130 or 143. A second signal ends
    /// the budget at once, as with [`on_signal`](Beacon::on_signal). Destructors of other threads do not run.
    pub fn exit_on_signal(&self, deadline: Duration) {
        let _ = self.ask(|_: Responder<()>| Command::OnSignal { deadline, responder: None });
    }
}
