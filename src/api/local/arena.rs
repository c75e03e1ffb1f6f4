//! Where the futures of local tasks are: on the thread that declared them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::{self, ThreadId};

use tokio::runtime::Handle;
use tokio::task::LocalSet;

use crate::base::catch::catch_quietly;
use crate::shell::attempt::{Failure, WhenAtStart};

pub(super) type LocalBody = Pin<Box<dyn Future<Output = Result<(), Failure>>>>;

thread_local! {
    static ARENA: RefCell<Arena> = RefCell::default();
}

#[derive(Default)]
struct Arena {
    next: u64,
    bodies: HashMap<u64, Kept>,
    given_up: Arc<GivenUp>,
}

/// The keys of futures whose tasks ended on other threads: they are dropped on this one.
#[derive(Debug, Default)]
struct GivenUp(Mutex<Vec<u64>>);

impl GivenUp {
    fn keys(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Kept {
    body: LocalBody,
    set: Option<Rc<LocalSet>>,
}

/// The body of a local task as the lane knows it: a key to the future, wherever the key is taken.
#[derive(Debug)]
pub(super) struct Proxy {
    thread: ThreadId,
    key: u64,
    given_up: Arc<GivenUp>,
}

impl Proxy {
    /// Keeps a future on this thread.
    pub(super) fn keep(body: LocalBody) -> Proxy {
        let (key, given_up) = ARENA.with_borrow_mut(|arena| {
            arena.next += 1;
            arena.bodies.insert(arena.next, Kept { body, set: None });
            (arena.next, Arc::clone(&arena.given_up))
        });
        Proxy { thread: thread::current().id(), key, given_up }
    }

    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// Takes the future out, so that nothing is borrowed while it is polled or dropped.
    fn take(&self) -> Option<Kept> {
        if thread::current().id() != self.thread {
            return None;
        }
        ARENA.try_with(|arena| arena.borrow_mut().bodies.remove(&self.key)).ok().flatten()
    }
}

/// Polls of this future may spawn into the set.
pub(super) fn polls_in(key: u64, set: Rc<LocalSet>) {
    let replaced = ARENA.with_borrow_mut(|arena| arena.bodies.get_mut(&key)?.set.replace(set));
    drop(replaced);
}

/// The first poll of this future asks the condition.
pub(super) fn asks_first(key: u64, condition: impl FnOnce() -> bool + 'static) {
    ARENA.with_borrow_mut(|arena| {
        // A task that is not governed yet is where it was made.
        if let Some(Kept { body, set }) = arena.bodies.remove(&key) {
            let body = Box::pin(WhenAtStart::new(condition, body));
            arena.bodies.insert(key, Kept { body, set });
        }
    });
}

impl Future for Proxy {
    type Output = Result<(), Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut kept) = self.take() else {
            let text = "a local task was polled on another thread than the one that declared it";
            return Poll::Ready(Err(Failure::Panicked(text.into())));
        };
        let polled = {
            let _entered = kept.set.as_ref().map(|set| set.enter());
            kept.body.as_mut().poll(cx)
        };
        if polled.is_pending() {
            ARENA.with_borrow_mut(|arena| arena.bodies.insert(self.key, kept));
        }
        polled
    }
}

impl Drop for Proxy {
    /// On another thread the future stays where it is until its own thread runs: it must not be dropped elsewhere. Whoever
    /// drops a task has entered the governor's runtime, which that thread drives.
    fn drop(&mut self) {
        if thread::current().id() == self.thread {
            drop(self.take());
            return;
        }
        self.given_up.keys().push(self.key);
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(async { sweep() }));
        }
    }
}

/// Drops what was given up on other threads; nothing is borrowed meanwhile.
fn sweep() {
    let given_up = ARENA.with_borrow(|arena| Arc::clone(&arena.given_up));
    let keys = std::mem::take(&mut *given_up.keys());
    for key in keys {
        let kept = ARENA.with_borrow_mut(|arena| arena.bodies.remove(&key));
        catch_quietly("the destructor of a local task", || drop(kept));
    }
}

/// Leaves the value of an attempt with the handle, on this thread.
pub(super) struct Keep<T, A> {
    pub(super) attempt: Pin<Box<A>>,
    pub(super) value: Rc<OnceCell<T>>,
}

impl<T, A: Future<Output = Result<T, Failure>>> Future for Keep<T, A> {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.attempt.as_mut().poll(cx));
        Poll::Ready(result.map(|value| {
            // An attempt gives its value once.
            drop(self.value.set(value));
        }))
    }
}
