//! The lane: the single line that polls governed tasks, one a tick.
//!
//! One spawned task a governor. It waits until a task may start or was woken, lets a whole tick of the event
//! loop pass, and polls one task. So I/O and timers are served between any two governed polls, and at most one
//! worker is ever busy with them, whatever the concurrency.
//!
//! A lane has a number. When a poll holds it for too long, the watchdog makes the next one, on a thread of the
//! blocking pool; the old lane ends when its poll returns, or takes the line back where the next one has no thread; and the lane
//! on the pool gives way to one on the workers as soon as no poll is stuck.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Sleep, sleep_until};

use crate::base::catch::{catch, catch_quietly, logged};
use crate::base::clock::{Stamp, Stopwatch};
use crate::base::threads;
use crate::base::tick::Ticker;
use crate::core::handover::Place;
use crate::core::stalls::LONG_TASK;
use crate::core::{Actions, AfterPoll, Resolve, Turn, Work};
use crate::model::id::Id;
use crate::model::name::Name;
use crate::model::outcome::{CancelReason, Outcome};
use crate::shell::context::{self, another_is_polled};
use crate::shell::governed::{Ended, Governed};
use crate::shell::shared::Shared;
use crate::shell::state::Effects;
use crate::shell::witness;

/// Shorter polls are not judged, and a stop of the process that matters makes a poll longer than this.
const WORTH_WITNESS: Duration = Duration::from_millis(20);

/// Starts the lane of this number.
pub(crate) fn spawn(shared: &Arc<Shared>, number: u64, place: Place) {
    let guard = Guard { shared: Arc::clone(shared), number, over: false };
    match place {
        Place::Worker => {
            shared.runtime.spawn(run(guard, place));
        }
        Place::Pool => {
            let runtime = shared.runtime.clone();
            let asked = threads::on_the_pool(&shared.runtime, move || {
                // Timers panic once the runtime has begun to go away; the guard then resolves what is left.
                catch_quietly("a lane on the blocking pool", || runtime.block_on(run(guard, place)));
            });
            if let Err(why) = asked {
                shared.update(|state, now, effects| state.lane_refused(number, now, effects));
                logged(
                    || tracing::warn!(target: "afterboot", governor = %shared.name, %why, "no thread for the lane"),
                );
            }
        }
    }
}

/// Resolves what is left when the lane is dropped before its work is over: the runtime went away.
pub(crate) struct Guard {
    shared: Arc<Shared>,
    number: u64,
    over: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let current = {
            let mut state = self.shared.lock();
            let current = state.is_current_lane(self.number);
            state.lane_is_gone(self.number);
            current
        };
        if current {
            runtime_is_gone(&self.shared);
        }
    }
}

/// Nothing is polled any more: every handle is resolved.
pub(crate) fn runtime_is_gone(shared: &Arc<Shared>) {
    shared.apply(|core, _, actions| core.close_for(CancelReason::RuntimeGone, actions));
    while shared.apply(|core, now, actions| core.cancel_piece(now, actions)) {}
    shared.apply(|core, now, actions| core.end_running(now, actions));
    // A lane on the blocking pool must see it: its thread would keep the runtime from being dropped.
    shared.ready.wake_lane();
}

/// The body of the lane's task.
async fn run(mut guard: Guard, place: Place) {
    let mut lane = Lane {
        shared: Arc::clone(&guard.shared),
        number: guard.number,
        place,
        measures: true,
        goes_on: false,
        actions: Actions::default(),
        effects: Effects::default(),
    };
    let attendance = witness::attend();
    if attendance.refused {
        lane.shared.update(|state, now, effects| state.thread_refused(threads::WITNESS, now, effects));
    }
    let mut ticker = Ticker::new();
    let mut timer = None;
    while lane.work(&mut timer).await {
        ticker.tick().await;
        lane.turn();
        guard.number = lane.number;
    }
    guard.over = true;
    lane.shared.lane_ended.wake_all();
}

struct Lane {
    shared: Arc<Shared>,
    number: u64,
    place: Place,
    /// Whether the next turn's own time is measured.
    measures: bool,
    /// Known from the last turn: there is more to do at once.
    goes_on: bool,
    actions: Actions,
    effects: Effects,
}

/// A task to poll now.
struct Polled {
    id: Id,
    cell: Arc<dyn Governed>,
    waker: Waker,
    /// The task's name where this is its first poll.
    first: Option<Name>,
}

impl Lane {
    /// Waits until something can be done; false where everything is over, or another lane has taken over.
    async fn work(&mut self, timer: &mut Option<Pin<Box<Sleep>>>) -> bool {
        poll_fn(|cx| {
            if std::mem::take(&mut self.goes_on) {
                return Poll::Ready(true);
            }
            self.shared.ready.register(self.number, cx.waker());
            loop {
                let (now, work) = self.look();
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
            let now = shared.clock.now_inside();
            if state.is_current_lane(self.number) {
                state.core.advance(now, &mut self.actions);
            }
            state.apply_actions(now, &shared.ready, &mut self.actions, &mut self.effects);
            (now, state.work((self.number, self.place), now, &shared.ready, &mut self.effects))
        };
        shared.perform(&mut self.effects);
        (now, work)
    }

    /// One governed poll, or none where what there was to do has gone meanwhile.
    fn turn(&mut self) {
        let measured = self.measures.then(Stopwatch::start);
        let Some(Polled { id, cell, waker, first }) = self.pick() else { return };
        self.shared.perform(&mut self.effects);
        let began = Stopwatch::start();
        let polled = {
            let _here = context::enter(Arc::as_ptr(&self.shared), id, began);
            // The cell catches what a poll does; this net is for spans and for what lies between.
            catch(|| {
                if let Some(name) = &first {
                    cell.begin_span(&self.shared.name, name);
                }
                cell.poll(&mut Context::from_waker(&waker))
            })
        };
        let took = began.elapsed();
        let no_thread = threads::take_refused();
        let ended = match polled {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(ended)) => Some(ended),
            Err(text) => Some(Ended::With(Outcome::Panicked(text))),
        };
        let (after_poll, name, was_stuck, own, outcome) = {
            let mut state = self.shared.lock();
            let now = self.shared.clock.now_inside();
            if took >= WORTH_WITNESS {
                self.shared.hear_witness(&mut state);
            }
            let own = state.core.own_time(id, took, now);
            if own < LONG_TASK {
                self.shared.came_round(now);
            }
            let name = state.name(id);
            // The watchdog has told it already.
            let was_stuck = state.core.is_stuck(id);
            let (core, actions) = (&mut state.core, &mut self.actions);
            let after_poll = match ended {
                None => core.poll_ended(id, took, None, now, actions),
                Some(Ended::With(outcome)) => core.poll_ended(id, took, Some(outcome), now, actions),
                Some(Ended::Again(after)) => core.attempt_failed(id, took, after, now, actions),
            };
            // Who resolves the handle early may come second: both say the same.
            let outcome =
                if after_poll == AfterPoll::Release { state.outcome_of(id) } else { Outcome::Abandoned };
            let current = state.goes_on_as(&mut self.number, now, &mut self.effects);
            if current {
                state.core.advance(now, &mut self.actions);
            }
            if no_thread {
                state.thread_refused(threads::BLOCKING, now, &mut self.effects);
            }
            state.apply_actions(now, &self.shared.ready, &mut self.actions, &mut self.effects);
            self.goes_on = self.place == Place::Worker && state.goes_on(self.number, now, &self.shared.ready);
            self.measures = state.core.cost().measures_next();
            // `cell` is held here too, so nothing of the user's is dropped under the lock.
            match after_poll {
                AfterPoll::Keep => {}
                AfterPoll::Rest => state.give_slot_back(id),
                AfterPoll::Resolve(_) | AfterPoll::Release => {
                    state.unsettled.fetch_add(1, Ordering::AcqRel);
                    drop(state.leave(id));
                }
            }
            // A lane that was left behind has to tell the one that took over that its poll has returned.
            self.effects.wake_lane(!current);
            (after_poll, name, was_stuck, own, outcome)
        };
        if own >= self.shared.stuck_after && !was_stuck {
            logged(
                || tracing::warn!(target: "afterboot", governor = %self.shared.name, task = %name, took = ?own, "a poll blocked the lane"),
            );
        }
        match after_poll {
            AfterPoll::Keep | AfterPoll::Rest => {}
            AfterPoll::Resolve(outcome) => {
                self.shared.settle(cell, Resolve { id, name, outcome, still_running: false });
                self.shared.settled();
            }
            // The handle has its outcome; what came too late is dropped.
            AfterPoll::Release => {
                cell.settle(outcome, name);
                self.shared.settled();
            }
        }
        self.shared.perform(&mut self.effects);
        if let Some(turn) = measured {
            self.shared.lock().core.turn_took(turn.elapsed().saturating_sub(took));
        }
    }

    /// Tells the core who was woken, and asks it whose turn it is.
    fn pick(&mut self) -> Option<Polled> {
        let shared = &self.shared;
        let mut state = shared.lock();
        if !state.is_current_lane(self.number) {
            return None;
        }
        let now = shared.clock.now_inside();
        let picked = state.pick(now, &shared.ready, &mut self.actions);
        if let Some((Turn { id, woken, .. }, _)) = picked {
            state.core.poll_begins(id, tokio::runtime::worker_index(), now);
            shared.came_round(now);
            another_is_polled();
            state.core.poll_was_asked_for(woken);
        }
        state.apply_actions(now, &shared.ready, &mut self.actions, &mut self.effects);
        let (Turn { id, starts, .. }, slot) = picked?;
        let first = starts.then(|| state.name(id));
        let waker = state.slots.get(slot)?.1.clone();
        Some(Polled { id, cell: state.cell(id)?, waker, first })
    }
}
