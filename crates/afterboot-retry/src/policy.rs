//! The delay before the n-th retry: a schedule, a cap and a jitter, validated once.

use std::time::Duration;

use crate::error::PolicyError;
use crate::jitter::Jitter;
use crate::random::JitterRng;

/// How the delay before the n-th consecutive retry grows, before cap and jitter. n counts from 1.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Schedule {
    /// `initial + base · multiplierⁿ⁻¹`.
    Exponential {
        /// The constant part.
        #[cfg_attr(feature = "serde", serde(rename = "initial_ms", with = "crate::millis", default))]
        initial: Duration,
        /// The growing part.
        #[cfg_attr(feature = "serde", serde(rename = "base_ms", with = "crate::millis"))]
        base: Duration,
        /// The growth factor. Finite, 1 or more.
        multiplier: f64,
    },
    /// The n-th entry. Past the end the schedule is exhausted, and the retry gives up.
    #[cfg_attr(feature = "serde", serde(rename = "table_ms", with = "crate::millis::list"))]
    Table(Vec<Duration>),
    /// The same delay for every retry.
    #[cfg_attr(feature = "serde", serde(rename = "constant_ms", with = "crate::millis"))]
    Constant(Duration),
}

impl Default for Schedule {
    /// `0.5 s · 1.4ⁿ⁻¹`: see [`BackoffPolicy`].
    fn default() -> Schedule {
        Schedule::Exponential { initial: Duration::ZERO, base: Duration::from_millis(500), multiplier: 1.4 }
    }
}

/// The table of a live video player: 0 1 1 2 3 5 8 13 21 34 s. Ten retries span 88 s; an eleventh failure gives up.
pub(crate) const FIBONACCI: [Duration; 10] = {
    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
    [s(0), s(1), s(1), s(2), s(3), s(5), s(8), s(13), s(21), s(34)]
};

/// The delay before each retry: `min(schedule(n), max_delay)`, then jitter.
///
/// The default is `min(6.8 s, 0.5 s · 1.4ⁿ⁻¹)` times a draw from `[0.3, 1)`. It was found by a search over
/// multipliers, caps and windows in a simulation of a thousand clients that lose their server together (the example
/// `herd`): after outages of 6 s to 300 s no other setting had both fewer retries than full jitter and a peak that is not
/// higher.
///
/// ```
/// use std::time::Duration;
/// use afterboot_retry::{BackoffPolicy, Jitter, JitterRng, Schedule};
///
/// let policy = BackoffPolicy::builder()
///     .schedule(Schedule::Exponential {
///         initial: Duration::from_millis(400),
///         base: Duration::from_millis(100),
///         multiplier: 1.5,
///     })
///     .max_delay(Duration::from_secs(8))
///     .jitter(Jitter::EQUAL)
///     .build()?;
/// let delay = policy.delay(1, None, &mut JitterRng::from_system()).expect("only tables end");
/// assert!(delay >= Duration::from_millis(250) && delay <= Duration::from_millis(500));
///
/// let error = policy.to_builder().max_delay(Duration::from_millis(1)).build().unwrap_err();
/// assert_eq!(error.to_string(), "max_delay: 1ms; allowed: from the initial delay, 400ms, up");
/// # Ok::<(), afterboot_retry::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "BackoffBuilder", into = "BackoffBuilder"))]
pub struct BackoffPolicy {
    schedule: Schedule,
    max_delay: Duration,
    jitter: Jitter,
}

impl Default for BackoffPolicy {
    fn default() -> BackoffPolicy {
        BackoffPolicy {
            schedule: Schedule::default(),
            max_delay: Duration::from_millis(6800),
            jitter: Jitter::default(),
        }
    }
}

impl BackoffPolicy {
    /// Returns a builder that starts from the default.
    pub fn builder() -> BackoffBuilder {
        BackoffBuilder::default()
    }

    /// `400 ms + 100 ms · 1.5ⁿ⁻¹` up to 8 s, ± 50 ms: the schedule of Facebook's video uploader, for comparison.
    ///
    /// Its jitter does not grow with its delays: short waits for the user, high peaks for the server.
    pub fn uploader() -> BackoffPolicy {
        BackoffPolicy {
            schedule: Schedule::Exponential {
                initial: Duration::from_millis(400),
                base: Duration::from_millis(100),
                multiplier: 1.5,
            },
            max_delay: Duration::from_secs(8),
            jitter: Jitter::Fixed { width: Duration::from_millis(100) },
        }
    }

    /// 0 1 1 2 3 5 8 13 21 34 s without jitter, then exhausted: the table of Facebook's live player, for the stream of one
    /// user. If many clients fail together, add jitter.
    pub fn fibonacci() -> BackoffPolicy {
        BackoffPolicy {
            schedule: Schedule::Table(FIBONACCI.to_vec()),
            max_delay: FIBONACCI[FIBONACCI.len() - 1],
            jitter: Jitter::NONE,
        }
    }

    /// The default's schedule under another `Scale`, which needs no check.
    pub(crate) fn with_jitter(self, jitter: Jitter) -> BackoffPolicy {
        BackoffPolicy { jitter, ..self }
    }

    /// Returns a builder with the values of this policy.
    pub fn to_builder(&self) -> BackoffBuilder {
        BackoffBuilder {
            schedule: self.schedule.clone(),
            max_delay: Some(self.max_delay),
            jitter: self.jitter,
        }
    }

    /// Returns the schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the cap. No delay is longer (with [`Jitter::Fixed`]: by more than half its width).
    pub fn max_delay(&self) -> Duration {
        self.max_delay
    }

    /// Returns the jitter.
    pub fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// Returns the delay before the n-th consecutive retry without jitter. n counts from 1; 0 is treated as 1. `None` past
    /// the end of a table.
    pub fn plain_delay(&self, n: u32) -> Option<Duration> {
        let exponent = n.max(1) - 1;
        let delay = match &self.schedule {
            Schedule::Exponential { base, initial, .. } if base.is_zero() => *initial,
            Schedule::Exponential { initial, base, multiplier } => {
                let seconds =
                    initial.as_secs_f64() + base.as_secs_f64() * multiplier.powf(f64::from(exponent));
                // The power overflows to infinity: what no Duration can hold is the cap.
                Duration::try_from_secs_f64(seconds).unwrap_or(self.max_delay)
            }
            Schedule::Table(table) => *table.get(usize::try_from(exponent).ok()?)?,
            Schedule::Constant(delay) => *delay,
        };
        Some(delay.min(self.max_delay))
    }

    /// Returns the delay before the n-th consecutive retry. `previous` is the previous delay, which
    /// [`Jitter::Decorrelated`] uses. `None` past the end of a table.
    pub fn delay(&self, n: u32, previous: Option<Duration>, rng: &mut JitterRng) -> Option<Duration> {
        let plain = self.plain_delay(n)?;
        let first = self.plain_delay(1)?;
        Some(self.jitter.spread(plain, first, previous, self.max_delay, rng))
    }
}

/// Builds a [`BackoffPolicy`]. Setters store; [`build`](BackoffBuilder::build) validates.
#[must_use = "a builder does nothing until `build` is called"]
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct BackoffBuilder {
    schedule: Schedule,
    #[cfg_attr(feature = "serde", serde(rename = "max_delay_ms", with = "crate::millis::option"))]
    max_delay: Option<Duration>,
    jitter: Jitter,
}

impl BackoffBuilder {
    /// Sets the schedule. Default: `0.5 s · 1.4ⁿ⁻¹`.
    pub fn schedule(mut self, schedule: Schedule) -> BackoffBuilder {
        self.schedule = schedule;
        self
    }

    /// Sets the cap. Default: 6.8 s for an exponential schedule, or its `initial` if that is more; the longest entry of a
    /// table; the constant.
    pub fn max_delay(mut self, max_delay: Duration) -> BackoffBuilder {
        self.max_delay = Some(max_delay);
        self
    }

    /// Sets the jitter. Default: `Scale { lo: 0.3, hi: 1.0 }`.
    pub fn jitter(mut self, jitter: Jitter) -> BackoffBuilder {
        self.jitter = jitter;
        self
    }

    /// Validates all fields.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] lists every invalid field: a multiplier that is not finite or below 1; delays that are always zero;
    /// an empty table; a `max_delay` below the initial delay, the constant or the longest entry; a jitter outside its bounds.
    pub fn build(self) -> Result<BackoffPolicy, PolicyError> {
        let mut problems = Vec::new();
        let least = self.schedule.check(&mut problems);
        let max_delay = self.max_delay.unwrap_or_else(|| match self.schedule {
            Schedule::Exponential { .. } => BackoffPolicy::default().max_delay.max(least),
            Schedule::Table(_) | Schedule::Constant(_) => least,
        });
        if max_delay < least {
            let what = match self.schedule {
                Schedule::Exponential { .. } => "initial delay",
                Schedule::Table(_) => "longest entry of the table",
                Schedule::Constant(_) => "constant delay",
            };
            problems.push(format!("max_delay: {max_delay:?}; allowed: from the {what}, {least:?}, up"));
        } else if max_delay.is_zero() && matches!(self.schedule, Schedule::Exponential { .. }) {
            problems.push("max_delay: 0ns; allowed: above 0".to_owned());
        }
        let policy = BackoffPolicy { schedule: self.schedule, max_delay, jitter: self.jitter };
        self.jitter.check(policy.plain_delay(1), max_delay, &mut problems);
        PolicyError::unless_empty(problems).map(|()| policy)
    }
}

impl Schedule {
    /// Returns the smallest valid cap.
    fn check(&self, problems: &mut Vec<String>) -> Duration {
        match self {
            Schedule::Exponential { initial, base, multiplier } => {
                if !multiplier.is_finite() || *multiplier < 1.0 {
                    problems
                        .push(format!("schedule.multiplier: {multiplier}; allowed: finite and 1 or more"));
                }
                if initial.is_zero() && base.is_zero() {
                    problems.push(
                        "schedule.base: 0ns beside an initial of 0ns; allowed: one of them above 0"
                            .to_owned(),
                    );
                }
                *initial
            }
            Schedule::Table(table) => {
                if table.is_empty() {
                    problems.push("schedule.table: empty; allowed: at least one delay".to_owned());
                }
                table.iter().copied().max().unwrap_or_default()
            }
            Schedule::Constant(delay) => {
                if delay.is_zero() {
                    problems.push("schedule.constant: 0ns; allowed: above 0".to_owned());
                }
                *delay
            }
        }
    }
}

impl TryFrom<BackoffBuilder> for BackoffPolicy {
    type Error = PolicyError;

    fn try_from(builder: BackoffBuilder) -> Result<BackoffPolicy, PolicyError> {
        builder.build()
    }
}

impl From<BackoffPolicy> for BackoffBuilder {
    fn from(policy: BackoffPolicy) -> BackoffBuilder {
        policy.to_builder()
    }
}
