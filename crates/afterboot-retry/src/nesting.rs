//! Nested retries multiply: three layers of four attempts are 64 requests. Here inner loops make one attempt.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

tokio::task_local! {
    static OUTERMOST: Arc<Scope>;
}

/// What inner retries report to the outermost one.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    asked: Mutex<Option<Duration>>,
}

impl Scope {
    /// Records the longest wait that a server asked an inner retry for.
    pub(crate) fn asked(&self, asked: Duration) {
        let mut longest = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = (*longest).max(Some(asked));
    }

    pub(crate) fn take_asked(&self) -> Option<Duration> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns whether this code runs inside an attempt of a [`RetryLoop`](crate::RetryLoop), which then does the retrying.
///
/// The scope is the tokio task: work that is given to `tokio::spawn` is not nested.
pub fn is_nested() -> bool {
    outer().is_some()
}

pub(crate) fn outer() -> Option<Arc<Scope>> {
    OUTERMOST.try_with(Arc::clone).ok()
}

pub(crate) async fn inside<F: Future>(scope: Arc<Scope>, attempt: F) -> F::Output {
    OUTERMOST.scope(scope, attempt).await
}

/// Runs one attempt of an outer retry, so that loops inside it make one attempt. Returns the output and the longest wait
/// that a server asked one of them for; the outer retry should pass it to [`Failure::retry_after`](crate::Failure).
///
/// [`RetryLoop`](crate::RetryLoop) does this by itself. Use it with a [`Retry`](crate::Retry) and a wait of your own.
///
/// # Cancel safety
/// As cancel safe as `attempt`.
pub async fn nested<F: Future>(attempt: F) -> (F::Output, Option<Duration>) {
    let scope = Arc::new(Scope::default());
    let output = inside(Arc::clone(&scope), attempt).await;
    (output, scope.take_asked())
}
