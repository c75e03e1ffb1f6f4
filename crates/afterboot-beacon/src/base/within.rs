//! A time limit for what goes on outside of the process.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};

/// A timer that is this late means that the process was stopped or the event loop blocked.
const LATE: Duration = Duration::from_millis(100);

/// The time to read what arrived meanwhile.
const GRACE: Duration = Duration::from_millis(500);

/// Like tokio's `timeout`; but where nothing of the process ran when the time was up, what came meanwhile is read first:
/// it takes a few turns of the loop to get from the socket to the future.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let begun = Instant::now();
    if let Ok(output) = timeout(limit, future.as_mut()).await {
        return Some(output);
    }
    if begun.elapsed().saturating_sub(limit) < LATE {
        return None;
    }
    timeout(GRACE, future).await.ok()
}
