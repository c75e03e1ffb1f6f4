//! A task as it is declared.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::model::queue::Queue;
use crate::shell::attempt::{Attempt, BoxedAttempt, WhenAtStart};
use crate::shell::blocking::Blocking;
use crate::shell::governed::Governed;
use crate::shell::governed::Predecessor;
use crate::shell::output::TaskOutput;

/// A named unit of startup work. It does nothing until [`Governor::govern`](crate::Governor::govern) takes it.
///
/// ```
/// use std::time::Duration;
/// use afterboot::Task;
///
/// let task = Task::new("search index", || async { std::fs::read("index.bin") })
///     .idle()
///     .timeout(Duration::from_secs(10));
/// ```
#[must_use = "a task does nothing until it is governed"]
pub struct Task<T> {
    pub(crate) name: Cow<'static, str>,
    pub(crate) queue: Queue,
    pub(crate) condition: bool,
    /// There for a blocking task.
    pub(crate) given_up: Option<Arc<AtomicBool>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) no_later_than: Option<Duration>,
    pub(crate) never_delay: bool,
    /// There for a task that is retried.
    #[cfg(feature = "retry")]
    pub(crate) attempt_limit: Option<Arc<std::sync::OnceLock<Duration>>>,
    #[cfg(feature = "retry")]
    pub(crate) attempt_limit_is_wrong: bool,
    /// Each with whether its mere end will do.
    pub(crate) after: Vec<(Arc<dyn Governed>, bool)>,
    pub(crate) body: BoxedAttempt<T>,
}

impl<T: Send + Sync + 'static> Task<T> {
    /// A task that returns `()` or a `Result`.
    ///
    /// Neither the closure nor its future runs before the task's own tick. The name is free text. A second task of the same
    /// name is called `name#2` wherever a task is named: in the report, errors, events, the log and for
    /// [`Monkey::task`](crate::Monkey::task). Where somebody has declared `name#2` in so many words, it is the next number
    /// that is free. No number is given twice while a task of the name is known.
    ///
    /// # Panics
    /// Never. A panic of the closure, of a poll or of a destructor is caught; the task's outcome is then
    /// [`Outcome::Panicked`](crate::Outcome::Panicked), unless a timeout or a cancellation had decided it before. Under
    /// `panic = "abort"` nothing can be caught.
    pub fn new<F, R>(name: impl Into<Cow<'static, str>>, run: F) -> Task<T>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: TaskOutput<Value = T>,
    {
        Task::from_body(name.into(), Box::pin(Attempt::new(run)))
    }

    /// A task that gives any value and cannot fail.
    pub fn value<F, R>(name: impl Into<Cow<'static, str>>, run: F) -> Task<T>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Future<Output = T> + Send + 'static,
    {
        let run = move || async move { Ok::<T, std::convert::Infallible>(run().await) };
        Task::from_body(name.into(), Box::pin(Attempt::new(run)))
    }

    /// A closure that blocks: it runs on tokio's blocking pool and holds a slot until it returns.
    ///
    /// It cannot be stopped from outside. Where its timeout or a shutdown's deadline passes, its handle is
    /// resolved and its slot stays taken until it returns; a closure that still stands in the pool's line then
    /// does not begin. Dropping the runtime waits for it, unless the
    /// runtime is shut down with `shutdown_timeout` or `shutdown_background`.
    ///
    /// Where no thread can be had, because the system refuses one, the closure waits until one can, and the report says so.
    pub fn blocking<F, O>(name: impl Into<Cow<'static, str>>, run: F) -> Task<T>
    where
        F: FnOnce() -> O + Send + 'static,
        O: TaskOutput<Value = T> + 'static,
    {
        let given_up = Arc::new(AtomicBool::new(false));
        let body = Box::pin(Blocking::new(run, Arc::clone(&given_up)));
        Task { given_up: Some(given_up), ..Task::from_body(name.into(), body) }
    }

    pub(crate) fn from_body(name: Cow<'static, str>, body: BoxedAttempt<T>) -> Task<T> {
        Task {
            name,
            queue: Queue::Normal,
            condition: true,
            given_up: None,
            timeout: None,
            no_later_than: None,
            never_delay: false,
            #[cfg(feature = "retry")]
            attempt_limit: None,
            #[cfg(feature = "retry")]
            attempt_limit_is_wrong: false,
            after: Vec::new(),
            body,
        }
    }

    /// Waits in the idle queue, until the application is quiet. Without it a task is normal.
    ///
    /// A normal task that comes [`after`](Task::after) an idle one makes that one normal too, with its own predecessors: the
    /// report says `promoted`. Declare the successor idle as well where both can wait.
    pub fn idle(mut self) -> Task<T> {
        self.queue = Queue::Idle;
        self
    }

    /// Skips the task where the condition is false. Called again, all conditions must hold.
    pub fn when(mut self, condition: bool) -> Task<T> {
        self.condition &= condition;
        self
    }

    /// Starts only after the other task has completed; skipped where that ends otherwise.
    ///
    /// While it waits it holds no slot. A more urgent task draws the other one into its queue: an idle predecessor of a normal
    /// task becomes normal, and the report says `promoted` of it. The handle must be of the same governor. The other task has to exist
    /// first, so a cycle of order cannot be written.
    pub fn after(mut self, predecessor: &impl Predecessor) -> Task<T> {
        self.after.push((predecessor.governed().0, false));
        self
    }

    /// Starts only after the other task has ended, however it ended. Otherwise as [`after`](Task::after).
    pub fn after_settled(mut self, predecessor: &impl Predecessor) -> Task<T> {
        self.after.push((predecessor.governed().0, true));
        self
    }

    /// Asks the condition in the task's own tick, when it is about to start, and skips it where the answer is
    /// no. After a monkey's delay, not before it. Called again, the condition given last is asked first.
    ///
    /// # Panics
    /// Never; a condition that panics makes the task's outcome
    /// [`Outcome::Panicked`](crate::Outcome::Panicked).
    pub fn when_at_start(mut self, condition: impl FnOnce() -> bool + Send + 'static) -> Task<T> {
        self.body = Box::pin(WhenAtStart::new(condition, self.body));
        self
    }

    /// An idle task's own deadline, counted from its declaration: if it has not started by then, it moves to
    /// the head of the normal queue, with what it comes after. It still waits for a slot and for the pulse.
    ///
    /// For a normal task the declaration is invalid.
    pub fn no_later_than(mut self, limit: Duration) -> Task<T> {
        self.no_later_than = Some(limit);
        self
    }

    /// Keeps the [`Monkey`](crate::Monkey) away from this task: its being late would harm.
    pub fn never_delay(mut self) -> Task<T> {
        self.never_delay = true;
        self
    }

    /// Ends the task this long after its start. More than zero; default: no limit.
    ///
    /// Judged between polls, the future first: one that is ready at its last poll has completed. The future
    /// is dropped and the slot free. A blocking closure goes on: see [`Task::blocking`].
    pub fn timeout(mut self, limit: Duration) -> Task<T> {
        self.timeout = Some(limit);
        self
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("name", &self.name)
            .field("queue", &self.queue)
            .field("condition", &self.condition)
            .field("blocking", &self.given_up.is_some())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
