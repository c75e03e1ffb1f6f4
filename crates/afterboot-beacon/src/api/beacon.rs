//! The application's handle.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::error::Error;
use super::event::BeaconEvents;
use super::health::{Health, health};
use super::launch::Home;
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

/// How long the drop of the last handle may take to save what is left.
const DROP_DEADLINE: Duration = Duration::from_millis(500);

/// The answer to a deadline comes at the deadline; the thread that gives it may be late.
const GRACE: Duration = Duration::from_millis(100);

/// The event client. Cheap to clone; all clones are one beacon.
///
/// Dropping the last handle without [`shutdown`](Beacon::shutdown) saves what is left: to the spool where there is one,
/// else by sending, and in either case for at most 500 ms, for which the dropping thread waits if the beacon has a
/// thread of its own.
#[derive(Clone)]
pub struct Beacon(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    home: Home,
}

/// Where the events are, and nothing of what they say or of who is there: it may end up in a log.
impl fmt::Debug for Beacon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.shared().core();
        f.debug_struct("Beacon")
            .field("stream", &core.stream())
            .field("counters", &core.counters())
            .finish_non_exhaustive()
    }
}

/// How a flush ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a flush may end at its deadline"]
pub struct Flushed {
    /// Everything that was posted before is out of memory: acked, rejected, dead, dropped, or safe in the spool.
    pub complete: bool,
    /// Where everything is now.
    pub counters: Counters,
}

impl Beacon {
    pub(crate) fn new(shared: Arc<Shared>, home: Home) -> Beacon {
        Beacon(Arc::new(Handle { shared, home }))
    }

    fn shared(&self) -> &Shared {
        self.0.shared.here()
    }

    /// Posts an event: `route` is its type, `data` what it says. Encoded at once, sent later; see [`Post`] for how.
    ///
    /// ```
    /// # use afterboot_beacon::{Beacon, testing::ScriptedTransport};
    /// # let beacon = Beacon::builder("shop").transport(ScriptedTransport::accepting()).build().unwrap();
    /// beacon.post("order_paid", &("EUR", 1999));
    /// beacon.post("search", "shoes").merge_by("search box");
    /// beacon.post("crash", "out of memory").signal();
    /// ```
    pub fn post<'a, T: Serialize + ?Sized>(&'a self, route: &'a str, data: &'a T) -> Post<'a, T> {
        Post::new(Target::Beacon(&self.0.shared), route, data)
    }

    /// Somebody else is there now, or nobody. What was posted before leaves under the name that it was posted under.
    ///
    /// **One user at a time, for the whole beacon.** It is made for an application that somebody uses: each change seals the
    /// batch that is being filled, and while one user is there, nothing of another's is read back from the spool. A
    /// service that acts for many users at once stays anonymous and puts the user into the data, or tasks would post under
    /// each other's names.
    pub fn set_user(&self, user: Option<&str>) {
        let shared = self.shared();
        let now = shared.now();
        shared.core().set_user(user.map(str::to_owned), now);
        shared.wake.notify_one();
    }

    /// Another session begins, or none.
    pub fn set_session(&self, session: Option<&str>) {
        let shared = self.shared();
        let now = shared.now();
        shared.core().set_session(session.map(str::to_owned), now);
        shared.wake.notify_one();
    }

    /// The network is back: a backoff ends. An endpoint that is held stays held.
    pub fn notify_online(&self) {
        let shared = self.shared();
        let now = shared.now();
        shared.core().online(now);
        shared.wake.notify_one();
    }

    /// There is no network: nothing is sent until [`notify_online`](Beacon::notify_online).
    pub fn notify_offline(&self) {
        let shared = self.shared();
        shared.core().offline();
        shared.wake.notify_one();
    }

    /// Where every event is.
    pub fn counters(&self) -> Counters {
        self.shared().core().counters()
    }

    /// How the network and the disk fare.
    pub fn health(&self) -> Health {
        let shared = self.shared();
        let now = shared.now();
        let core = shared.core();
        health(&lock(&shared.quality), &core, shared.has_ended(), now)
    }

    /// What the beacon does from now on.
    pub fn events(&self) -> BeaconEvents {
        BeaconEvents::new(self.shared().events.subscribe())
    }

    /// The stream that numbers this beacon's events.
    pub fn stream(&self) -> StreamId {
        self.shared().core().stream()
    }

    /// Sends everything that was posted before, without waiting for company, and answers when it is out of memory or
    /// when the deadline has passed. It does not pass a shut gate.
    ///
    /// Works on any runtime, also on a current-thread one.
    ///
    /// # Cancel safety
    /// The events are sent whether or not somebody waits.
    pub async fn flush(&self, deadline: Duration) -> Flushed {
        let complete = self.begin_flush(deadline).wait().await;
        self.flushed(complete)
    }

    /// [`flush`](Beacon::flush) for a thread without a runtime. Not for the thread of a current-thread runtime that the
    /// beacon was told to run on, which cannot go on meanwhile.
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

    /// Sends what it can before the deadline and spools the rest, then goes on: for a moment after which the process
    /// may not get another, such as going into the background.
    ///
    /// # Cancel safety
    /// The checkpoint happens whether or not somebody waits.
    pub async fn checkpoint(&self, deadline: Duration) -> Counters {
        let counters = self.begin_drain(deadline, false).wait().await;
        counters.unwrap_or_else(|| self.counters())
    }

    /// [`checkpoint`](Beacon::checkpoint) for a thread without a runtime, as [`shutdown_blocking`](Beacon::shutdown_blocking).
    pub fn checkpoint_blocking(&self, deadline: Duration) -> Counters {
        let counters = self.begin_drain(deadline, false).wait_blocking(deadline.saturating_add(GRACE));
        counters.unwrap_or_else(|| self.counters())
    }

    /// Ends the beacon within one total budget: takes nothing in any more, sends vital and then basic events while time
    /// lasts, and what this beacon has in the spool if the server is well; calls off what is under way, spools the rest,
    /// and counts what could not be spooled. The answer accounts for every event. What other processes left in the
    /// spool stays there.
    ///
    /// # Cancel safety
    /// The beacon ends whether or not somebody waits.
    pub async fn shutdown(&self, deadline: Duration) -> Counters {
        let counters = self.begin_drain(deadline, true).wait().await;
        counters.unwrap_or_else(|| self.counters())
    }

    /// [`shutdown`](Beacon::shutdown) for a thread without a runtime. On the thread of a current-thread runtime that the
    /// beacon was told to run on it gives up 100 ms after the deadline, because nothing can go on meanwhile.
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

    /// The dead letters after this one, or from the first, at most `limit` of them, oldest first. They are kept in the
    /// spool: a beacon without one counts them and keeps nothing.
    ///
    /// # Errors
    /// Where there is no spool or it cannot be read, or the beacon has ended.
    ///
    /// # Cancel safety
    /// Reading changes nothing.
    #[cfg(feature = "spool")]
    pub async fn dead_letters(&self, after: Option<DeadId>, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        self.ask_for(|responder| Command::Dead(DeadCommand::List { after, limit, responder })).await
    }

    /// Sends these dead letters again, under the numbers that they have. How many events they hold.
    ///
    /// # Errors
    /// Where there is no spool or it cannot be written, or the beacon has ended.
    ///
    /// # Cancel safety
    /// It happens whether or not somebody waits.
    #[cfg(feature = "spool")]
    pub async fn replay_dead_letters(&self, ids: &[DeadId]) -> Result<u64, Error> {
        let ids = ids.to_vec();
        self.ask_for(|responder| Command::Dead(DeadCommand::Replay { ids, responder })).await
    }

    /// Deletes these dead letters, or all. How many events they held; they stay counted as dead.
    ///
    /// # Errors
    /// Where there is no spool or it cannot be written, or the beacon has ended.
    ///
    /// # Cancel safety
    /// It happens whether or not somebody waits.
    #[cfg(feature = "spool")]
    pub async fn purge_dead_letters(&self, ids: Option<&[DeadId]>) -> Result<u64, Error> {
        let ids = ids.map(<[DeadId]>::to_vec);
        self.ask_for(|responder| Command::Dead(DeadCommand::Purge { ids, responder })).await
    }

    /// Erases what this user posted and has not left yet: in memory, in the spool, among the dead letters and in the
    /// spools of processes that are gone. How many events. A request under way is not called back.
    ///
    /// # Errors
    /// Where the spool cannot be written, or the beacon has ended. What was in memory is erased all the same.
    ///
    /// # Cancel safety
    /// It happens whether or not somebody waits.
    pub async fn erase_user(&self, user: &str) -> Result<u64, Error> {
        let user = user.to_owned();
        self.ask_for(|responder| Command::Erase { user, responder }).await
    }

    fn moment_after(&self, time: Duration) -> Moment {
        self.shared().now().at.saturating_add(time)
    }

    pub(crate) fn ask<T>(&self, command: impl FnOnce(Responder<T>) -> Command) -> ReplyReceiver<T> {
        let (responder, receiver) = reply::channel();
        // A driver that is gone drops the answerer, which is an answer.
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
        let waits = match self.home {
            Home::OwnThread(thread) => thread != thread::current().id(),
            Home::CallersRuntime => false,
        };
        if asked && waits {
            receiver.wait_blocking(DROP_DEADLINE + GRACE);
        }
    }
}
