//! Starting a beacon, and starting it again in a process that was forked off.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;

use super::error::Error;
use crate::base::machine::boot_id;
use crate::base::random::random;
use crate::driver::Driver;
use crate::engine::Core;
use crate::state::clock::Clock;
use crate::state::identity;
use crate::state::settings::{Settings, TransportSource};
use crate::state::shared::Shared;
use crate::transport::Transport;

/// Where the driver runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DriverHost {
    OwnThread(ThreadId),
    CallersRuntime,
}

/// The runtime that the driver runs on.
enum DriverRuntime {
    Own(Runtime),
    Callers(Handle),
}

impl DriverRuntime {
    fn handle(&self) -> &Handle {
        match self {
            DriverRuntime::Own(runtime) => runtime.handle(),
            DriverRuntime::Callers(handle) => handle,
        }
    }
}

/// For what a transport or a source of tokens of the application's own has that blocks: disk and names have threads of
/// their own.
const BLOCKING_THREADS: usize = 4;

pub(crate) fn start(
    settings: &Settings,
    user: Option<String>,
    session: Option<String>,
    seed: u64,
    callers: Option<Handle>,
) -> Result<(Arc<Shared>, DriverHost), Error> {
    let transport = transport(&settings.transport)?;
    let runtime = match callers {
        Some(runtime) => DriverRuntime::Callers(runtime),
        None => DriverRuntime::Own(own_runtime()?),
    };
    // tokio's clock is the runtime's.
    let clock = {
        let _inside = runtime.handle().enter();
        Clock::start(settings.wall, settings.machine.clone())
    };
    let now = clock.now();
    let mut core = core(settings, seed, settings.disk.has_spool());
    core.set_user(user, now);
    core.set_session(session, now);
    let (commands, receiver) = mpsc::unbounded_channel();
    let shared = Shared::new(core, clock, commands, settings.clone(), start_in_child);
    let driver = Driver::new(
        Arc::clone(&shared),
        transport,
        settings.tokens.clone(),
        settings.time_limit,
        receiver,
        settings.app.clone(),
        settings.disk.clone(),
    );
    let host = match runtime {
        DriverRuntime::Own(runtime) => {
            let thread = thread::Builder::new().name("afterboot-beacon".to_owned());
            let thread = thread.spawn(move || {
                runtime.block_on(driver.run());
                // A disk that hangs does not keep the thread.
                runtime.shutdown_background();
            });
            DriverHost::OwnThread(thread.map_err(Error::start)?.thread().id())
        }
        DriverRuntime::Callers(runtime) => {
            runtime.spawn(driver.run());
            DriverHost::CallersRuntime
        }
    };
    Ok((shared, host))
}

fn core(settings: &Settings, seed: u64, has_spool: bool) -> Core {
    let (limits, app) = (settings.limits.clone(), settings.app.clone());
    Core::new(limits, app, identity::stream(), boot_id(), seed, has_spool)
}

/// In a forked child: a stream, a thread and connections of its own, and none of the parent's events.
fn start_in_child(settings: &Settings, user: Option<String>, session: Option<String>) -> Arc<Shared> {
    let seed = u64::from_le_bytes(random());
    match start(settings, user, session, seed, None) {
        Ok((shared, _)) => shared,
        Err(error) => {
            tracing::warn!(%error, "no beacon can be started in this forked process: its events are counted as dropped");
            let clock = Clock::start(settings.wall, settings.machine.clone());
            let mut core = core(settings, seed, false);
            core.close();
            let (commands, _) = mpsc::unbounded_channel();
            Shared::new(core, clock, commands, settings.clone(), start_in_child)
        }
    }
}

fn transport(source: &TransportSource) -> Result<Arc<dyn Transport>, Error> {
    match source {
        #[cfg(feature = "http")]
        TransportSource::Url(url) => match crate::transport::http::HttpTransport::new(url) {
            Ok(transport) => Ok(Arc::new(transport)),
            Err(error) => Err(Error::config(vec![error.to_string()])),
        },
        TransportSource::Own(transport) => Ok(Arc::clone(transport)),
    }
}

fn own_runtime() -> Result<Runtime, Error> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(BLOCKING_THREADS).thread_name("afterboot-block");
    builder.build().map_err(Error::start)
}
