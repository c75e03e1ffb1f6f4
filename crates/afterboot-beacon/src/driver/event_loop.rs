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
use super::outage::Outage;
use super::send::Sent;
use super::shutdown::Leaving;
use crate::engine::{BeaconEvent, Moment, Now, Outgoing};
use crate::state::command::Command;
use crate::state::reply::Answerer;
use crate::state::settings::DiskOptions;
use crate::state::shared::Shared;
use crate::state::signal::{LeftAnswer, Signal};
use crate::state::token_source::TokenSource;
use crate::transport::Transport;

/// Everything that was posted before it is away when no batch before `ordinal` is left in memory.
#[derive(Debug)]
pub(super) struct Flush {
    ordinal: u64,
    deadline: Moment,
    answer: Answerer<bool>,
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
    pub(super) outage: Option<Outage>,
    pub(super) disk: Disk,
    pub(super) flushes: Vec<Flush>,
    pub(super) leaving: Option<Leaving>,
    pub(super) signals: Vec<OnSignal>,
    /// The next signal, once one has come.
    pub(super) another: Option<Another>,
    pub(super) ended: bool,
}

/// Another signal to come.
pub(super) struct Another(pub(super) Waiting);

impl fmt::Debug for Another {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Another").finish_non_exhaustive()
    }
}

/// Somebody wants to hear of a signal.
pub(super) struct OnSignal {
    pub(super) coming: Waiting,
    pub(super) deadline: Duration,
    pub(super) answer: Option<Answerer<LeftAnswer>>,
}

impl fmt::Debug for OnSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnSignal").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// Why the driver woke up.
enum Woken {
    Look,
    Answered(Result<(task::Id, Sent), task::JoinError>),
    Disk(disk::Finished),
    Command(Command),
    Signal(usize, Signal),
    AnotherSignal,
    /// The last sender of commands is gone, which a forked child's parent keeps: never in practice.
    Alone,
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
        Driver {
            shared,
            transport,
            tokens,
            time_limit,
            commands,
            requests: JoinSet::new(),
            out: HashMap::new(),
            tries: 0,
            outage: None,
            disk: Disk::new(app, disk),
            flushes: Vec::new(),
            leaving: None,
            signals: Vec::new(),
            another: None,
            ended: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let now = shared.now();
        shared.core().begin(now);
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
                Woken::Answered(answered) => self.answered(answered),
                Woken::Disk(finished) => self.disk_finished(finished),
                Woken::Command(command) => self.obey(command),
                Woken::Signal(which, signal) => self.leave_on_signal(which, signal),
                Woken::AnotherSignal => self.leave_at_once(),
                Woken::Alone => self.leave_for_good(),
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
            return Poll::Ready(command.map_or(Woken::Alone, Woken::Command));
        }
        if let Poll::Ready(Some(answered)) = self.requests.poll_join_next_with_id(cx) {
            return Poll::Ready(Woken::Answered(answered));
        }
        if let Poll::Ready(finished) = self.disk.poll(cx) {
            return Poll::Ready(Woken::Disk(finished));
        }
        for (which, on_signal) in self.signals.iter_mut().enumerate() {
            if let Poll::Ready(signal) = on_signal.coming.as_mut().poll(cx) {
                return Poll::Ready(Woken::Signal(which, signal));
            }
        }
        if let Some(Another(another)) = &mut self.another
            && another.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Woken::AnotherSignal);
        }
        let due = sleep.is_some_and(|sleep| sleep.poll(cx).is_ready());
        if due || notified.poll(cx).is_ready() {
            return Poll::Ready(Woken::Look);
        }
        Poll::Pending
    }

    /// Does all that can be done now. When to look again.
    fn turn(&mut self) -> Option<Moment> {
        let now = self.shared.now();
        self.shared.core().expire(now);
        self.work_on_leaving(now);
        self.work_on_disk(now);
        if self.may_send() {
            self.send_all(now);
        }
        // Taking a batch may settle rows and free batches for the disk.
        self.work_on_disk(now);
        self.answer_flushes(now);
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
        let nothing_left = core.nothing_left();
        until = until.min(self.disk.looks_again()).min(self.leaving_until(nothing_left));
        core.sleeps_until(until);
        (until != Moment::MAX).then_some(until)
    }

    fn obey(&mut self, command: Command) {
        let now = self.shared.now();
        match command {
            Command::Flush { deadline, answer } => {
                let ordinal = self.shared.core().hurry(now);
                self.flushes.push(Flush { ordinal, deadline, answer });
            }
            Command::Leave(leave) => self.begin_leaving(leave, now),
            Command::OnSignal { deadline, answer } => match (listen(), answer) {
                (Ok(coming), answer) => self.signals.push(OnSignal { coming, deadline, answer }),
                (Err(error), Some(answer)) => answer.say(Err(error)),
                (Err(error), None) => tracing::warn!(%error, "signals cannot be listened to"),
            },
            #[cfg(feature = "spool")]
            Command::Dead(command) => self.dead_command(command),
            Command::Erase { user, answer } => self.erase(user, answer, now),
        }
    }

    fn answer_flushes(&mut self, now: Now) {
        if self.flushes.is_empty() {
            return;
        }
        let mut waiting = Vec::new();
        for flush in self.flushes.drain(..) {
            let left = self.shared.core().holds_before(flush.ordinal);
            if left && flush.deadline > now.at {
                waiting.push(flush);
            } else {
                flush.answer.say(!left);
            }
        }
        self.flushes = waiting;
    }

    pub(super) fn tell(&self, event: impl FnOnce() -> BeaconEvent) {
        self.shared.tell(event);
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
            core.aborted(outgoing);
        }
        let left = core.take_to_leave(usize::MAX, now);
        drop(core);
        let lost = self.disk.save_now(&self.shared, left, now);
        self.shared.core().abandon(lost, now);
    }
}
