//! The application's handle.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::error::Error;
use super::event::BeaconEvents;
use super::health::{Health, health};
use super::launch::DriverHost;
use super::post::{Post, Target};
use crate::base::lock::lock;
use crate::engine::Moment;
#[cfg(feature = "spool")]
use crate::spool::{DeadId, DeadLetter};
#[cfg(feature = "spool")]
use crate::state::command::DeadCommand;
use crate::state::command::{Command, Drain};
use crate::state::reply::{self, ReplyReceiver, Responder};
use crate::state::shared::Shared;
use crate::wire::{Counters, StreamId};

/// How long the drop of the last handle may take to save the remaining events.
const DROP_DEADLINE: Duration = Duration::from_millis(500);

/// A reply to a deadline comes at the deadline; the thread that sends it may be late.
const GRACE: Duration = Duration::from_millis(100);

/// The event client: a handle to one beacon, cheap to clone.
///
/// Dropping the last handle without [`shutdown`](Beacon::shutdown) writes the remaining events to the spool or, without a
/// spool, sends them, for at most 500 ms. The dropping thread blocks for that long if the beacon has its own thread.
#[derive(Clone)]
pub struct Beacon(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    host: DriverHost,
}

/// Shows the counters, and neither the content of events nor the user: it may end up in a log.
impl fmt::Debug for Beacon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.shared().core();
        f.debug_struct("Beacon")
            .field("stream", &core.stream())
            .field("counters", &core.counters())
            .finish_non_exhaustive()
    }
}

/// The result of a flush.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a flush may end at its deadline"]
pub struct Flushed {
    /// Whether every event posted before the flush is out of memory: acked, rejected, dead, dropped, or in the spool.
    pub complete: bool,
    /// The counters after the flush.
    pub counters: Counters,
}

impl Beacon {
    pub(crate) fn new(shared: Arc<Shared>, host: DriverHost) -> Beacon {
        Beacon(Arc::new(Handle { shared, host }))
    }

    fn shared(&self) -> &Shared {
        self.0.shared.here()
    }

    /// Posts an event of type `route` with `data`. It is encoded at once and sent later; [`Post`] sets options.
    ///
    /// ```
    /// # use afterboot_beacon::{Beacon, testing::ScriptedTransport};
    /// # let beacon = Beacon::builder("shop").transport(ScriptedTransport::accepting()).build().unwrap();
    /// beacon.post("order_paid", &("EUR", 1999));
    /// beacon.post("search", "shoes").merge_by("search box");
    /// beacon.post("crash", "out of memory").urgent();
    /// ```
    pub fn post<'a, T: Serialize + ?Sized>(&'a self, route: &'a str, data: &'a T) -> Post<'a, T> {
        Post::new(Target::Beacon(&self.0.shared), route, data)
    }

    /// Sets the user of later events; `None` makes them anonymous. Earlier events keep their user.
    ///
    /// **A beacon has one user at a time.** This is meant for applications with one user. Each change seals the open batch,
    /// and events of other users are not read back from the spool meanwhile. A service that acts for many users at once
    /// should stay anonymous and put the user into the data: otherwise its tasks post under each other's users.
    pub fn set_user(&self, user: Option<&str>) {
        let shared = self.shared();
        let now = shared.now();
        shared.core().set_user(user.map(str::to_owned), now);
        shared.wake.notify_one();
    }

    /// Sets the session of later events, or clears it.
    pub fn set_session(&self, session: Option<&str>) {
        let shared = self.shared();
        let now = shared.now();
        shared.core().set_session(session.map(str::to_owned), now);
        shared.wake.notify_one();
    }

    /// Reports that the network is back, which ends a backoff. A held endpoint stays held.
    pub fn notify_online(&self) {
        let shared = self.shared();
        let now = shared.now();
        shared.core().online(now);
        shared.wake.notify_one();
    }

    /// Reports that the network is gone. Nothing is sent until [`notify_online`](Beacon::notify_online).
    pub fn notify_offline(&self) {
        let shared = self.shared();
        shared.core().offline();
        shared.wake.notify_one();
    }

    /// Returns the ledger: how many events are where.
    pub fn counters(&self) -> Counters {
        self.shared().core().counters()
    }

    /// Returns the state of the endpoint and of the spool.
    pub fn health(&self) -> Health {
        let shared = self.shared();
        let now = shared.now();
        let core = shared.core();
        health(&lock(&shared.quality), &core, shared.has_ended(), now)
    }

    /// Subscribes to the beacon's own events from now on.
    pub fn events(&self) -> BeaconEvents {
        BeaconEvents::new(self.shared().events.subscribe())
    }

    /// Returns the stream that numbers this beacon's events.
    pub fn stream(&self) -> StreamId {
        self.shared().core().stream()
    }

    /// Sends all earlier events without waiting for their batches to fill. Returns once they are out of memory or after
    /// `deadline`. While the endpoint is in a backoff or held, nothing is sent.
    ///
    /// Works on any runtime, including a current-thread one.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the flush.
    pub async fn flush(&self, deadline: Duration) -> Flushed {
        let complete = self.begin_flush(deadline).wait().await;
        self.flushed(complete)
    }

    /// [`flush`](Beacon::flush) for threads without a runtime. If the beacon runs on the caller's own current-thread runtime,
    /// it cannot make progress meanwhile.
    pub fn flush_blocking(&self, deadline: Duration) -> Flushed {
        let complete = self.begin_flush(deadline).wait_blocking(deadline.saturating_add(GRACE));
        self.flushed(complete)
    }

    fn begin_flush(&self, deadline: Duration) -> ReplyReceiver<bool> {
        self.ask(|responder| Command::Flush { deadline: self.moment_after(deadline), responder })
    }

    fn flushed(&self, complete: Option<bool>) -> Flushed {
        let counters = self.counters();
        let nothing_left = counters.queued + counters.in_flight == 0;
        Flushed { complete: complete.unwrap_or(nothing_left), counters }
    }

    /// Sends what it can within `deadline` and spools the rest; the beacon keeps running. Call it when the process may be
    /// ended without notice, such as before it goes into the background. Returns the counters.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the checkpoint.
    pub async fn checkpoint(&self, deadline: Duration) -> Counters {
        let counters = self.begin_drain(deadline, false).wait().await;
        counters.unwrap_or_else(|| self.counters())
    }

    /// [`checkpoint`](Beacon::checkpoint) for threads without a runtime, with the limits of
    /// [`shutdown_blocking`](Beacon::shutdown_blocking).
    pub fn checkpoint_blocking(&self, deadline: Duration) -> Counters {
        let counters = self.begin_drain(deadline, false).wait_blocking(deadline.saturating_add(GRACE));
        counters.unwrap_or_else(|| self.counters())
    }

    /// Shuts the beacon down within `deadline`, which covers everything: later posts are dropped; vital and then basic events
    /// are sent while time lasts, and if the endpoint is healthy this beacon's spooled events too; requests under way are
    /// cancelled, the rest is spooled, and what cannot be spooled is counted as dropped. The returned counters account for
    /// every event. Events that other processes left in the spool stay there.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the shutdown.
    pub async fn shutdown(&self, deadline: Duration) -> Counters {
        let counters = self.begin_drain(deadline, true).wait().await;
        counters.unwrap_or_else(|| self.counters())
    }

    /// [`shutdown`](Beacon::shutdown) for threads without a runtime. If the beacon runs on the caller's own current-thread
    /// runtime, it cannot make progress meanwhile, and this returns 100 ms after the deadline.
    pub fn shutdown_blocking(&self, deadline: Duration) -> Counters {
        let counters = self.begin_drain(deadline, true).wait_blocking(deadline.saturating_add(GRACE));
        counters.unwrap_or_else(|| self.counters())
    }

    pub(crate) fn begin_drain(&self, deadline: Duration, ends: bool) -> ReplyReceiver<Counters> {
        let deadline = self.moment_after(deadline);
        self.ask(|responder| {
            Command::Drain(Drain { deadline, ends, sends: true, responder: Some(responder) })
        })
    }

    /// Lists up to `limit` dead letters, oldest first, from the first or from the one that follows `after`. They are kept in
    /// the spool: a beacon without a spool counts them and keeps nothing.
    ///
    /// # Errors
    /// Fails if there is no spool, if it cannot be read, or if the beacon has ended.
    ///
    /// # Cancel safety
    /// Listing changes nothing.
    #[cfg(feature = "spool")]
    pub async fn dead_letters(&self, after: Option<DeadId>, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        self.ask_for(|responder| Command::Dead(DeadCommand::List { after, limit, responder })).await
    }

    /// Sends these dead letters again, under their own numbers. Returns the number of events in them.
    ///
    /// # Errors
    /// Fails if there is no spool, if it cannot be written, or if the beacon has ended.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the replay.
    #[cfg(feature = "spool")]
    pub async fn replay_dead_letters(&self, ids: &[DeadId]) -> Result<u64, Error> {
        let ids = ids.to_vec();
        self.ask_for(|responder| Command::Dead(DeadCommand::Replay { ids, responder })).await
    }

    /// Deletes these dead letters, or all of them. Returns the number of events in them, which stay counted as dead.
    ///
    /// # Errors
    /// Fails if there is no spool, if it cannot be written, or if the beacon has ended.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the deletion.
    #[cfg(feature = "spool")]
    pub async fn purge_dead_letters(&self, ids: Option<&[DeadId]>) -> Result<u64, Error> {
        let ids = ids.map(<[DeadId]>::to_vec);
        self.ask_for(|responder| Command::Dead(DeadCommand::Purge { ids, responder })).await
    }

    /// Erases this user's undelivered events: in memory, in the spool, among the dead letters and in the spools of processes
    /// that are gone. Returns the number of events. A request under way is not cancelled.
    ///
    /// # Errors
    /// Fails if the spool cannot be written or the beacon has ended. Events in memory are erased even then.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the erasure.
    pub async fn erase_user(&self, user: &str) -> Result<u64, Error> {
        let user = user.to_owned();
        self.ask_for(|responder| Command::Erase { user, responder }).await
    }

    fn moment_after(&self, time: Duration) -> Moment {
        self.shared().now().at.saturating_add(time)
    }

    pub(crate) fn ask<T>(&self, command: impl FnOnce(Responder<T>) -> Command) -> ReplyReceiver<T> {
        let (responder, receiver) = reply::channel();
        // A driver that is gone drops the responder, which ends the wait.
        self.shared().command(command(responder));
        receiver
    }

    async fn ask_for<T>(
        &self,
        command: impl FnOnce(Responder<Result<T, String>>) -> Command,
    ) -> Result<T, Error> {
        match self.ask(command).wait().await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(why)) => Err(Error::storage(why)),
            None => Err(Error::ended()),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A forked child that never posted has nothing to save.
        let Some(shared) = self.shared.here_already() else { return };
        let (responder, receiver) = reply::channel();
        let now = shared.now();
        // What is on disk is safe; without a disk the wire is all there is.
        let sends = {
            let core = shared.core();
            if core.is_closed() {
                return;
            }
            !core.has_spool()
        };
        let deadline = now.at + DROP_DEADLINE;
        let asked =
            shared.command(Command::Drain(Drain { deadline, ends: true, sends, responder: Some(responder) }));
        let waits = match self.host {
            DriverHost::OwnThread(thread) => thread != thread::current().id(),
            DriverHost::CallersRuntime => false,
        };
        if asked && waits {
            receiver.wait_blocking(DROP_DEADLINE + GRACE);
        }
    }
}
