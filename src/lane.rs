//! The lane: the single line that polls governed tasks, one a tick.
//!
//! One spawned task a governor. It waits until a task may start or was woken, lets a whole tick of the event
//! loop pass, and polls one task. So I/O and timers are served between any two governed polls, and at most one
//! worker is ever busy with them, whatever the concurrency.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::time::{Sleep, sleep_until};

use crate::cell::Governed;
use crate::clock::{Stamp, Stopwatch};
use crate::context;
use crate::outcome::{CancelReason, Outcome};
use crate::scheduler::{Actions, Fate, Resolve, Work};
use crate::shared::{Effects, Shared};
use crate::table::Id;
use crate::tick::Ticker;

/// How many queued tasks the guard cancels before it lets go of the lock.
const AT_ONCE: usize = 1024;

/// Resolves what is left when the lane is dropped before its work is over: the runtime went away.
pub(crate) struct Guard {
    shared: Arc<Shared>,
    over: bool,
}

impl Guard {
    pub(crate) fn new(shared: Arc<Shared>) -> Guard {
        Guard { shared, over: false }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.shared.lock().lane_is_gone();
        self.shared.apply(|core, _, _| core.close_for(CancelReason::RuntimeGone));
        let mut place = Some(0);
        while let Some(from) = place {
            place = self.shared.apply(|core, now, actions| core.cancel_queued(from, AT_ONCE, now, actions));
        }
        self.shared.apply(|core, now, actions| core.end_running(now, actions));
    }
}

/// The body of the lane's task.
pub(crate) async fn run(mut guard: Guard) {
    let mut lane = Lane {
        shared: Arc::clone(&guard.shared),
        start_first: true,
        measures: true,
        known: None,
        actions: Actions::default(),
        effects: Effects::default(),
    };
    let mut ticker = Ticker::new(lane.shared.multi_thread());
    let mut timer = None;
    while lane.work(&mut timer).await {
        ticker.tick().await;
        lane.turn();
    }
    guard.over = true;
}

struct Lane {
    shared: Arc<Shared>,
    /// A start and a woken task alternate, so that neither a chatty task nor a long queue starves the other.
    start_first: bool,
    /// Whether the next turn's own time is measured.
    measures: bool,
    /// What there was to do when the last turn ended: saves a look where there is more.
    known: Option<Work>,
    actions: Actions,
    effects: Effects,
}

/// A task to poll now.
struct Turn {
    id: Id,
    cell: Arc<dyn Governed>,
    waker: Waker,
    /// The task's name where this is its first poll.
    first: Option<Cow<'static, str>>,
}

impl Lane {
    /// Waits until something can be done; false where everything is over.
    async fn work(&mut self, timer: &mut Option<Pin<Box<Sleep>>>) -> bool {
        poll_fn(|cx| {
            self.shared.ready.register(cx.waker());
            loop {
                let (now, work) = match self.known.take() {
                    Some(Work::Now) => return Poll::Ready(true),
                    _ => self.look(),
                };
                let at = match work {
                    Work::Over => return Poll::Ready(false),
                    Work::Now => return Poll::Ready(true),
                    Work::Event => return Poll::Pending,
                    Work::At(at) => at,
                };
                debug_assert!(at > now, "what is due is done");
                let at = self.shared.clock.instant(at);
                let sleep = timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
                if sleep.deadline() != at || sleep.is_elapsed() {
                    sleep.as_mut().reset(at);
                }
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Lets time pass in the core and asks what there is to do.
    fn look(&mut self) -> (Stamp, Work) {
        let shared = &self.shared;
        let (now, work) = {
            let mut state = shared.lock();
            let now = shared.clock.now();
            state.core.advance(now, &mut self.actions);
            state.carry(now, &shared.ready, &mut self.actions, &mut self.effects);
            (now, state.work(now, &shared.ready))
        };
        shared.perform(&mut self.effects);
        (now, work)
    }

    /// One governed poll, or none where what there was to do has gone meanwhile.
    fn turn(&mut self) {
        let measured = self.measures.then(Stopwatch::start);
        let Some(Turn { id, cell, waker, first }) = self.pick() else { return };
        self.shared.perform(&mut self.effects);
        let began = Stopwatch::start();
        let polled = {
            let _here = context::enter(Arc::as_ptr(&self.shared), id, began);
            if let Some(name) = &first {
                cell.begin_span(&self.shared.name, name);
            }
            cell.poll(&mut Context::from_waker(&waker))
        };
        let took = began.elapsed();
        let outcome = match polled {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        };
        let (fate, name) = {
            let mut state = self.shared.lock();
            let now = self.shared.clock.now();
            let fate = state.core.poll_ended(id, took, outcome, now, &mut self.actions);
            state.carry(now, &self.shared.ready, &mut self.actions, &mut self.effects);
            self.measures = state.core.cost().measures_next();
            self.known = Some(state.glance(now, &self.shared.ready));
            // `cell` is held here too, so nothing of the user's is dropped under the lock.
            let name = (fate != Fate::Keep).then(|| {
                state.leave(id);
                state.name(id)
            });
            (fate, name.unwrap_or_default())
        };
        match fate {
            Fate::Keep => {}
            Fate::Resolve(outcome) => {
                self.shared.settle(cell, Resolve { id, name, outcome, still_running: false });
            }
            // The handle has its outcome; what came too late is dropped.
            Fate::Release => cell.settle(Outcome::Abandoned, name),
        }
        self.shared.perform(&mut self.effects);
        if let Some(turn) = measured {
            self.shared.lock().core.turn_took(turn.elapsed().saturating_sub(took));
        }
    }

    /// Demanded tasks first; then a start and a woken task in turn.
    fn pick(&mut self) -> Option<Turn> {
        let mut state = self.shared.lock();
        let now = self.shared.clock.now();
        let start_first = self.start_first;
        let mut start = state.core.start_demanded(now);
        if start.is_none() && start_first {
            start = state.core.start_ordinary(now);
        }
        let mut woken = None;
        if start.is_none() {
            woken = std::iter::from_fn(|| self.shared.ready.pop())
                .find_map(|slot| state.slots.get(slot).map(|(id, _)| (id, slot)));
        }
        if start.is_none() && woken.is_none() && !start_first {
            start = state.core.start_ordinary(now);
        }
        self.start_first = start.is_none();
        let (id, slot) = match start {
            Some(id) => (id, state.take_slot(id, &self.shared.ready)),
            None => woken?,
        };
        state.core.poll_begins(id, now);
        state.carry(now, &self.shared.ready, &mut self.actions, &mut self.effects);
        let waker = state.slots.get(slot)?.1.clone();
        let first = start.map(|id| state.name(id));
        Some(Turn { id, cell: state.cell(id)?, waker, first })
    }
}
