//! Retry schedules that spare the server and the user.
//!
//! **Only idempotent work is retried.** A call that failed may have been carried out all the same: the answer was lost,
//! or the connection, after the work was done. A retry then does it twice. Give such calls an idempotency key or an
//! offset, make them conditional, or do not retry them. Nothing in this crate can tell the difference for you.
//!
//! When a server comes back, the clients that waited for it can take it down again. How they come back is decided by
//! the schedule that each of them follows. This crate has schedules whose effect on a thousand clients was measured, a
//! decision that says why it gives up, and, with the feature `tokio`, what waits: a loop, a gate, a poller.
//!
//! ```
//! use afterboot_retry::{Decision, Failure, RetryPolicy};
//!
//! # fn call() -> Result<&'static str, u16> { Ok("index") }
//! # fn sleep(_: std::time::Duration) {}
//! let mut retry = RetryPolicy::default().start(); // the time counts from here
//! let answer = loop {
//!     let status = match call() {
//!         Ok(answer) => break Ok(answer),
//!         Err(status) => status,
//!     };
//!     match retry.decide(Failure::transient_if(status >= 500)) {
//!         Decision::Retry(wait) => sleep(wait.after),
//!         Decision::GiveUp(given_up) => break Err(given_up), // says which limit
//!     }
//! };
//! assert_eq!(answer, Ok("index"));
//! ```
//!
//! # The way of a failed call
//!
//! 1. A [`BackoffPolicy`] says how long the n-th retry waits: a [`Schedule`], a cap, a [`Jitter`]. The default is
//!    `min(6.8 s, 0.5 s · 1.4ⁿ⁻¹)` times a draw from `[0.3, 1)`.
//! 2. A [`RetryPolicy`] adds [`Limits`]. [`Retry`] counts and decides; [`Decision::GiveUp`] carries the reason. It never
//!    sleeps, its [`Clock`] and its [`JitterRng`] are given to it, and it is an `Iterator<Item = Duration>`, which other
//!    crates' loops take.
//! 3. What the server asks for in `Retry-After` ([`parse_retry_after_dated`]) is waited in full plus up to 3 s, so that those
//!    who were told the same do not come back together. Beyond a limit the retry gives up at once.
//! 4. A [`RetryBudget`] is shared by the retries of a process and refills.
#![cfg_attr(
    feature = "tokio",
    doc = "5. [`retry()`] and [`RetryLoop`] wait on tokio's clock. A loop inside another one tries once ([`is_nested`]).
6. A [`RetryGate`] lets one caller of a process probe what is down, and the others back in over a ramp.
7. A [`Poller`] fetches again and again, by a period while answers come and by [`CodeRules`] while they do not."
)]
//!
//! Beside these: [`StaleDetector`] notices answers that no longer move, and [`ReportThrottle`] decides whether an error
//! is reported home, at most once in N days.
//!
//! # Which schedule when
//!
//! | Situation | Take |
//! | --- | --- |
//! | nothing is known | the default |
//! | many callers of one dependency in one process | the default behind a `RetryGate` |
//! | the server can tell when it will be back | `Retry-After`, and clients that spread it (as these do) |
//! | one user waits for one stream | [`BackoffPolicy::fibonacci`] |
//! | the fewest retries, and a late return does not matter | [`Jitter::Decorrelated`] |
//! | comparison | [`BackoffPolicy::uploader`], [`Jitter::FULL`], [`Jitter::EQUAL`] |
//!
//! The README shows how each of them brings a thousand clients back.
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
