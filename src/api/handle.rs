//! What `govern` gives back: wait for the task, demand it, cancel it.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use crate::model::error::TaskError;
use crate::shell::cell::Cell;
use crate::shell::governed::Governed;
use crate::shell::governed::{Predecessor, sealed};

/// A governed task, as those see it who want its value. Cheap to clone; dropping it changes nothing.
///
/// `handle.await` is `handle.wait().await`.
pub struct TaskHandle<T> {
    cell: Arc<Cell<T>>,
}

/// A task's value, shared. `'static` and cheap to clone; the value is dropped with the last handle or
/// reference.
pub struct TaskRef<T> {
    cell: Arc<Cell<T>>,
}

impl<T: Send + Sync + 'static> TaskHandle<T> {
    pub(crate) fn new(cell: Arc<Cell<T>>) -> TaskHandle<T> {
        TaskHandle { cell }
    }

    /// Waits until the task has ended, without hurrying it. Inside a governed task of the same governor the
    /// waiting task lends its slot meanwhile, so tasks that wait for each other's slot do not hang.
    ///
    /// # Errors
    /// [`TaskError`] where the task gave no value: it failed, panicked, timed out, was skipped, cancelled,
    /// abandoned or declared wrongly; and where the wait would close a cycle of tasks that wait for each other,
    /// with the path.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost and nothing stops when the future is dropped.
    pub async fn wait(&self) -> Result<TaskRef<T>, TaskError> {
        self.cell.settled().await?;
        self.try_get().expect("a settled task has its result")
    }

    /// The result where the task has ended, `None` where it has not.
    pub fn try_get(&self) -> Option<Result<TaskRef<T>, TaskError>> {
        Some(match self.cell.result()? {
            Ok(_) => Ok(TaskRef { cell: Arc::clone(&self.cell) }),
            Err(error) => Err(error.clone()),
        })
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.cell.result().is_some()
    }

    /// Says that somebody needs the task now, and waits for it. The demand counts from the call, whether or
    /// not the future is ever polled.
    ///
    /// A task that has not started starts next, past gate, pulse, slots and the monkey's delay, after the
    /// tasks it depends on, which are demanded too: its predecessors, and from then on each task whose handle it waits
    /// for. Until they have ended they are polled before all others, which are left a sixteenth of the time. A running task
    /// is hurried in the same way. Any number of callers make one run.
    ///
    /// # Errors
    /// As [`wait`](TaskHandle::wait).
    ///
    /// # Cancel safety
    /// Safe: a caller that gives up changes nothing, the task goes on for the others.
    pub fn demand(&self) -> impl Future<Output = Result<TaskRef<T>, TaskError>> + Send + 'static + use<T> {
        if !self.is_finished()
            && let Some(shared) = self.cell.shared()
        {
            shared.apply(|core, now, actions| core.demand(self.cell.id(), now, actions));
        }
        let handle = self.clone();
        async move { handle.wait().await }
    }

    /// Ends the task. Unstarted, it never runs. Running, its future is dropped by the lane in a tick of its
    /// own; a blocking closure goes on and the outcome is [`Outcome::Abandoned`](crate::Outcome::Abandoned).
    /// Ended, nothing happens.
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
