//! What the application's handles and the driver have in common.

use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tokio::sync::{Notify, broadcast, mpsc};

use super::clock::Clock;
use super::quality::Quality;
use super::settings::Settings;
use crate::base::lock::lock;
use crate::engine::{BeaconEvent, Core, DeferredReply, Now};
use crate::state::command::Command;

/// A receiver of events that is this far behind loses the oldest.
pub(crate) const EVENTS_KEPT: usize = 256;

/// Starts the beacon of a forked child, for this user and this session.
pub(crate) type StartInChild = fn(&Settings, Option<String>, Option<String>) -> Arc<Shared>;

#[derive(Debug)]
pub(crate) struct Shared {
    core: Mutex<Core>,
    pub(crate) wake: Notify,
    pub(crate) clock: Clock,
    pub(crate) events: broadcast::Sender<BeaconEvent>,
    commands: mpsc::UnboundedSender<Command>,
    pub(crate) quality: Mutex<Quality>,
    warned: Mutex<HashSet<String>>,
    pub(crate) settings: Settings,
    start_in_child: StartInChild,
    process: u32,
    /// What this process uses, where it is a child of the one that built the beacon: it has no driver's thread and no
    /// right to the parent's events.
    child: OnceLock<Arc<Shared>>,
}

/// The core, locked. Replies and events are sent once the lock is free again.
pub(crate) struct Locked<'a> {
    core: MutexGuard<'a, Core>,
    /// Dropped after the guard, and so is what follows.
    replies: Vec<DeferredReply>,
    events: DeferredEvents<'a>,
}

/// Events that came up meanwhile, for receivers.
struct DeferredEvents<'a>(Vec<BeaconEvent>, &'a broadcast::Sender<BeaconEvent>);

impl Drop for DeferredEvents<'_> {
    fn drop(&mut self) {
        if self.1.receiver_count() > 0 {
            self.0.drain(..).for_each(|event| drop(self.1.send(event)));
        }
    }
}

impl Deref for Locked<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.replies = self.core.take_replies();
        self.events.0 = self.core.take_events();
    }
}

/// At most so many routes are remembered as warned about.
const MAX_WARNED: usize = 1000;

impl Shared {
    pub(crate) fn new(
        core: Core,
        clock: Clock,
        commands: mpsc::UnboundedSender<Command>,
        settings: Settings,
        start_in_child: StartInChild,
    ) -> Arc<Shared> {
        Arc::new(Shared {
            core: Mutex::new(core),
            wake: Notify::new(),
            clock,
            events: broadcast::Sender::new(EVENTS_KEPT),
            commands,
            quality: Mutex::default(),
            warned: Mutex::default(),
            settings,
            start_in_child,
            process: process::id(),
            child: OnceLock::new(),
        })
    }

    /// The beacon of this process. One call of the system's, because a fork is not announced.
    pub(crate) fn here(&self) -> &Shared {
        if self.process == process::id() { self } else { self.child().here() }
    }

    /// The beacon of this process, if there is one yet.
    pub(crate) fn here_already(&self) -> Option<&Shared> {
        if self.process == process::id() { Some(self) } else { self.child.get()?.here_already() }
    }

    /// The process that this beacon is of, which [`here`](Shared::here) has compared with the one that runs.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    #[cold]
    fn child(&self) -> &Arc<Shared> {
        self.child.get_or_init(|| {
            // A thread that held the lock at the fork does not exist in this process.
            let (user, session) = match self.core.try_lock() {
                Ok(core) => (core.user().map(str::to_owned), core.session().map(str::to_owned)),
                Err(_) => (None, None),
            };
            (self.start_in_child)(&self.settings, user, session)
        })
    }

    pub(crate) fn core(&self) -> Locked<'_> {
        Locked {
            core: lock(&self.core),
            replies: Vec::new(),
            events: DeferredEvents(Vec::new(), &self.events),
        }
    }

    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Without receivers this costs one load.
    pub(crate) fn emit(&self, event: impl FnOnce() -> BeaconEvent) {
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(event());
        }
    }

    /// Returns whether it is the first time for this route.
    pub(crate) fn warn_once(&self, route: &str) -> bool {
        let mut warned = lock(&self.warned);
        warned.len() < MAX_WARNED && warned.insert(route.to_owned())
    }

    /// Returns whether the driver is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.commands.is_closed()
    }

    /// Sends a command to the driver. Returns false if it is gone.
    pub(crate) fn command(&self, command: Command) -> bool {
        self.commands.send(command).is_ok()
    }
}
