//! Tasks that are retried. Feature `retry`.

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use afterboot_retry::RetryPolicy;

use crate::api::task::Task;
use crate::shell::output::TaskOutput;
use crate::shell::retryable::Retrying;

impl<T: Send + Sync + 'static> Task<T> {
    /// Creates a task that is retried by this policy when it fails. Feature `retry`.
    ///
    /// **Use it for idempotent work only:** a failed attempt may still have taken effect.
    ///
    /// Between two attempts the task occupies neither lane nor slot; then it queues again at its original position. A
    /// [`demand`](crate::TaskHandle::demand) skips the remaining wait. [`timeout`](Task::timeout) bounds all attempts
    /// and waits together, [`attempt_timeout`](Task::attempt_timeout) each attempt. A panic is not retried: it is a
    /// bug, not a failure. When the policy gives up, the task fails with its last error, and the outcome contains the
    /// limit that was reached.
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

    /// Limits the duration of each attempt of a [`retryable`](Task::retryable) task. An attempt that exceeds it counts
    /// as failed, and the policy decides whether another one follows. As with [`timeout`](Task::timeout), a future that
    /// is ready at its last poll wins. For other tasks, and for zero, the declaration is invalid.
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
