//! A set of waiting futures that are woken together. A waker that panics does not keep the others from being woken.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use crate::base::catch::catch_quietly;
use crate::base::sync::{Mutex, MutexGuard};

/// tokio's `Notify` would do, but for one thing: when one waker panics, it forgets the rest of them.
#[derive(Default)]
pub(crate) struct Waiters {
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    /// How often all were woken.
    rounds: u32,
    next: u32,
    /// In the order in which they came. A map, because any of a hundred thousand may be polled again or give up.
    waiting: BTreeMap<u32, Waker>,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everyone who waits now.
    pub(crate) fn wake_all(&self) {
        let waiting = {
            let mut list = self.lock();
            list.rounds = list.rounds.wrapping_add(1);
            std::mem::take(&mut list.waiting)
        };
        for waker in waiting.into_values() {
            catch_quietly("a waker", || waker.wake());
        }
    }

    /// Resolves when `wake_all` is called after this call. So whoever makes it before looking misses nothing.
    pub(crate) fn wait(&self) -> Waiting<'_> {
        Waiting { waiters: self, since: self.lock().rounds, place: None }
    }
}

/// A wait for the next `wake_all`. Dropping it takes its waker off the list.
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    since: u32,
    place: Option<u32>,
}

impl Future for Waiting<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Cloning a waker and dropping one is foreign code, so neither happens under the lock.
        let waker = cx.waker().clone();
        let this = &mut *self;
        let replaced = {
            let mut list = this.waiters.lock();
            if list.rounds != this.since {
                drop(list);
                return Poll::Ready(());
            }
            let known = this.place.and_then(|place| list.waiting.get_mut(&place));
            match known {
                Some(known) => Some(std::mem::replace(known, waker)),
                None => {
                    let place = list.next;
                    list.next = list.next.wrapping_add(1);
                    list.waiting.insert(place, waker);
                    this.place = Some(place);
                    None
                }
            }
        };
        catch_quietly("the destructor of a waker", || drop(replaced));
        Poll::Pending
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let left = self.waiters.lock().waiting.remove(&place);
        catch_quietly("the destructor of a waker", || drop(left));
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").field("waiting", &self.lock().waiting.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::in_time::in_time;
    use tokio_test::{assert_pending, assert_ready, task};

    #[test]
    fn a_wait_made_before_the_wake_is_over_and_one_made_after_it_is_not() {
        let waiters = Waiters::default();
        let mut before = task::spawn(waiters.wait());
        waiters.wake_all();
        assert_ready!(before.poll());
        let mut after = task::spawn(waiters.wait());
        assert_pending!(after.poll());
        waiters.wake_all();
        assert!(after.is_woken());
        assert_ready!(after.poll());
    }

    /// Searched one by one, they would take many minutes.
    #[test]
    fn two_hundred_thousand_may_be_polled_again_and_give_up_in_any_order() {
        in_time(|| {
            let waiters = Waiters::default();
            let mut waiting: Vec<_> = (0..200_000).map(|_| task::spawn(waiters.wait())).collect();
            for _ in 0..3 {
                waiting.iter_mut().for_each(|waiting| assert_pending!(waiting.poll()));
            }
            waiting.truncate(100_000);
            waiting.reverse();
            drop(waiting);
            assert_eq!(waiters.lock().waiting.len(), 0);
        });
    }

    #[test]
    fn whoever_gives_up_leaves_nothing_behind() {
        let waiters = Waiters::default();
        for _ in 0..10 {
            let mut waiting = task::spawn(waiters.wait());
            assert_pending!(waiting.poll());
            assert_pending!(waiting.poll());
        }
        assert_eq!(waiters.lock().waiting.len(), 0);
    }
}
