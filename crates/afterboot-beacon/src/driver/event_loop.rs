//! The loop: what the driver knows, what wakes it, and what it does in a turn.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::mpsc;
use tokio::task::{self, JoinSet};
use tokio::time::{Sleep, sleep_until};

use super::disk::{self, Disk};
use super::listen::{Waiting, listen};
use super::outage::OutageLog;
use super::phase::Draining;
use super::request::Sent;
use crate::engine::{BeaconEvent, Moment, Now, Outgoing};
use crate::state::command::Command;
use crate::state::reply::Responder;
use crate::state::settings::DiskOptions;
use crate::state::shared::Shared;
use crate::state::signal::{ShutDownResult, Signal};
use crate::state::token_source::TokenSource;
use crate::transport::Transport;

/// Complete when no batch before `ordinal` is left in memory.
#[derive(Debug)]
pub(super) struct Flush {
    ordinal: u64,
    deadline: Moment,
    responder: Responder<bool>,
}

#[derive(Debug)]
pub(crate) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) tokens: TokenSource,
    pub(super) time_limit: Duration,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) requests: JoinSet<Sent>,
    pub(super) out: HashMap<task::Id, Outgoing>,
    /// Requests so far.
    pub(super) tries: u64,
    pub(super) outages: OutageLog,
    pub(super) disk: Disk,
    pub(super) flushes: Vec<Flush>,
    pub(super) draining: Option<Draining>,
    pub(super) signals: Vec<OnSignal>,
    /// Listened to once a signal has come.
    pub(super) second_signal: Option<SecondSignal>,
    pub(super) ended: bool,
}

/// A signal after the first.
pub(super) struct SecondSignal(pub(super) Waiting);

impl fmt::Debug for SecondSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SecondSignal").finish_non_exhaustive()
    }
}

/// Waits for a signal.
pub(super) struct OnSignal {
    pub(super) coming: Waiting,
    pub(super) deadline: Duration,
    pub(super) responder: Option<Responder<ShutDownResult>>,
}

impl fmt::Debug for OnSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnSignal").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// Why the driver woke up.
enum Woken {
    Look,
    Request(Result<(task::Id, Sent), task::JoinError>),
    Disk(disk::Finished),
    Command(Command),
    Signal(usize, Signal),
    SecondSignal,
    /// The last sender of commands is gone, which a forked child's parent keeps: never in practice.
    NoHandles,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        transport: Arc<dyn Transport>,
        tokens: TokenSource,
        time_limit: Duration,
        commands: mpsc::UnboundedReceiver<Command>,
        app: String,
        disk: DiskOptions,
    ) -> Driver {
        let disk = Disk::new(Arc::clone(&shared), app, disk);
        Driver {
            shared,
            transport,
            tokens,
            time_limit,
            commands,
            requests: JoinSet::new(),
            out: HashMap::new(),
            tries: 0,
            outages: OutageLog::default(),
            disk,
            flushes: Vec::new(),
            draining: None,
            signals: Vec::new(),
            second_signal: None,
            ended: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let now = shared.now();
        shared.core().schedule_replay(now);
        loop {
            // Registered before the core is looked at: what is posted from here on wakes.
            let mut notified = pin!(shared.wake.notified());
            let until = self.turn();
            if self.ended {
                return;
            }
            let mut sleep = pin!(until.and_then(|at| shared.clock.instant(at)).map(sleep_until));
            let woken = poll_fn(|cx| self.poll(cx, notified.as_mut(), sleep.as_mut().as_pin_mut())).await;
            match woken {
                Woken::Look => {}
                Woken::Request(ended) => self.request_ended(ended),
                Woken::Disk(finished) => self.disk.call_finished(finished),
                Woken::Command(command) => self.handle_command(command),
                Woken::Signal(which, signal) => self.drain_on_signal(which, signal),
                Woken::SecondSignal => self.cut_drain_short(),
                Woken::NoHandles => self.drain_without_handles(),
            }
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        notified: Pin<&mut Notified<'_>>,
        sleep: Option<Pin<&mut Sleep>>,
    ) -> Poll<Woken> {
        if let Poll::Ready(command) = self.commands.poll_recv(cx) {
            return Poll::Ready(command.map_or(Woken::NoHandles, Woken::Command));
        }
        if let Poll::Ready(Some(ended)) = self.requests.poll_join_next_with_id(cx) {
            return Poll::Ready(Woken::Request(ended));
        }
        if let Poll::Ready(finished) = self.disk.poll(cx) {
            return Poll::Ready(Woken::Disk(finished));
        }
        for (which, on_signal) in self.signals.iter_mut().enumerate() {
            if let Poll::Ready(signal) = on_signal.coming.as_mut().poll(cx) {
                return Poll::Ready(Woken::Signal(which, signal));
            }
        }
        if let Some(SecondSignal(second)) = &mut self.second_signal
            && second.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Woken::SecondSignal);
        }
        let due = sleep.is_some_and(|sleep| sleep.poll(cx).is_ready());
        if due || notified.poll(cx).is_ready() {
            return Poll::Ready(Woken::Look);
        }
        Poll::Pending
    }

    /// Does all that can be done now. Returns when to look again.
    fn turn(&mut self) -> Option<Moment> {
        let now = self.shared.now();
        self.shared.core().expire(now);
        self.advance_drain(now);
        self.disk.work(self.disk_scope(), now);
        if self.may_send() {
            self.send_all(now);
        }
        // Taking a batch may settle rows and free batches for the disk.
        self.disk.work(self.disk_scope(), now);
        self.settle_flushes(now);
        self.sleep_until(now)
    }

    fn sleep_until(&self, now: Now) -> Option<Moment> {
        let mut core = self.shared.core();
        let mut until = if self.may_send() { core.next_wake(now) } else { Moment::MAX };
        for flush in &self.flushes {
            until = until.min(flush.deadline);
        }
        if self.may_replay() && self.disk.is_free() {
            until = until.min(core.next_disk_wake(now));
        }
        let is_idle = core.is_idle();
        until = until.min(self.disk.next_wake()).min(self.drain_wake(is_idle));
        core.sleeps_until(until);
        (until != Moment::MAX).then_some(until)
    }

    fn handle_command(&mut self, command: Command) {
        let now = self.shared.now();
        match command {
            Command::Flush { deadline, responder } => {
                let ordinal = self.shared.core().make_all_due(now);
                self.flushes.push(Flush { ordinal, deadline, responder });
            }
            Command::Drain(drain) => self.begin_drain(drain, now),
            Command::OnSignal { deadline, responder } => match (listen(), responder) {
                (Ok(coming), responder) => self.signals.push(OnSignal { coming, deadline, responder }),
                (Err(error), Some(responder)) => responder.send(Err(error)),
                (Err(error), None) => {
                    tracing::warn!(%error, "cannot install signal handlers: the beacon does not shut down on signals")
                }
            },
            #[cfg(feature = "spool")]
            Command::Dead(command) => self.disk.queue_command(command),
            Command::Erase { user, responder } => self.disk.erase(user, responder, now),
        }
    }

    fn settle_flushes(&mut self, now: Now) {
        if self.flushes.is_empty() {
            return;
        }
        let mut waiting = Vec::new();
        for flush in self.flushes.drain(..) {
            let left = self.shared.core().holds_before(flush.ordinal);
            if left && flush.deadline > now.at {
                waiting.push(flush);
            } else {
                flush.responder.send(!left);
            }
        }
        self.flushes = waiting;
    }

    pub(super) fn emit(&self, event: impl FnOnce() -> BeaconEvent) {
        self.shared.emit(event);
    }
}

impl Drop for Driver {
    /// The runtime went away, or the driver panicked: what can be saved in a moment is saved, and the rest is counted.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let now = self.shared.now();
        let mut core = self.shared.core();
        core.close();
        for (_, outgoing) in self.out.drain() {
            core.abort(outgoing);
        }
        let left = core.take_for_shutdown(usize::MAX, now);
        drop(core);
        let lost = self.disk.save_now(left, now);
        self.shared.core().drop_unsaved(lost, now);
    }
}
