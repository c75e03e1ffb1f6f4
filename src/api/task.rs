//! The declaration of a task.

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

/// The declaration of a named unit of startup work. It does nothing until it is passed to
/// [`Governor::govern`](crate::Governor::govern).
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
    /// Creates a task that returns `()` or a `Result`.
    ///
    /// Neither the closure nor its future runs before the task is started. The name is free text. A second task of the same
    /// name is called `name#2` wherever a task is named: in the report, errors, events, the log and for
    /// [`Monkey::task`](crate::Monkey::task). If a task was declared as `name#2` itself, the next free number is used. No
    /// number is used twice while a task of the name is known.
    ///
    /// # Panics
    /// Never. A panic of the closure, of a poll or of a destructor is caught. The task's outcome is then
    /// [`Outcome::Panicked`](crate::Outcome::Panicked), unless a timeout or a cancellation came first. With
    /// `panic = "abort"` no panic can be caught.
    pub fn new<F, R>(name: impl Into<Cow<'static, str>>, run: F) -> Task<T>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: TaskOutput<Value = T>,
    {
        Task::from_body(name.into(), Box::pin(Attempt::new(run)))
    }

    /// Creates a task that returns any value and cannot fail.
    pub fn value<F, R>(name: impl Into<Cow<'static, str>>, run: F) -> Task<T>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Future<Output = T> + Send + 'static,
    {
        let run = move || async move { Ok::<T, std::convert::Infallible>(run().await) };
        Task::from_body(name.into(), Box::pin(Attempt::new(run)))
    }

    /// Creates a task from a blocking closure. It runs on tokio's blocking pool and occupies a slot until it returns.
    ///
    /// The closure cannot be stopped from outside. When its timeout or a shutdown's deadline passes, its handle
    /// resolves, but its slot stays occupied until it returns; a closure that is still queued in the pool then never
    /// runs. Dropping the runtime waits for the closure, unless the runtime is shut down with `shutdown_timeout` or
    /// `shutdown_background`.
    ///
    /// If the system refuses to create a thread, the closure waits until one is available, and the report records it.
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

    /// Puts the task into the idle queue: it starts once the application is quiet. Default: the normal queue.
    ///
    /// An idle task that a normal task is declared [`after`](Task::after) is promoted to the normal queue, with its own
    /// predecessors; the report marks it as `promoted`. Declare the successor idle as well if both can wait.
    pub fn idle(mut self) -> Task<T> {
        self.queue = Queue::Idle;
        self
    }

    /// Skips the task if the condition is false. After several calls, all conditions must be true.
    pub fn when(mut self, condition: bool) -> Task<T> {
        self.condition &= condition;
        self
    }

    /// Starts the task only after the other one has completed. If that one ends in any other way, this task is skipped.
    ///
    /// A waiting task occupies no slot. An idle predecessor of a normal task is promoted to the normal queue; the
    /// report marks it as `promoted`. The handle must come from the same governor. Because the other task must already
    /// be declared, ordering cycles cannot be expressed.
    pub fn after(mut self, predecessor: &impl Predecessor) -> Task<T> {
        self.after.push((predecessor.governed().0, false));
        self
    }

    /// Starts the task only after the other one has ended, with whatever outcome. Otherwise as [`after`](Task::after).
    pub fn after_settled(mut self, predecessor: &impl Predecessor) -> Task<T> {
        self.after.push((predecessor.governed().0, true));
        self
    }

    /// Evaluates the condition when the task is about to start, in the task's own tick and after any monkey's delay,
    /// and skips the task if it is false. After several calls, the condition given last is evaluated first.
    ///
    /// # Panics
    /// Never. If the condition panics, the task's outcome is [`Outcome::Panicked`](crate::Outcome::Panicked).
    pub fn when_at_start(mut self, condition: impl FnOnce() -> bool + Send + 'static) -> Task<T> {
        self.body = Box::pin(WhenAtStart::new(condition, self.body));
        self
    }

    /// Sets a deadline for the start of an idle task, counted from its declaration. If it has not started by then, it
    /// moves to the head of the normal queue, with its predecessors. It still waits for a slot and for the pulse.
    ///
    /// On a normal task this makes the declaration invalid.
    pub fn no_later_than(mut self, limit: Duration) -> Task<T> {
        self.no_later_than = Some(limit);
        self
    }

    /// Excludes this task from the [`Monkey`](crate::Monkey), because a delay would do harm.
    pub fn never_delay(mut self) -> Task<T> {
        self.never_delay = true;
        self
    }

    /// Ends the task this long after its start. Must be more than zero. Default: no limit.
    ///
    /// The limit is checked between polls: a future that is ready at its last poll has completed. Otherwise the future
    /// is dropped and the slot is freed. A blocking closure continues to run; see [`Task::blocking`].
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
