//! A retry inside a retry multiplies: three layers of four tries are 64 requests. Here the inner ones try once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

tokio::task_local! {
    static OUTERMOST: Arc<Scope>;
}

/// What the outermost retry learns from those inside it.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    asked: Mutex<Option<Duration>>,
}

impl Scope {
    /// Remembers the longest wait that a server asked an inner retry for.
    pub(crate) fn asked(&self, asked: Duration) {
        let mut longest = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = (*longest).max(Some(asked));
    }

    pub(crate) fn take_asked(&self) -> Option<Duration> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether this code runs inside an attempt of a [`RetryLoop`](crate::RetryLoop), so that somebody further out retries.
///
/// It is seen as far as the task goes: work given to `tokio::spawn` is on its own.
pub fn is_nested() -> bool {
    outer().is_some()
}

pub(crate) fn outer() -> Option<Arc<Scope>> {
    OUTERMOST.try_with(Arc::clone).ok()
}

pub(crate) async fn inside<F: Future>(scope: Arc<Scope>, attempt: F) -> F::Output {
    OUTERMOST.scope(scope, attempt).await
}

/// Runs one attempt of a retry that somebody else drives, so that the loops inside it try once. Gives, beside the
/// output, the longest wait that a server asked one of them for: the outer retry should wait it.
///
/// [`RetryLoop`](crate::RetryLoop) does this by itself; this is for those who decide with a [`Retry`](crate::Retry) and
/// wait in their own way.
///
/// # Cancel safety
/// As safe as the attempt is.
pub async fn nested<F: Future>(attempt: F) -> (F::Output, Option<Duration>) {
    let scope = Arc::new(Scope::default());
    let output = inside(Arc::clone(&scope), attempt).await;
    (output, scope.take_asked())
}
