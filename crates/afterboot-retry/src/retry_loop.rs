//! The loop: tries, asks for the decision, waits on tokio's clock.

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

/// Runs an operation until it succeeds or the policy gives up. [`RetryLoop`] has the rest of the settings.
///
/// **Only for idempotent work**: what fails may have been done all the same, and is then done twice.
///
/// `judge` looks at each error and says whether another try may help, and what the server asked for.
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
/// The reason why no further try is made, and the last error.
///
/// # Cancel safety
///
/// Dropping the future drops the attempt that runs; nothing is left behind. Whether the attempt's own work is half done
/// then is for the operation to say.
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

/// A small retry loop on tokio's clock.
pub struct RetryLoop {
    retry: Retry,
    gate: Option<RetryGate>,
    attempt_timeout: Option<Duration>,
    timeout: Option<Duration>,
    skip: SkipWait,
    independent: bool,
    on_event: Box<dyn FnMut(RetryEvent) + Send>,
}

/// What happens in a loop, as data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RetryEvent {
    /// An attempt begins.
    Attempt {
        /// Its number, from 1.
        number: u32,
        /// Whether it is the gate's probe.
        probe: bool,
    },
    /// It failed and another one will follow. Behind a gate the gate's wait takes the place of this one, except for what
    /// the server asked.
    Waiting(Wait),
    /// The wait was cut short by [`SkipWait::skip`].
    Skipped,
    /// An attempt succeeded.
    Succeeded {
        /// Its number.
        number: u32,
    },
    /// There is no further attempt.
    GaveUp(GivenUp),
}

/// Cuts a loop's wait short: somebody needs the result now. Clones speak to the same loop.
///
/// If the loop is not waiting, its next wait is skipped. A skip passes a gate with one call. What a server asked for in
/// `Retry-After` is waited all the same.
#[derive(Debug, Clone, Default)]
pub struct SkipWait(Arc<Notify>);

impl SkipWait {
    /// The attempt starts now.
    pub fn skip(&self) {
        self.0.notify_one();
    }
}

impl RetryLoop {
    /// A loop under this policy. The time begins here, on tokio's clock.
    pub fn new(policy: &RetryPolicy) -> RetryLoop {
        RetryLoop::from_retry(policy.start_with(Clock::tokio(), JitterRng::from_system()))
    }

    /// A loop that goes by a retry of the caller's, with its clock, jitter and budget.
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

    /// Waits in front of this gate instead of by the schedule, and tells it how attempts went. A transient failure or a
    /// timeout means "down" to it.
    pub fn gate(mut self, gate: RetryGate) -> RetryLoop {
        self.gate = Some(gate);
        self
    }

    /// An attempt that takes longer is dropped and counts as a transient failure. Default: none.
    pub fn attempt_timeout(mut self, time: Duration) -> RetryLoop {
        self.attempt_timeout = Some(time);
        self
    }

    /// When this time is over, counted from the start of [`run`](RetryLoop::run), a running attempt is dropped too, and no
    /// wait begins that would end later. Default: none. (`Limits::max_elapsed` lets an attempt end.)
    pub fn timeout(mut self, time: Duration) -> RetryLoop {
        self.timeout = Some(time);
        self
    }

    /// Lets others cut waits short.
    pub fn skip_wait(mut self, skip: SkipWait) -> RetryLoop {
        self.skip = skip;
        self
    }

    /// Retries even inside another retry. For work that the outer retry does not repeat.
    pub fn independent(mut self) -> RetryLoop {
        self.independent = true;
        self
    }

    /// Sees everything that happens. It must not block.
    pub fn on_event(mut self, on_event: impl FnMut(RetryEvent) + Send + 'static) -> RetryLoop {
        self.on_event = Box::new(on_event);
        self
    }

    /// Runs the operation until it succeeds or the policy gives up.
    ///
    /// Inside an attempt of another loop it is run once: the outer loop does the retrying, and learns what the server
    /// asked for. Otherwise tries would multiply.
    ///
    /// # Errors
    ///
    /// The reason why no further try is made, and the last error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the attempt that runs, and frees the gate's seat; nothing is left behind.
    pub async fn run<T, E, Fut>(
        self,
        operation: impl FnMut(Attempt) -> Fut,
        judge: impl FnMut(&E) -> Failure,
    ) -> Result<T, RetryError<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        Run::new(self).until_the_end(operation, judge).await
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
