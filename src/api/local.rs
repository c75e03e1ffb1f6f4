//! Tasks that are not `Send`, for event loops with `Rc` state.
//!
//! The core knows ids only, and the lane polls whatever it is given. So a local task is an ordinary one whose body is
//! a key: the future itself stays in an arena of the thread that declared it, and is polled from there.

mod arena;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::RuntimeFlavor;
use tokio::task::LocalSet;

use self::arena::{Keep, Proxy};
use crate::api::builder::Builder;
use crate::api::governor::Governor;
use crate::api::handle::TaskHandle;
use crate::api::task::Task;
use crate::model::error::{ConfigError, TaskError};
use crate::shell::attempt::Attempt;
use crate::shell::governed::Predecessor;
use crate::shell::governed::sealed;
use crate::shell::output::TaskOutput;

/// Runs startup tasks that are not `Send`, on one thread: on a current_thread runtime, with or without a `LocalSet`, or
/// on a `LocalRuntime`.
///
/// Only [`govern`](LocalGovernor::govern) differs; everything else is on the [`Governor`] that
/// [`as_send`](LocalGovernor::as_send) returns. Other threads may declare `Send` tasks through a clone of that one, and both
/// kinds share its limits. A lane whose poll is stuck is not replaced: on one thread no other lane could run.
///
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
/// use afterboot::{Governor, LocalTask};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let governor = Governor::builder().build_local()?;
/// let frames = Rc::new(Cell::new(0));
/// let counted = Rc::clone(&frames);
/// let title = governor.govern(LocalTask::value("title", move || async move {
///     counted.set(counted.get() + 1);
///     Rc::new("hello".to_owned())
/// }));
/// assert_eq!(title.await?.as_str(), "hello");
/// assert_eq!(frames.get(), 1);
/// println!("{}", governor.as_send().report().finished().await);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LocalGovernor {
    governor: Governor,
    set: Option<Rc<LocalSet>>,
    /// Bound to its thread, like the tasks.
    bound: PhantomData<Rc<()>>,
}

impl Builder {
    /// Returns a governor for tasks that are not `Send`. Call it on the thread that drives the runtime.
    ///
    /// # Errors
    /// As [`build`](Builder::build). Also if the runtime is not a current_thread or local one: another worker could not
    /// poll the tasks.
    pub fn build_local(self) -> Result<LocalGovernor, ConfigError> {
        let governor = self.build()?;
        let flavor = governor.runtime().runtime_flavor();
        if flavor != RuntimeFlavor::CurrentThread {
            let problem =
                format!("runtime: {flavor:?}; allowed for a local governor: a current_thread or local one");
            return Err(ConfigError::value(problem));
        }
        Ok(LocalGovernor { governor, set: None, bound: PhantomData })
    }
}

impl LocalGovernor {
    /// Lets governed tasks call `tokio::task::spawn_local` into this set, which the application drives itself. On a
    /// `LocalRuntime` they may do so without it.
    pub fn with_local_set(mut self, set: Rc<LocalSet>) -> LocalGovernor {
        self.set = Some(set);
        self
    }

    /// Declares a local task; see [`Governor::govern`]. `Send` tasks are declared with `governor.as_send().govern(..)`.
    pub fn govern<T: 'static>(&self, task: LocalTask<T>) -> LocalTaskHandle<T> {
        let LocalTask { task, key, value } = task;
        if let Some(set) = &self.set {
            arena::polls_in(key, Rc::clone(set));
        }
        LocalTaskHandle { handle: self.governor.govern(task), value }
    }

    /// Returns the governor that both kinds of tasks share: for its report, its gate, its shutdown, and for tasks that are
    /// `Send`. Clones of it may go to other threads.
    pub fn as_send(&self) -> &Governor {
        &self.governor
    }
}

/// A task that is not `Send`. See [`Task`] for the meaning of its options.
#[must_use = "a task does nothing until it is governed"]
pub struct LocalTask<T> {
    task: Task<()>,
    key: u64,
    value: Rc<OnceCell<T>>,
}

impl<T: 'static> LocalTask<T> {
    /// Creates a task that returns `()` or a `Result`, as [`Task::new`].
    pub fn new<F, R>(name: impl Into<Cow<'static, str>>, run: F) -> LocalTask<T>
    where
        F: FnOnce() -> R + 'static,
        R: Future + 'static,
        R::Output: TaskOutput<Value = T>,
    {
        let value = Rc::new(OnceCell::new());
        let body = Keep { attempt: Box::pin(Attempt::new(run)), value: Rc::clone(&value) };
        let proxy = Proxy::keep(Box::pin(body));
        let key = proxy.key();
        LocalTask { task: Task::from_body(name.into(), Box::pin(proxy)), key, value }
    }

    /// Creates a task that returns any value and cannot fail, as [`Task::value`].
    pub fn value<F, R>(name: impl Into<Cow<'static, str>>, run: F) -> LocalTask<T>
    where
        F: FnOnce() -> R + 'static,
        R: Future<Output = T> + 'static,
    {
        LocalTask::new(name, move || async move { Ok::<T, std::convert::Infallible>(run().await) })
    }

    fn with(mut self, option: impl FnOnce(Task<()>) -> Task<()>) -> LocalTask<T> {
        self.task = option(self.task);
        self
    }

    /// As [`Task::idle`].
    pub fn idle(self) -> LocalTask<T> {
        self.with(Task::idle)
    }

    /// As [`Task::when`].
    pub fn when(self, condition: bool) -> LocalTask<T> {
        self.with(|task| task.when(condition))
    }

    /// As [`Task::when_at_start`]; the condition need not be `Send` either.
    pub fn when_at_start(self, condition: impl FnOnce() -> bool + 'static) -> LocalTask<T> {
        arena::asks_first(self.key, condition);
        self
    }

    /// As [`Task::after`].
    pub fn after(self, predecessor: &impl Predecessor) -> LocalTask<T> {
        self.with(|task| task.after(predecessor))
    }

    /// As [`Task::after_settled`].
    pub fn after_settled(self, predecessor: &impl Predecessor) -> LocalTask<T> {
        self.with(|task| task.after_settled(predecessor))
    }

    /// As [`Task::timeout`].
    pub fn timeout(self, limit: Duration) -> LocalTask<T> {
        self.with(|task| task.timeout(limit))
    }

    /// As [`Task::no_later_than`].
    pub fn no_later_than(self, limit: Duration) -> LocalTask<T> {
        self.with(|task| task.no_later_than(limit))
    }

    /// As [`Task::never_delay`].
    pub fn never_delay(self) -> LocalTask<T> {
        self.with(Task::never_delay)
    }
}

/// A handle to a governed local task; see [`TaskHandle`]. It is not `Send`, like the value.
pub struct LocalTaskHandle<T> {
    handle: TaskHandle<()>,
    value: Rc<OnceCell<T>>,
}

/// A shared reference to a local task's value; dereferences to it.
pub struct LocalTaskRef<T> {
    value: Rc<OnceCell<T>>,
}

impl<T: 'static> LocalTaskHandle<T> {
    fn reference(&self) -> LocalTaskRef<T> {
        LocalTaskRef { value: Rc::clone(&self.value) }
    }

    /// As [`TaskHandle::wait`].
    ///
    /// # Errors
    /// As [`TaskHandle::wait`].
    ///
    /// # Cancel safety
    /// Safe: nothing is lost and nothing stops when the future is dropped.
    pub async fn wait(&self) -> Result<LocalTaskRef<T>, TaskError> {
        self.handle.wait().await?;
        Ok(self.reference())
    }

    /// As [`TaskHandle::try_get`].
    pub fn try_get(&self) -> Option<Result<LocalTaskRef<T>, TaskError>> {
        Some(self.handle.try_get()?.map(|_| self.reference()))
    }

    /// As [`TaskHandle::is_finished`].
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// As [`TaskHandle::demand`]: the demand takes effect with the call.
    ///
    /// # Errors
    /// As [`TaskHandle::wait`].
    ///
    /// # Cancel safety
    /// Safe: dropping the future does not withdraw the demand or stop the task.
    pub fn demand(&self) -> impl Future<Output = Result<LocalTaskRef<T>, TaskError>> + 'static + use<T> {
        let demanded = self.handle.demand();
        let reference = self.reference();
        async move { demanded.await.map(|_| reference) }
    }

    /// As [`TaskHandle::cancel`].
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// Returns a `Send` handle to the same task: it resolves when the task ends, without its value.
    pub fn as_send(&self) -> &TaskHandle<()> {
        &self.handle
    }
}

impl<T: 'static> sealed::Sealed for LocalTaskHandle<T> {
    fn governed(&self) -> sealed::Link {
        sealed::Sealed::governed(&self.handle)
    }
}

impl<T: 'static> Predecessor for LocalTaskHandle<T> {}

impl<T: 'static> IntoFuture for LocalTaskHandle<T> {
    type Output = Result<LocalTaskRef<T>, TaskError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.wait().await })
    }
}

impl<T> Deref for LocalTaskRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.get().expect("a completed task has left its value here")
    }
}

impl<T> Clone for LocalTaskHandle<T> {
    fn clone(&self) -> LocalTaskHandle<T> {
        LocalTaskHandle { handle: self.handle.clone(), value: Rc::clone(&self.value) }
    }
}

impl<T> Clone for LocalTaskRef<T> {
    fn clone(&self) -> LocalTaskRef<T> {
        LocalTaskRef { value: Rc::clone(&self.value) }
    }
}

impl<T> fmt::Debug for LocalTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalTask").field(&self.task).finish()
    }
}

impl<T> fmt::Debug for LocalTaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalTaskHandle").field(&self.handle).finish()
    }
}

impl<T: fmt::Debug + 'static> fmt::Debug for LocalTaskRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
