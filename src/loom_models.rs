//! Models for loom, which tries the orders in which threads can meet at a lock or an atomic, one by one:
//!
//! ```sh
//! RUSTFLAGS="--cfg afterboot_loom" cargo test --release --lib loom_
//! ```
//!
//! [`Ready`], [`Waiters`] and [`Lanes`], who is the current lane, are the real ones. What stands around them, the state behind
//! the governor's lock, is written anew here in its smallest form, because loom cannot model tokio: neither its
//! scheduler and driver nor `spawn_blocking` and timers. Nor does it know `std::sync::Arc` (wakers need that one),
//! `OnceLock` and the runtime's shutdown. Those are left to `tests/it/stuck.rs`, `tests/it/loss.rs` and the chaos test.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use crate::base::waiters::Waiters;
use crate::core::handover::Lanes;
use crate::model::id::Id;
use crate::shell::leave::LEAVING;
use crate::shell::ready::{Ready, Slots};

/// What the governor's lock guards, as far as lanes are concerned.
#[derive(Default)]
struct State {
    /// Lane 1 is inside a poll.
    polling: bool,
    /// The watchdog has given that poll up, and it has not returned.
    stuck: bool,
    current: u64,
}

/// Every order with at most two preemptions: bugs with few threads need no more, and all orders take minutes.
fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(run);
}

fn ready_with_one_slot() -> (Arc<Ready>, u32, Waker) {
    let ready = Arc::new(Ready::default());
    let mut slots = Slots::default();
    let slot = slots.take(Id::new(0, 0), &ready);
    let waker = slots.get(slot).expect("it was just taken").1.clone();
    (ready, slot, waker)
}

/// I6: each of two wakers sets its flag and wakes; the lane sleeps until it has seen both. A lost wake is a deadlock.
#[test]
fn loom_a_wake_is_never_lost_between_the_lanes_look_and_its_sleep() {
    model(|| {
        let ready = Arc::new(Ready::default());
        let mut slots = Slots::default();
        let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        for n in 0..2_u32 {
            let slot = slots.take(Id::new(n, 0), &ready);
            let (waker, flags) = (slots.get(slot).expect("it was just taken").1.clone(), Arc::clone(&flags));
            thread::spawn(move || {
                flags[n as usize].store(true, Ordering::Release);
                waker.wake();
            });
        }
        let mut seen = [false; 2];
        block_on(poll_fn(|cx| {
            ready.register(1, cx.waker());
            while let Some((slot, _)) = ready.pop() {
                // The poll of that task.
                seen[slot as usize] |= flags[slot as usize].load(Ordering::Acquire);
            }
            if seen == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
        }));
    });
}

/// I6: several wakes of one slot make at least one poll after the last of them, and never two entries in the line.
#[test]
fn loom_many_wakes_of_one_task_make_a_poll_after_the_last() {
    model(|| {
        let (ready, _, waker) = ready_with_one_slot();
        let woken = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let (waker, woken) = (waker.clone(), Arc::clone(&woken));
            thread::spawn(move || {
                woken.fetch_add(1, Ordering::AcqRel);
                waker.wake();
            });
        }
        let mut polls = 0;
        block_on(poll_fn(|cx| {
            ready.register(1, cx.waker());
            while ready.pop().is_some() {
                polls += 1;
                if woken.load(Ordering::Acquire) == 2 {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        }));
        assert!(polls <= 2, "{polls} polls for two wakes");
    });
}

/// I14, I19: the lane that has taken over sleeps; the poll that was stuck returns and its lane ends. Whatever the
/// order, also where the poll returns before the watchdog looks, somebody sees it and nobody sleeps for ever.
#[test]
fn loom_a_stuck_poll_that_returns_wakes_the_lane_that_took_over() {
    model(|| {
        let ready = Arc::new(Ready::default());
        let state = Arc::new(Mutex::new(State { polling: true, stuck: false, current: 1 }));
        let (left_behind, shared) = (Arc::clone(&ready), Arc::clone(&state));
        let first = thread::spawn(move || {
            let current = {
                let mut state = shared.lock().expect("nobody panics");
                state.polling = false;
                state.stuck = false;
                state.current == 1
            };
            if !current {
                left_behind.wake_lane();
            }
        });
        let taken_over = {
            let mut state = state.lock().expect("nobody panics");
            if state.polling {
                *state = State { polling: false, stuck: true, current: 2 };
            }
            state.current == 2
        };
        if taken_over {
            block_on(poll_fn(|cx| {
                ready.register(2, cx.waker());
                let state = state.lock().expect("nobody panics");
                if state.stuck { Poll::Pending } else { Poll::Ready(()) }
            }));
        }
        first.join().expect("it ends");
    });
}

/// I37, I26: the successor may have its thread early, late or never, and the poll that was left behind may return at any
/// moment: exactly one of the two goes on, and what was woken meanwhile is polled.
#[test]
fn loom_a_successor_that_never_looked_is_overtaken_and_one_lane_goes_on() {
    for has_a_thread in [true, false] {
        model(move || {
            let (ready, _, waker) = ready_with_one_slot();
            let mut lanes = Lanes::default();
            let first = lanes.next(false);
            let second = lanes.next(true);
            let state = Arc::new(Mutex::new(lanes));
            let polls = Arc::new(AtomicUsize::new(0));
            let going_on = Arc::new(AtomicUsize::new(0));
            let lane = |number: u64| Lane {
                number,
                ready: Arc::clone(&ready),
                state: Arc::clone(&state),
                polls: Arc::clone(&polls),
                going_on: Arc::clone(&going_on),
            };
            let (mut left_behind, successor) = (lane(first), lane(second));
            let behind = thread::spawn(move || {
                // Its poll has returned.
                let back = left_behind.state.lock().expect("nobody panics").takes_back(first);
                left_behind.number = back.unwrap_or(first);
                if back.is_none() {
                    left_behind.ready.wake_lane();
                }
                left_behind.goes_on();
            });
            let woken = thread::spawn(move || waker.wake());
            if has_a_thread {
                successor.goes_on();
            }
            behind.join().expect("it ends");
            woken.join().expect("it ends");
            assert_eq!(polls.load(Ordering::Acquire), 1, "one lane polls what was woken");
        });
    }
}

/// One of the two lanes of the model above.
struct Lane {
    number: u64,
    ready: Arc<Ready>,
    state: Arc<Mutex<Lanes>>,
    polls: Arc<AtomicUsize>,
    going_on: Arc<AtomicUsize>,
}

impl Lane {
    /// As the lane: registers, looks, polls or sleeps, until its work is over or it is not the current one.
    fn goes_on(self) {
        block_on(poll_fn(|cx| {
            self.ready.register(self.number, cx.waker());
            if !self.state.lock().expect("nobody panics").looks(self.number) {
                return Poll::Ready(());
            }
            if self.ready.pop().is_none() {
                return Poll::Pending;
            }
            assert_eq!(self.going_on.fetch_add(1, Ordering::AcqRel), 0, "two lanes poll");
            self.polls.fetch_add(1, Ordering::AcqRel);
            self.going_on.fetch_sub(1, Ordering::AcqRel);
            self.state.lock().expect("nobody panics").ends(self.number);
            Poll::Ready(())
        }));
    }
}

/// I6: a task is woken while its poll is stuck. The lane that took over passes it over, so the lane that was left
/// behind puts it into the line again when the poll has returned.
#[test]
fn loom_a_wake_during_a_stuck_poll_is_answered_after_it() {
    model(|| {
        let (ready, slot, waker) = ready_with_one_slot();
        let state = Arc::new(Mutex::new(State { polling: false, stuck: true, current: 2 }));
        let flag = Arc::new(AtomicBool::new(false));
        let (left_behind, shared) = (Arc::clone(&ready), Arc::clone(&state));
        thread::spawn(move || {
            shared.lock().expect("nobody panics").stuck = false;
            left_behind.push(slot);
            left_behind.wake_lane();
        });
        let set = Arc::clone(&flag);
        thread::spawn(move || {
            set.store(true, Ordering::Release);
            waker.wake();
        });
        block_on(poll_fn(|cx| {
            ready.register(2, cx.waker());
            while ready.pop().is_some() {
                let stuck = state.lock().expect("nobody panics").stuck;
                if !stuck && flag.load(Ordering::Acquire) {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        }));
    });
}

/// I7: a lane that was left behind registers late, and does not take the place of the one that follows it.
#[test]
fn loom_a_lane_that_was_left_behind_takes_no_wake_from_its_successor() {
    model(|| {
        let (ready, _, waker) = ready_with_one_slot();
        let late = Arc::clone(&ready);
        let first = thread::spawn(move || late.register(1, Waker::noop()));
        let woken = thread::spawn(move || waker.wake());
        block_on(poll_fn(|cx| {
            ready.register(2, cx.waker());
            if ready.pop().is_some() { Poll::Ready(()) } else { Poll::Pending }
        }));
        first.join().expect("it ends");
        woken.join().expect("it ends");
    });
}

/// I6: a handle is resolved while one waits for it and another one gives up and is dropped, the last of its kind.
#[test]
fn loom_whoever_waits_for_a_result_gets_it_though_others_give_up_meanwhile() {
    model(|| {
        let waiters = Arc::new(Waiters::default());
        let result = Arc::new(AtomicBool::new(false));
        let (resolved, told) = (Arc::clone(&result), Arc::clone(&waiters));
        let resolves = thread::spawn(move || {
            resolved.store(true, Ordering::Release);
            told.wake_all();
        });
        let given_up = Arc::clone(&waiters);
        let gives_up = thread::spawn(move || {
            let mut waiting = pin!(given_up.wait());
            let _ = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        // As `Cell::settled`: the wait is made before the look.
        block_on(async {
            loop {
                let settled = waiters.wait();
                if result.load(Ordering::Acquire) {
                    return;
                }
                settled.await;
            }
        });
        resolves.join().expect("it ends");
        gives_up.join().expect("it ends");
    });
}

/// I14: who waits for the end of a shutdown hears of the last one that is settled.
#[test]
fn loom_the_last_one_that_is_settled_wakes_who_leaves() {
    model(|| {
        let (unsettled, changed) = (Arc::new(AtomicUsize::new(2)), Arc::new(Waiters::default()));
        for _ in 0..2 {
            let (unsettled, changed) = (Arc::clone(&unsettled), Arc::clone(&changed));
            thread::spawn(move || {
                if unsettled.fetch_sub(1, Ordering::AcqRel) == LEAVING + 1 {
                    changed.wake_all();
                }
            });
        }
        unsettled.fetch_or(LEAVING, Ordering::AcqRel);
        block_on(async {
            loop {
                let waits = changed.wait();
                if unsettled.load(Ordering::Acquire) == LEAVING {
                    return;
                }
                waits.await;
            }
        });
    });
}
