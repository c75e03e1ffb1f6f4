//! The handle of a governed task: wait for it, demand it, cancel it.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use crate::model::error::TaskError;
use crate::shell::cell::Cell;
use crate::shell::governed::Governed;
use crate::shell::governed::{Predecessor, sealed};

/// A handle to a governed task. Cheap to clone; dropping it does not affect the task.
///
/// `handle.await` is `handle.wait().await`.
pub struct TaskHandle<T> {
    cell: Arc<Cell<T>>,
}

/// A shared reference to a task's value; dereferences to it. `'static` and cheap to clone. The value is dropped with
/// the last handle or reference.
pub struct TaskRef<T> {
    cell: Arc<Cell<T>>,
}

impl<T: Send + Sync + 'static> TaskHandle<T> {
    pub(crate) fn new(cell: Arc<Cell<T>>) -> TaskHandle<T> {
        TaskHandle { cell }
    }

    /// Waits until the task has ended, without changing its priority. A governed task of the same governor lends its
    /// slot while it waits, so a full set of waiting tasks cannot deadlock.
    ///
    /// # Errors
    /// Returns a [`TaskError`] if the task has no value: it failed, panicked, timed out, was skipped, cancelled or
    /// abandoned, or its declaration was invalid. Also if the wait would close a cycle of tasks that wait for each
    /// other; the error contains the path.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost and nothing stops when the future is dropped.
    pub async fn wait(&self) -> Result<TaskRef<T>, TaskError> {
        self.cell.settled().await?;
        self.try_get().expect("a settled task has its result")
    }

    /// Returns the task's result, or `None` if it has not ended.
    pub fn try_get(&self) -> Option<Result<TaskRef<T>, TaskError>> {
        Some(match self.cell.result()? {
            Ok(_) => Ok(TaskRef { cell: Arc::clone(&self.cell) }),
            Err(error) => Err(error.clone()),
        })
    }

    /// Returns whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.cell.result().is_some()
    }

    /// Demands the task: starts it next, and waits for its result. The demand takes effect with the call, whether or
    /// not the returned future is polled.
    ///
    /// A task that has not started bypasses the gate, the pulse, the slot limit and the monkey's delay. The tasks it
    /// depends on are demanded too: its predecessors, and every task whose handle it waits for from then on. Until they
    /// have ended, demanded tasks are polled before all others, which keep one sixteenth of the time. A running task is
    /// prioritised in the same way. However many callers demand a task, it runs once.
    ///
    /// # Errors
    /// As [`wait`](TaskHandle::wait).
    ///
    /// # Cancel safety
    /// Safe: dropping the future does not withdraw the demand or stop the task.
    pub fn demand(&self) -> impl Future<Output = Result<TaskRef<T>, TaskError>> + Send + 'static + use<T> {
        if !self.is_finished()
            && let Some(shared) = self.cell.shared()
        {
            shared.apply(|core, now, actions| core.demand(self.cell.id(), now, actions));
        }
        let handle = self.clone();
        async move { handle.wait().await }
    }

    /// Cancels the task. A task that has not started never runs. The future of a running task is dropped by the lane in
    /// a tick of its own; a blocking closure continues to run, and its outcome is
    /// [`Outcome::Abandoned`](crate::Outcome::Abandoned). Has no effect on a task that has ended.
    pub fn cancel(&self) {
        if !self.is_finished()
            && let Some(shared) = self.cell.shared()
        {
            shared.apply(|core, now, actions| core.cancel(self.cell.id(), now, actions));
        }
    }
}

impl<T: Send + Sync + 'static> sealed::Sealed for TaskHandle<T> {
    fn governed(&self) -> sealed::Link {
        sealed::Link(Arc::clone(&self.cell) as Arc<dyn Governed>)
    }
}

impl<T: Send + Sync + 'static> Predecessor for TaskHandle<T> {}

impl<T> Clone for TaskHandle<T> {
    fn clone(&self) -> TaskHandle<T> {
        TaskHandle { cell: Arc::clone(&self.cell) }
    }
}

impl<T: Send + Sync + 'static> IntoFuture for TaskHandle<T> {
    type Output = Result<TaskRef<T>, TaskError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.wait().await })
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskHandle").field(&self.cell).finish()
    }
}

impl<T: Send + Sync + 'static> Deref for TaskRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self.cell.result() {
            Some(Ok(value)) => value,
            _ => unreachable!("a reference is made from a value that is there, and a result never changes"),
        }
    }
}

impl<T> Clone for TaskRef<T> {
    fn clone(&self) -> TaskRef<T> {
        TaskRef { cell: Arc::clone(&self.cell) }
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for TaskRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display + Send + Sync + 'static> fmt::Display for TaskRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
