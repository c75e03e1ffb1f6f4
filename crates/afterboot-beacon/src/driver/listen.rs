//! Listening to signals, and giving them back.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use crate::state::signal::Signal;

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

/// The default action of a signal, restored when no listener is left: tokio's handlers stay for good.
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
        unlistened: Arc<AtomicBool>,
    }

    /// While one of these is held, the signals do not end the process.
    pub(super) struct Listening(());

    impl Listening {
        pub(super) fn begin() -> io::Result<Listening> {
            let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
            if listeners.is_none() {
                let unlistened = Arc::new(AtomicBool::new(false));
                for signal in [SIGINT, SIGTERM] {
                    register_conditional_default(signal, Arc::clone(&unlistened))?;
                }
                *listeners = Some(Listeners { count: 0, unlistened });
            }
            if let Some(listeners) = &mut *listeners {
                listeners.count += 1;
                listeners.unlistened.store(false, Ordering::SeqCst);
            }
            Ok(Listening(()))
        }
    }

    impl Drop for Listening {
        fn drop(&mut self) {
            let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(listeners) = &mut *listeners {
                listeners.count -= 1;
                listeners.unlistened.store(listeners.count == 0, Ordering::SeqCst);
            }
        }
    }
}
