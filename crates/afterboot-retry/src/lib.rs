//! Retry schedules that spare the server and the user.
//!
//! **Retry only idempotent work.** A failed call may have been carried out: the response or the connection was lost after the
//! work was done. A retry then repeats it. Give such calls an idempotency key or an offset, make them conditional, or do not
//! retry them. This crate cannot detect the difference.
//!
//! When a server recovers, the clients that waited for it can overload it again. The schedule of each client decides how they
//! return. This crate provides schedules whose effect on a thousand clients was measured, a decision that carries the reason
//! for giving up, and, with the feature `tokio`, the parts that wait: a loop, a gate, a poller.
//!
//! ```
//! use afterboot_retry::{Failure, RetryPolicy};
//!
//! # fn call() -> Result<&'static str, u16> { Ok("index") }
//! # fn sleep(_: std::time::Duration) {}
//! let mut retry = RetryPolicy::default().start(); // elapsed time is measured from here
//! let answer = loop {
//!     let status = match call() {
//!         Ok(answer) => break Ok(answer),
//!         Err(status) => status,
//!     };
//!     match retry.decide(Failure::transient_if(status >= 500)).into_result() {
//!         Ok(wait) => sleep(wait.after),
//!         Err(given_up) => break Err(given_up), // carries the limit that was reached
//!     }
//! };
//! assert_eq!(answer, Ok("index"));
//! ```
//!
//! # What happens to a failed call
//!
//! 1. A [`BackoffPolicy`] determines the delay before the n-th retry: a [`Schedule`], a cap, a [`Jitter`]. The default is
//!    `min(6.8 s, 0.5 s · 1.4ⁿ⁻¹)` times a draw from `[0.3, 1)`.
//! 2. A [`RetryPolicy`] adds [`Limits`]. [`Retry`] counts and decides; [`Decision::GiveUp`] carries the reason. It never
//!    sleeps, its [`Clock`] and its [`JitterRng`] are injected, and it is an `Iterator<Item = Duration>`, which the loops of
//!    other crates take.
//! 3. A `Retry-After` of the server ([`parse_retry_after_dated`]) is waited in full plus up to 3 s, so that clients that
//!    received the same value do not retry together. Beyond a limit the retry gives up at once.
//! 4. A [`RetryBudget`] limits the retries of a process and refills.
#![cfg_attr(
    feature = "tokio",
    doc = "5. [`retry()`] and [`RetryLoop`] wait on tokio's clock. A nested loop makes one attempt ([`is_nested`]).
6. A [`RetryGate`] lets one caller of a process probe a dependency that is down, and releases the others over a ramp.
7. A [`Poller`] fetches repeatedly, with a period after answers and by [`CodeRules`] after failures."
)]
//!
//! Besides: [`StaleDetector`] detects answers that stop changing, and [`ReportThrottle`] limits error reports to one in N
//! days.
//!
//! # Choosing a schedule
//!
//! | Situation | Schedule |
//! | --- | --- |
//! | no specific requirements | the default |
//! | many callers of one dependency in one process | the default behind a `RetryGate` |
//! | the server knows when it will be available | `Retry-After`, which this crate spreads |
//! | one user waits for one stream | [`BackoffPolicy::fibonacci`] |
//! | the fewest retries, with a later return | [`Jitter::Decorrelated`] |
//! | comparison | [`BackoffPolicy::uploader`], [`Jitter::FULL`], [`Jitter::EQUAL`] |
//!
//! The README shows the effect of each on a thousand clients.
//!
//! # Features
//!
//! | Feature | Adds |
//! | --- | --- |
//! | `tokio` | the loop, the gate, the poller, the nesting guard, `Clock::tokio` |
//! | `serde` | `Serialize` and `Deserialize` for policies, limits, rules, decisions and events. Durations are milliseconds |

mod error;
mod clock;
mod random;
#[cfg(feature = "serde")]
mod millis;

// In the order in which a failed call travels.
mod jitter;
mod policy;
mod limits;
mod retry_after;
mod budget;
mod retry_policy;
mod decision;
mod retry;
mod gate_policy;
#[cfg(feature = "tokio")]
mod later;
#[cfg(feature = "tokio")]
mod race;
#[cfg(feature = "tokio")]
mod attempt;
#[cfg(feature = "tokio")]
mod nesting;
#[cfg(feature = "tokio")]
mod gate;
#[cfg(feature = "tokio")]
mod retry_error;
#[cfg(feature = "tokio")]
mod retry_loop;

// Beside the way.
mod classify;
#[cfg(feature = "tokio")]
mod poller;
mod stale;
mod throttle;

pub use budget::{BudgetPolicy, RetryBudget};
pub use classify::{Classifier, CodeAction, CodeGiveUp, CodeRules, CodeRulesBuilder};
pub use clock::Clock;
pub use decision::{Decision, Failure, GivenUp, Wait};
pub use error::PolicyError;
pub use gate_policy::{GatePolicy, GatePolicyBuilder};
pub use jitter::Jitter;
pub use limits::{ElapsedFrom, GiveUpReason, Limits};
pub use policy::{BackoffBuilder, BackoffPolicy, Schedule};
pub use random::JitterRng;
pub use retry::Retry;
pub use retry_after::{parse_retry_after, parse_retry_after_dated, parse_retry_after_now};
pub use retry_policy::RetryPolicy;
pub use stale::{StaleDetector, StaleEvent};
pub use throttle::{
    DayDecision, ReportDecision, ReportStamp, ReportThrottle, ReportThrottleBuilder, Silence, day_number,
};
#[cfg(feature = "tokio")]
pub use {
    attempt::Attempt,
    gate::{GateState, Pass, RetryGate},
    nesting::{is_nested, nested},
    poller::{Fetched, PollEnd, PollEvent, PollHandle, Poller},
    retry_error::{LastAttempt, RetryError},
    retry_loop::{RetryEvent, RetryLoop, SkipWait, retry},
};

/// The examples of the documents, run as tests.
#[cfg(all(doctest, feature = "tokio"))]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../COMPARE.md")]
    struct Compare;
}
