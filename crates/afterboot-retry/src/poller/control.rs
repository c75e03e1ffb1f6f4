//! Commands to a poller, written by handles and read by its loop.

use std::time::Duration;

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Running,
    Paused,
    Stopped,
    Closed,
}

/// The commands of all handles so far.
#[derive(Debug, Clone, Copy)]
struct Command {
    wanted: Wanted,
    period: Duration,
    /// How many immediate fetches were requested.
    fetches: u64,
    /// How many times it was started after a stop.
    starts: u64,
}

/// What the loop has to do.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) wanted: Wanted,
    pub(super) period: Duration,
    /// Fetch at once. Reported once.
    pub(super) fetch_now: bool,
    /// Reset all counters. Reported once.
    pub(super) reset: bool,
}

pub(super) fn pair(period: Duration) -> (Control, PollHandle) {
    let period = period.max(PollHandle::LEAST_PERIOD);
    let (sender, commands) =
        watch::channel(Command { wanted: Wanted::Running, period, fetches: 0, starts: 0 });
    (Control { commands, fetches: 0, starts: 0, _open: sender.clone() }, PollHandle(sender))
}

/// The loop's side.
#[derive(Debug)]
pub(super) struct Control {
    commands: watch::Receiver<Command>,
    fetches: u64,
    starts: u64,
    /// Without it, the loss of the last handle would look like a change, for ever.
    _open: watch::Sender<Command>,
}

impl Control {
    /// Resolves when a command came since the last read.
    pub(super) async fn changed(&mut self) {
        // Cannot fail: a sender is held here.
        drop(self.commands.changed().await);
    }

    pub(super) fn take(&mut self) -> Orders {
        let Command { wanted, period, fetches, starts } = *self.commands.borrow_and_update();
        let orders =
            Orders { wanted, period, fetch_now: fetches != self.fetches, reset: starts != self.starts };
        (self.fetches, self.starts) = (fetches, starts);
        orders
    }

    /// Whether the fetch in flight is to be dropped. What is reported once is left for `take`.
    pub(super) fn drops_fetch(&mut self) -> bool {
        let command = self.commands.borrow_and_update();
        command.fetches != self.fetches || matches!(command.wanted, Wanted::Stopped | Wanted::Closed)
    }
}

/// Controls a [`Poller`](super::Poller). Clones control the same one. Dropping all handles does not stop the poller.
#[derive(Debug, Clone)]
pub struct PollHandle(watch::Sender<Command>);

impl PollHandle {
    const LEAST_PERIOD: Duration = Duration::from_millis(1);

    /// Starts a stopped poller: fetches at once, with all counters at zero. No effect on a running one.
    pub fn start(&self) {
        self.change(|command| {
            if command.wanted == Wanted::Stopped {
                command.wanted = Wanted::Running;
                command.fetches += 1;
                command.starts += 1;
            }
        });
    }

    /// Stops the poller: drops the fetch in flight and makes no further fetch until [`start`](PollHandle::start).
    pub fn stop(&self) {
        self.change(|command| {
            if command.wanted != Wanted::Closed {
                command.wanted = Wanted::Stopped;
            }
        });
    }

    /// Makes no further fetch until [`resume`](PollHandle::resume). The fetch in flight continues, and its result counts.
    pub fn pause(&self) {
        self.change(|command| {
            if command.wanted == Wanted::Running {
                command.wanted = Wanted::Paused;
            }
        });
    }

    /// Continues after a pause. A fetch that became due meanwhile starts at once.
    pub fn resume(&self) {
        self.change(|command| {
            if command.wanted == Wanted::Paused {
                command.wanted = Wanted::Running;
            }
        });
    }

    /// Drops the fetch in flight and fetches again at once, for instance after a seek. The attempts are kept.
    pub fn refetch(&self) {
        self.change(|command| command.fetches += 1);
    }

    /// Sets the period, also for a wait that is running. Below 1 ms is raised to 1 ms.
    pub fn set_period(&self, period: Duration) {
        self.change(|command| command.period = period.max(PollHandle::LEAST_PERIOD));
    }

    /// Drops the fetch in flight and ends the poller.
    pub fn close(&self) {
        self.change(|command| command.wanted = Wanted::Closed);
    }

    fn change(&self, change: impl FnOnce(&mut Command)) {
        self.0.send_modify(change);
    }
}
