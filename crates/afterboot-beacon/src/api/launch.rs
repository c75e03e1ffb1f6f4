//! Starting a beacon, and starting it again in a process that was forked off.

use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;

use crate::api::error::Error;
use crate::driver::{DiskOptions, Driver};
use crate::engine::{Core, Limits};
use crate::state::clock::{self, Clock, Wall};
use crate::state::identity;
use crate::state::privacy::AllowLists;
use crate::state::shared::{Delays, Shared};
use crate::state::token::Tokens;
use crate::transport::Transport;

/// What requests leave by. A child makes its own connections where it can.
#[derive(Debug, Clone)]
pub(crate) enum TransportSource {
    #[cfg(feature = "http")]
    Url(String),
    Own(Arc<dyn Transport>),
}

impl TransportSource {
    fn make(&self) -> Result<Arc<dyn Transport>, Error> {
        match self {
            #[cfg(feature = "http")]
            TransportSource::Url(url) => match crate::transport::http::HttpTransport::new(url) {
                Ok(transport) => Ok(Arc::new(transport)),
                Err(error) => Err(Error::config(vec![error.to_string()])),
            },
            TransportSource::Own(transport) => Ok(Arc::clone(transport)),
        }
    }
}

/// Everything that a beacon is started with.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) app: String,
    pub(crate) transport: TransportSource,
    pub(crate) tokens: Tokens,
    pub(crate) limits: Limits,
    pub(crate) delays: Delays,
    pub(crate) time_limit: Duration,
    pub(crate) expiry: Duration,
    pub(crate) allow: AllowLists,
    pub(crate) wall: Wall,
    pub(crate) disk: DiskOptions,
}

/// Where the driver runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Home {
    OwnThread(ThreadId),
    CallersRuntime,
}

/// The runtime that the driver runs on.
enum Place {
    Own(Runtime),
    Callers(Handle),
}

impl Place {
    fn handle(&self) -> &Handle {
        match self {
            Place::Own(runtime) => runtime.handle(),
            Place::Callers(handle) => handle,
        }
    }
}

/// For what a transport or a source of tokens of the application's own has that blocks: disk and names have threads of
/// their own.
const BLOCKING_THREADS: usize = 4;

impl Launch {
    /// Does a durable post ask for nothing beyond memory?
    pub(crate) fn is_buffered(&self) -> bool {
        self.disk.is_buffered()
    }

    pub(crate) fn start(
        &self,
        user: Option<String>,
        session: Option<String>,
        seed: u64,
        callers: Option<Handle>,
    ) -> Result<(Arc<Shared>, Home), Error> {
        let transport = self.transport.make()?;
        let place = match callers {
            Some(runtime) => Place::Callers(runtime),
            None => Place::Own(own_runtime()?),
        };
        // tokio's clock is the runtime's.
        let clock = {
            let _inside = place.handle().enter();
            Clock::start(self.wall)
        };
        let now = clock.now();
        let mut core = self.core(seed, self.disk.has_spool());
        core.set_user(user, now);
        core.set_session(session, now);
        let (commands, obeyed) = mpsc::unbounded_channel();
        let shared = Shared::new(core, clock, commands, self.clone());
        let driver = Driver::new(
            Arc::clone(&shared),
            transport,
            self.tokens.clone(),
            self.time_limit,
            obeyed,
            self.app.clone(),
            self.disk.clone(),
        );
        let home = match place {
            Place::Own(runtime) => {
                let thread = thread::Builder::new().name("afterboot-beacon".to_owned());
                let thread = thread.spawn(move || {
                    runtime.block_on(driver.run());
                    // A disk that hangs does not keep the thread.
                    runtime.shutdown_background();
                });
                Home::OwnThread(thread.map_err(Error::start)?.thread().id())
            }
            Place::Callers(runtime) => {
                runtime.spawn(driver.run());
                Home::CallersRuntime
            }
        };
        Ok((shared, home))
    }

    fn core(&self, seed: u64, has_spool: bool) -> Core {
        let (limits, app) = (self.limits.clone(), self.app.clone());
        Core::new(limits, app, identity::stream(), clock::boot_id(), seed, has_spool)
    }

    /// In a forked child: a stream, a thread and connections of its own, and none of the parent's events.
    pub(crate) fn start_in_child(&self, user: Option<String>, session: Option<String>) -> Arc<Shared> {
        let seed = u64::from_le_bytes(identity::random());
        match self.start(user, session, seed, None) {
            Ok((shared, _)) => shared,
            Err(error) => {
                tracing::warn!(%error, "no beacon in this forked process: its events are counted and not sent");
                let clock = Clock::start(self.wall);
                let mut core = self.core(seed, false);
                core.close();
                let (commands, _) = mpsc::unbounded_channel();
                Shared::new(core, clock, commands, self.clone())
            }
        }
    }
}

fn own_runtime() -> Result<Runtime, Error> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(BLOCKING_THREADS).thread_name("afterboot-block");
    builder.build().map_err(Error::start)
}
