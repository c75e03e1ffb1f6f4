//! Ctrl-c and SIGTERM: the process is asked to go, and the events go first.

use std::future::IntoFuture;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::Duration;

use crate::api::beacon::Beacon;
use crate::api::error::Error;
use crate::driver::Command;
use crate::state::reply::{Answerer, Asker};
use crate::wire::Counters;

/// What asked the process to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-c.
    Interrupt,
    /// SIGTERM, which service managers send first. Only on Unix.
    Terminate,
}

impl Signal {
    /// What a shell shows for a process that this signal ended: 130 or 143.
    pub fn exit_code(self) -> i32 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// The beacon has left because of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Which.
    pub signal: Signal,
    /// Where every event is.
    pub counters: Counters,
}

pub(crate) type LeftAnswer = Result<Left, io::Error>;

/// Resolves when a signal has come and the beacon has shut down. Await it, or [`wait_blocking`](OnSignal::wait_blocking).
/// Dropping it changes nothing: the beacon leaves all the same.
#[derive(Debug)]
#[must_use = "the process goes on after the signal unless somebody ends it"]
pub struct OnSignal(Asker<LeftAnswer>);

impl OnSignal {
    /// Waits on this thread.
    ///
    /// # Errors
    /// Where signals cannot be listened to, or the beacon ended in another way.
    pub fn wait_blocking(self) -> Result<Left, Error> {
        answer(self.0.wait_blocking(Duration::MAX))
    }
}

impl IntoFuture for OnSignal {
    type Output = Result<Left, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Left, Error>> + Send>>;

    /// Works on any runtime. Cancel safe: dropping the future only forgets the answer.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { answer(self.0.wait().await) })
    }
}

fn answer(left: Option<LeftAnswer>) -> Result<Left, Error> {
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
        OnSignal(self.ask(|answer| Command::OnSignal { deadline, answer: Some(answer) }))
    }

    /// On ctrl-c or SIGTERM shuts down within this budget, then ends the process with the code 130 or 143. A second signal ends
    /// the budget at once, as with [`on_signal`](Beacon::on_signal). Destructors of other threads do not run.
    pub fn exit_on_signal(&self, deadline: Duration) {
        let _ = self.ask(|_: Answerer<()>| Command::OnSignal { deadline, answer: None });
    }
}

/// A signal to come.
pub(crate) type Waiting = Pin<Box<dyn Future<Output = Signal> + Send>>;

/// Begins to listen. Called inside the beacon's runtime.
pub(crate) fn listen() -> io::Result<Waiting> {
    // A runtime without I/O makes tokio panic.
    catch_unwind(AssertUnwindSafe(begin))
        .unwrap_or_else(|_| Err(io::Error::other("the runtime has no I/O driver")))
}

#[cfg(unix)]
fn begin() -> io::Result<Waiting> {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::signal::unix::{SignalKind, signal};

    let listening = defaults::Listening::begin()?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(Box::pin(poll_fn(move |cx| {
        let _ = &listening;
        if interrupt.poll_recv(cx).is_ready() {
            return Poll::Ready(Signal::Interrupt);
        }
        terminate.poll_recv(cx).map(|_| Signal::Terminate)
    })))
}

#[cfg(not(unix))]
fn begin() -> io::Result<Waiting> {
    Ok(Box::pin(async {
        // Without a console there is no ctrl-c to come.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }))
}

/// What a signal does by default, given back when nobody listens any more: tokio's handlers stay for good.
#[cfg(unix)]
mod defaults {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag::register_conditional_default;

    static LISTENERS: Mutex<Option<Listeners>> = Mutex::new(None);

    struct Listeners {
        count: usize,
        /// Read by the signals' handlers: while it is set, a signal ends the process.
        nobody: Arc<AtomicBool>,
    }

    /// While one of these is held, the signals do not end the process.
    pub(super) struct Listening(());

    impl Listening {
        pub(super) fn begin() -> io::Result<Listening> {
            let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
            if listeners.is_none() {
                let nobody = Arc::new(AtomicBool::new(false));
                for signal in [SIGINT, SIGTERM] {
                    register_conditional_default(signal, Arc::clone(&nobody))?;
                }
                *listeners = Some(Listeners { count: 0, nobody });
            }
            if let Some(listeners) = &mut *listeners {
                listeners.count += 1;
                listeners.nobody.store(false, Ordering::SeqCst);
            }
            Ok(Listening(()))
        }
    }

    impl Drop for Listening {
        fn drop(&mut self) {
            let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(listeners) = &mut *listeners {
                listeners.count -= 1;
                listeners.nobody.store(listeners.count == 0, Ordering::SeqCst);
            }
        }
    }
}
