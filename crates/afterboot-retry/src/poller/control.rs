//! What a poller is wanted to do, said by handles and read by the one loop.

use std::time::Duration;

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Running,
    Paused,
    Stopped,
    Closed,
}

/// What handles have said so far.
#[derive(Debug, Clone, Copy)]
struct Command {
    wanted: Wanted,
    period: Duration,
    /// How often a fetch was wanted without waiting for what is due.
    fetches: u64,
    /// How often it was started after a stop.
    starts: u64,
}

/// What the loop has to do.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) wanted: Wanted,
    pub(super) period: Duration,
    /// Fetch without waiting for what is due. Told once.
    pub(super) fetch_now: bool,
    /// Begin with all counters at zero. Told once.
    pub(super) fresh: bool,
}

pub(super) fn pair(period: Duration) -> (Control, PollHandle) {
    let period = period.max(PollHandle::LEAST_PERIOD);
    let (said, heard) = watch::channel(Command { wanted: Wanted::Running, period, fetches: 0, starts: 0 });
    (Control { heard, fetches: 0, starts: 0, _open: said.clone() }, PollHandle(said))
}

/// The loop's side.
#[derive(Debug)]
pub(super) struct Control {
    heard: watch::Receiver<Command>,
    fetches: u64,
    starts: u64,
    /// Without it, the loss of the last handle would look like a change, for ever.
    _open: watch::Sender<Command>,
}

impl Control {
    /// Resolves when something was said since the state was last looked at.
    pub(super) async fn changed(&mut self) {
        // Cannot fail: a sender is held here.
        drop(self.heard.changed().await);
    }

    pub(super) fn take(&mut self) -> Orders {
        let Command { wanted, period, fetches, starts } = *self.heard.borrow_and_update();
        let orders =
            Orders { wanted, period, fetch_now: fetches != self.fetches, fresh: starts != self.starts };
        (self.fetches, self.starts) = (fetches, starts);
        orders
    }

    /// Whether the fetch in flight is to be dropped. What is told once stays untold, for what comes after the fetch.
    pub(super) fn drops_fetch(&mut self) -> bool {
        let command = self.heard.borrow_and_update();
        command.fetches != self.fetches || matches!(command.wanted, Wanted::Stopped | Wanted::Closed)
    }
}

/// Controls a [`Poller`](super::Poller). Clones control the same one. Dropping all of them changes nothing.
#[derive(Debug, Clone)]
pub struct PollHandle(watch::Sender<Command>);

impl PollHandle {
    const LEAST_PERIOD: Duration = Duration::from_millis(1);

    /// Starts after a stop: fetches at once, with all counters at zero. No effect on a poller that runs.
    pub fn start(&self) {
        self.change(|command| {
            if command.wanted == Wanted::Stopped {
                command.wanted = Wanted::Running;
                command.fetches += 1;
                command.starts += 1;
            }
        });
    }

    /// Stops: drops the fetch in flight and makes no more.
    pub fn stop(&self) {
        self.change(|command| {
            if command.wanted != Wanted::Closed {
                command.wanted = Wanted::Stopped;
            }
        });
    }

    /// Makes no more fetches until [`resume`](PollHandle::resume). The fetch in flight goes on, and what it gives counts.
    pub fn pause(&self) {
        self.change(|command| {
            if command.wanted == Wanted::Running {
                command.wanted = Wanted::Paused;
            }
        });
    }

    /// Goes on after a pause: at once if a fetch was due meanwhile, else when it is.
    pub fn resume(&self) {
        self.change(|command| {
            if command.wanted == Wanted::Paused {
                command.wanted = Wanted::Running;
            }
        });
    }

    /// Drops the fetch in flight and fetches anew, for a seek say. The attempts stay: a fetch that was dropped says
    /// nothing about the server.
    pub fn refetch(&self) {
        self.change(|command| command.fetches += 1);
    }

    /// Changes the period, also of the wait that is running. Below 1 ms is taken as 1 ms.
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
