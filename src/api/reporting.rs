//! A governor's report is asked for.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::base::clock::Stamp;
use crate::core::Core;
use crate::report::pace::Pace;
use crate::report::{Report, ThreadMissed};
use crate::shell::shared::Shared;

impl Report {
    /// The report as it stands now, made here and now. Others get the lock between its pieces.
    pub(crate) fn at_once(shared: &Shared) -> Report {
        let made = pin!(of(shared, Pace::at_once()));
        match made.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(report) => report,
            Poll::Pending => unreachable!("it waits for nothing"),
        }
    }

    /// The report as it stands now. A long one is made over many ticks of the event loop, and speaks of the moment at which
    /// it was begun.
    pub(crate) async fn in_ticks(shared: &Shared) -> Report {
        of(shared, Pace::with_ticks()).await
    }
}

async fn of(shared: &Shared, pace: Pace) -> Report {
    let look = |look: &mut dyn FnMut(&Core, Stamp)| {
        let state = shared.lock();
        look(&state.core, shared.clock.now());
    };
    let mut report = Report::made(&shared.name, look, pace).await;
    report.threads_missed = shared.lock().threads_missed.iter().map(missed).collect();
    report
}

fn missed((wanted, first, times): (&'static str, Stamp, u64)) -> ThreadMissed {
    ThreadMissed { wanted: wanted.to_owned(), first: first.as_duration(), times }
}
