//! The set of woken slots, between wakers and the lane.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};

use crate::base::clock::{Clock, Stamp};
use crate::base::sync::{Mutex, MutexGuard};
use crate::model::id::Id;

/// Woken slots in the order of their wakes. Apart from the core, because wakers are called from anywhere and
/// must be `Send` even where the tasks are not.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    woken: Mutex<Woken>,
    /// There where it is recorded when each wake came.
    clock: Option<Clock>,
}

#[derive(Debug, Default)]
struct Woken {
    line: VecDeque<(u32, Option<Stamp>)>,
    /// Whether a slot stands in the line: many wakes before a poll make one poll.
    waiting: Vec<bool>,
    /// The lane where it waits, and which lane that is.
    lane: Option<Waker>,
    owner: u64,
}

impl Ready {
    /// With a clock, it is noted when each wake came.
    pub(crate) fn new(clock: Option<Clock>) -> Ready {
        Ready { woken: Mutex::default(), clock }
    }

    fn lock(&self) -> MutexGuard<'_, Woken> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot wants a poll.
    pub(crate) fn push(&self, slot: u32) {
        let place = slot as usize;
        let now = self.clock.as_ref().map(Clock::now);
        {
            let mut woken = self.lock();
            if woken.waiting.len() <= place {
                woken.waiting.resize(place + 1, false);
            }
            if std::mem::replace(&mut woken.waiting[place], true) {
                return;
            }
            woken.line.push_back((slot, now));
        }
        self.wake_lane();
    }

    /// The slot that was woken first, and when if that is noted. From now on a wake counts anew: it may come during
    /// the poll.
    pub(crate) fn pop(&self) -> Option<(u32, Option<Stamp>)> {
        let mut woken = self.lock();
        let (slot, at) = woken.line.pop_front()?;
        woken.waiting[slot as usize] = false;
        Some((slot, at))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().line.is_empty()
    }

    /// The lane registers before it looks, so that whatever happens after its look wakes it. A lane that another
    /// one has taken over from registers in vain.
    pub(crate) fn register(&self, owner: u64, lane: &Waker) {
        let mut woken = self.lock();
        if owner < woken.owner {
            return;
        }
        woken.owner = owner;
        if woken.lane.as_ref().is_none_or(|known| !known.will_wake(lane)) {
            // The lane's waker is tokio's own: nothing of the user's is cloned or dropped here.
            woken.lane = Some(lane.clone());
        }
    }

    /// Something changed that the lane should look at.
    pub(crate) fn wake_lane(&self) {
        let lane = self.lock().lane.take();
        if let Some(lane) = lane {
            lane.wake();
        }
    }
}

struct SlotWaker {
    ready: Arc<Ready>,
    slot: u32,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.push(self.slot);
    }
}

/// The places of tasks in flight. Each has one waker, made once and used by every task that gets the place; a
/// waker that outlives its task causes a poll too many, never one too few.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    task: Option<Id>,
    waker: Waker,
}

impl Slots {
    /// The free slot that was used last, or a new one.
    pub(crate) fn take(&mut self, task: Id, ready: &Arc<Ready>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].task = Some(task);
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer slots than ids");
        let waker = Waker::from(Arc::new(SlotWaker { ready: Arc::clone(ready), slot }));
        self.slots.push(Slot { task: Some(task), waker });
        slot
    }

    pub(crate) fn give_back(&mut self, slot: u32) {
        if self.slots[slot as usize].task.take().is_some() {
            self.free.push(slot);
        }
    }

    /// Who holds the slot, and its waker.
    pub(crate) fn get(&self, slot: u32) -> Option<(Id, &Waker)> {
        let slot = &self.slots[slot as usize];
        slot.task.map(|task| (task, &slot.waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    #[test]
    fn wakes_before_a_poll_make_one_poll_and_a_wake_during_it_makes_another() {
        let ready = Arc::new(Ready::default());
        let mut slots = Slots::default();
        let task = Id::new(0, 0);
        let slot = slots.take(task, &ready);
        let waker = slots.get(slot).unwrap().1.clone();
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_eq!(ready.pop(), Some((slot, None)));
        assert_eq!(ready.pop(), None);
        waker.wake();
        assert_eq!(ready.pop(), Some((slot, None)));
    }

    #[test]
    fn a_wake_after_the_look_wakes_the_lane() {
        let ready = Arc::new(Ready::default());
        let mut slots = Slots::default();
        let slot = slots.take(Id::new(0, 0), &ready);
        let waker = slots.get(slot).unwrap().1.clone();
        let mut lane = tokio_test::task::spawn(std::future::poll_fn(|cx| {
            ready.register(1, cx.waker());
            if ready.pop().is_some() { Poll::Ready(()) } else { Poll::Pending }
        }));
        tokio_test::assert_pending!(lane.poll());
        assert!(!lane.is_woken());
        waker.wake_by_ref();
        assert!(lane.is_woken());
        tokio_test::assert_ready!(lane.poll());
    }

    #[test]
    fn slots_are_used_again_and_a_slot_given_back_twice_is_free_once() {
        let ready = Arc::new(Ready::default());
        let mut slots = Slots::default();
        let (a, b) = (Id::new(0, 0), Id::new(1, 0));
        let first = slots.take(a, &ready);
        slots.give_back(first);
        slots.give_back(first);
        assert_eq!(slots.get(first).map(|(id, _)| id), None);
        assert_eq!(slots.take(a, &ready), first);
        assert_ne!(slots.take(b, &ready), first);
    }
}
