//! Tasks that are tried again. Feature `retry`.

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use afterboot_retry::RetryPolicy;

use crate::api::task::Task;
use crate::shell::output::TaskOutput;
use crate::shell::retryable::Retrying;

impl<T: Send + Sync + 'static> Task<T> {
    /// A task that is tried again when it fails, as the policy says.
    ///
    /// **Only idempotent work is retried:** an attempt that failed may have been carried out all the same.
    ///
    /// Between two attempts the task holds neither lane nor slot; then it takes its turn again, at its place in its
    /// queue. A [`demand`](crate::TaskHandle::demand) skips the wait. [`timeout`](Task::timeout) bounds all attempts
    /// and waits together, [`attempt_timeout`](Task::attempt_timeout) each attempt. A panic is not retried: it is a bug,
    /// not a failure. When the policy gives up, the task has failed with its last error, and the outcome says which
    /// limit it was.
    pub fn retryable<F, R>(
        name: impl Into<Cow<'static, str>>,
        run: F,
        policy: impl Into<RetryPolicy>,
    ) -> Task<T>
    where
        F: FnMut() -> R + Send + 'static,
        R: Future + Send + 'static,
        R::Output: TaskOutput<Value = T> + Send,
    {
        let limit: Arc<OnceLock<Duration>> = Arc::default();
        let body = Retrying::new(run, policy.into(), Arc::clone(&limit));
        let mut task = Task::from_body(name.into(), Box::pin(body));
        task.attempt_limit = Some(limit);
        task
    }

    /// Ends an attempt of a [`retryable`](Task::retryable) task this long after it began; that is a failure like any
    /// other, and the policy decides whether another attempt follows. The future goes first, as with
    /// [`timeout`](Task::timeout). For other tasks, and for zero, the declaration is invalid.
    pub fn attempt_timeout(mut self, limit: Duration) -> Task<T> {
        match &self.attempt_limit {
            Some(known) if !limit.is_zero() => {
                // Called twice, the first word holds: there is no reason to.
                known.get_or_init(|| limit);
            }
            _ => self.attempt_limit_is_wrong = true,
        }
        self
    }
}
