//! The poller: fetches repeatedly, by the period after answers and by the rules after failures.

mod control;

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::classify::{Classifier, CodeAction, CodeGiveUp, CodeRules};
use crate::later::later;
use crate::race::{Either, race};

pub use control::PollHandle;
use control::{Control, Wanted};

/// Polls until an answer is final, the rules end it, or the handle is closed.
///
/// The next fetch starts a `period` after an answer, or after the wait of [`CodeRules`] after a failure, both measured from
/// the end of the fetch. An answer resets the attempts to 0; a fetch that was cancelled does not change them.
///
/// [`run`](Poller::run) consumes the poller, so there is exactly one loop, however often the [`PollHandle`] stops and starts
/// it while a fetch is in flight.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use afterboot_retry::{CodeRules, Fetched, PollEnd, Poller};
///
/// let (poller, _handle) = Poller::new(CodeRules::default(), Duration::from_secs(2));
/// let mut answers = vec![Fetched::Final("done"), Fetched::Failed(503), Fetched::Answer("half")];
/// let end = poller.run(|| std::future::ready(answers.pop().unwrap()), |event| println!("{event:?}")).await;
/// assert_eq!(end, PollEnd::Final);
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a poller does nothing until `run` is awaited"]
pub struct Poller {
    classifier: Classifier,
    control: Control,
}

/// The result of one fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fetched<T> {
    /// An answer; polling continues.
    Answer(T),
    /// The last answer; polling ends.
    Final(T),
    /// A failure with this code; 0 if there was no response.
    Failed(u16),
    /// The fetch was cancelled by the client.
    Cancelled,
}

/// An event of a [`Poller`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum PollEvent<T> {
    /// A fetch started.
    Fetching,
    /// An answer was received.
    #[non_exhaustive]
    Answered {
        /// The answer.
        value: T,
        /// The number of consecutive failures before it.
        after_attempts: u32,
    },
    /// The fetch failed and will be repeated.
    #[non_exhaustive]
    Failed {
        /// The code.
        code: u16,
        /// The number of consecutive failures, this one included.
        attempt: u32,
        /// Time until the next fetch.
        #[cfg_attr(feature = "serde", serde(rename = "after_ms", with = "crate::millis"))]
        after: Duration,
    },
    /// The fetch in flight was dropped, or returned [`Fetched::Cancelled`].
    Cancelled,
}

/// Why a poller ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum PollEnd {
    /// A fetch returned [`Fetched::Final`].
    Final,
    /// A code ended the poll.
    Ended {
        /// The code.
        code: u16,
    },
    /// The rules gave up.
    GaveUp {
        /// The code of the last failure.
        code: u16,
        /// The reason.
        reason: CodeGiveUp,
        /// The number of consecutive failures that were retried before.
        attempts: u32,
    },
    /// [`PollHandle::close`] was called.
    Closed,
}

/// The moment of the next fetch.
enum Due {
    Now,
    /// A period after an answer; the period may change until then.
    PeriodAfter(Instant),
    /// As the rules decided.
    At(Instant),
}

impl Poller {
    /// Creates a poller and its handle. A period below 1 ms is raised to 1 ms.
    pub fn new(rules: CodeRules, period: Duration) -> (Poller, PollHandle) {
        let (control, handle) = control::pair(period);
        (Poller { classifier: Classifier::new(rules), control }, handle)
    }

    /// Polls until the end. The first fetch starts at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the fetch in flight and ends the polling; no task is left behind.
    pub async fn run<T, Fut>(
        mut self,
        mut fetch: impl FnMut() -> Fut,
        mut on_event: impl FnMut(PollEvent<T>),
    ) -> PollEnd
    where
        Fut: Future<Output = Fetched<T>>,
    {
        let mut due = Due::Now;
        loop {
            if !self.until_due(due).await {
                return PollEnd::Closed;
            }
            on_event(PollEvent::Fetching);
            let fetched = self.fetch(fetch()).await;
            let now = Instant::now();
            due = match fetched {
                // Dropped by a command, which decides what comes next.
                None => {
                    on_event(PollEvent::Cancelled);
                    Due::Now
                }
                Some(Fetched::Cancelled) => {
                    on_event(PollEvent::Cancelled);
                    Due::PeriodAfter(now)
                }
                Some(Fetched::Answer(value)) => {
                    on_event(self.answered(value));
                    Due::PeriodAfter(now)
                }
                Some(Fetched::Final(value)) => {
                    on_event(self.answered(value));
                    return PollEnd::Final;
                }
                Some(Fetched::Failed(code)) => match self.failed(code) {
                    Ok(after) => {
                        on_event(PollEvent::Failed { code, attempt: self.classifier.attempt(), after });
                        Due::At(later(now, after))
                    }
                    Err(end) => return end,
                },
            };
        }
    }

    /// Waits until a fetch is due and wanted. False when the poller is closed.
    async fn until_due(&mut self, mut due: Due) -> bool {
        loop {
            let orders = self.control.take();
            if orders.reset {
                self.classifier.on_success();
            }
            if orders.fetch_now {
                due = Due::Now;
            }
            match orders.wanted {
                Wanted::Closed => return false,
                Wanted::Stopped | Wanted::Paused => {
                    self.control.changed().await;
                    continue;
                }
                Wanted::Running => {}
            }
            let at = match due {
                Due::Now => return true,
                Due::PeriodAfter(answer) => later(answer, orders.period),
                Due::At(at) => at,
            };
            if timeout_at(at, self.control.changed()).await.is_err() {
                return true;
            }
        }
    }

    /// `None` when the fetch was dropped because of a command.
    async fn fetch<T>(&mut self, fetch: impl Future<Output = Fetched<T>>) -> Option<Fetched<T>> {
        let mut fetch = pin!(fetch);
        loop {
            if self.control.drops_fetch() {
                return None;
            }
            if let Either::First(fetched) = race(fetch.as_mut(), self.control.changed()).await {
                return Some(fetched);
            }
        }
    }

    fn answered<T>(&mut self, value: T) -> PollEvent<T> {
        let after_attempts = self.classifier.attempt();
        self.classifier.on_success();
        PollEvent::Answered { value, after_attempts }
    }

    fn failed(&mut self, code: u16) -> Result<Duration, PollEnd> {
        match self.classifier.on_failure(code) {
            CodeAction::Retry { after } => Ok(after),
            CodeAction::End => Err(PollEnd::Ended { code }),
            CodeAction::GiveUp(reason) => {
                Err(PollEnd::GaveUp { code, reason, attempts: self.classifier.attempt() })
            }
        }
    }
}
