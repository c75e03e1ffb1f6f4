//! The loop: makes attempts, decides, waits on tokio's clock.

mod run;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use self::run::Run;
use crate::attempt::Attempt;
use crate::clock::Clock;
use crate::decision::{Failure, GivenUp, Wait};
use crate::gate::RetryGate;
use crate::random::JitterRng;
use crate::retry::Retry;
use crate::retry_error::RetryError;
use crate::retry_policy::RetryPolicy;

/// Runs an operation until it succeeds or the policy gives up. [`RetryLoop`] has further settings.
///
/// **Only for idempotent work**: a failed attempt may have been carried out, and is then carried out twice.
///
/// `judge` maps each error to a [`Failure`]: whether a retry may help, and what the server asked for.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use afterboot_retry::{Failure, RetryPolicy, retry};
///
/// let answer = retry(
///     &RetryPolicy::default(),
///     |attempt| async move { if attempt.number() < 3 { Err(503) } else { Ok("index") } },
///     |status| Failure::transient_if(*status >= 500),
/// )
/// .await;
/// assert_eq!(answer, Ok("index"));
/// # }
/// ```
///
/// # Errors
///
/// [`RetryError`] carries the reason for giving up and the last error.
///
/// # Cancel safety
///
/// Dropping the future drops the running attempt; no task is left behind. Whether the work is then half done depends on the
/// operation.
pub async fn retry<T, E, Fut>(
    policy: &RetryPolicy,
    operation: impl FnMut(Attempt) -> Fut,
    judge: impl FnMut(&E) -> Failure,
) -> Result<T, RetryError<E>>
where
    Fut: Future<Output = Result<T, E>>,
{
    RetryLoop::new(policy).run(operation, judge).await
}

/// A retry loop on tokio's clock.
#[must_use = "a loop does nothing until `run` is awaited"]
pub struct RetryLoop {
    retry: Retry,
    gate: Option<RetryGate>,
    attempt_timeout: Option<Duration>,
    timeout: Option<Duration>,
    skip: SkipWait,
    independent: bool,
    on_event: Box<dyn FnMut(RetryEvent) + Send>,
}

/// An event of a [`RetryLoop`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RetryEvent {
    /// An attempt started.
    #[non_exhaustive]
    Attempt {
        /// Its number, from 1.
        number: u32,
        /// Whether it is the probe of the gate.
        probe: bool,
    },
    /// The attempt failed and another one follows. With a gate, the wait for the gate replaces this one, unless the server
    /// asked for it.
    Waiting(Wait),
    /// The wait was ended early by [`SkipWait::skip`].
    Skipped,
    /// An attempt succeeded.
    #[non_exhaustive]
    Succeeded {
        /// Its number.
        number: u32,
    },
    /// No further attempt is made.
    GaveUp(GivenUp),
}

/// Ends the wait of a [`RetryLoop`] early, for a result that is needed now. Clones control the same loop.
///
/// If the loop is not waiting, its next wait is skipped. A skip passes the gate for one call. A wait that the server asked
/// for in `Retry-After` is not skipped.
#[derive(Debug, Clone, Default)]
pub struct SkipWait(Arc<Notify>);

impl SkipWait {
    /// Starts the next attempt now.
    pub fn skip(&self) {
        self.0.notify_one();
    }
}

impl RetryLoop {
    /// Creates a loop with this policy. Elapsed time is measured from here, on tokio's clock.
    pub fn new(policy: &RetryPolicy) -> RetryLoop {
        RetryLoop::from_retry(policy.start_with(Clock::tokio(), JitterRng::from_system()))
    }

    /// Creates a loop from a [`Retry`], with its clock, jitter and budget.
    pub fn from_retry(retry: Retry) -> RetryLoop {
        RetryLoop {
            retry,
            gate: None,
            attempt_timeout: None,
            timeout: None,
            skip: SkipWait::default(),
            independent: false,
            on_event: Box::new(|_| {}),
        }
    }

    /// Waits at this gate instead of by the schedule, and reports each attempt to it. A transient failure or a timeout is
    /// reported as down.
    pub fn gate(mut self, gate: RetryGate) -> RetryLoop {
        self.gate = Some(gate);
        self
    }

    /// Sets the time limit of one attempt. An attempt beyond it is dropped and counts as a transient failure. Default: none.
    pub fn attempt_timeout(mut self, time: Duration) -> RetryLoop {
        self.attempt_timeout = Some(time);
        self
    }

    /// Sets the time limit of the whole loop, measured from the start of [`run`](RetryLoop::run). It drops a running attempt,
    /// and no wait begins that would end later. Default: none. (`Limits::max_elapsed` does not drop a running attempt.)
    pub fn timeout(mut self, time: Duration) -> RetryLoop {
        self.timeout = Some(time);
        self
    }

    /// Sets the handle that ends waits early.
    pub fn skip_wait(mut self, skip: SkipWait) -> RetryLoop {
        self.skip = skip;
        self
    }

    /// Retries even inside another retry, for work that the outer retry does not repeat.
    pub fn independent(mut self) -> RetryLoop {
        self.independent = true;
        self
    }

    /// Sets the callback for events. It must not block.
    pub fn on_event(mut self, on_event: impl FnMut(RetryEvent) + Send + 'static) -> RetryLoop {
        self.on_event = Box::new(on_event);
        self
    }

    /// Runs the operation until it succeeds or the policy gives up.
    ///
    /// Inside an attempt of another loop the operation is run once: the outer loop does the retrying, and waits as the
    /// server asked. Otherwise attempts would multiply.
    ///
    /// # Errors
    ///
    /// [`RetryError`] carries the reason for giving up and the last error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running attempt and frees the seat of the gate; no task is left behind.
    pub async fn run<T, E, Fut>(
        self,
        operation: impl FnMut(Attempt) -> Fut,
        judge: impl FnMut(&E) -> Failure,
    ) -> Result<T, RetryError<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        Run::new(self).until_end(operation, judge).await
    }
}

impl fmt::Debug for RetryLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLoop")
            .field("retry", &self.retry)
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}
