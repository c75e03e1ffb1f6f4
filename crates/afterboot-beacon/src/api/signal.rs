//! Shutting down on Ctrl-C and SIGTERM.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use super::beacon::Beacon;
use super::error::Error;
use crate::state::command::Command;
use crate::state::reply::{ReplyReceiver, Responder};
use crate::state::signal::{ShutDown, ShutDownResult};

/// Resolves when a signal has arrived and the beacon has shut down. Made by [`Beacon::on_signal`]. Await it, or call
/// [`wait_blocking`](OnSignal::wait_blocking). Dropping it does not cancel the shutdown.
#[derive(Debug)]
#[must_use = "after the signal the process keeps running unless it is ended here"]
pub struct OnSignal(ReplyReceiver<ShutDownResult>);

impl OnSignal {
    /// Blocks this thread until the beacon has shut down.
    ///
    /// # Errors
    /// Fails if the signal handlers cannot be installed, or if the beacon ended in another way.
    pub fn wait_blocking(self) -> Result<ShutDown, Error> {
        result(self.0.wait_blocking(Duration::MAX))
    }
}

impl IntoFuture for OnSignal {
    type Output = Result<ShutDown, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<ShutDown, Error>> + Send>>;

    /// Works on any runtime. Cancel safe: dropping the future does not cancel the shutdown.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { result(self.0.wait().await) })
    }
}

fn result(shut_down: Option<ShutDownResult>) -> Result<ShutDown, Error> {
    match shut_down {
        Some(Ok(shut_down)) => Ok(shut_down),
        Some(Err(error)) => Err(Error::start(error)),
        None => Err(Error::ended()),
    }
}

impl Beacon {
    /// Shuts the beacon down within `deadline` when Ctrl-C or SIGTERM arrives, then resolves. The caller ends the process.
    ///
    /// Until the beacon has shut down, these signals do not end the process by themselves. A second signal cuts the budget
    /// to half a second, for spooling only. Afterwards the signals end the process again, even if it also handles them by
    /// other means. The handlers run on the beacon's runtime, whose I/O driver must be enabled.
    pub fn on_signal(&self, deadline: Duration) -> OnSignal {
        OnSignal(self.ask(|responder| Command::OnSignal { deadline, responder: Some(responder) }))
    }

    /// Shuts the beacon down within `deadline` when Ctrl-C or SIGTERM arrives, then exits the process with code 130 or 143.
    /// A second signal cuts the budget as with [`on_signal`](Beacon::on_signal). Destructors of other threads do not run.
    pub fn exit_on_signal(&self, deadline: Duration) {
        let _ = self.ask(|_: Responder<()>| Command::OnSignal { deadline, responder: None });
    }
}
