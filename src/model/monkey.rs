//! The monkey: one task is delayed on purpose, to learn whether it really must be early.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A deliberate delay of one task, picked when [`report()`](crate::Governor::report) is called among the tasks
/// that have not started.
///
/// The victim waits from the moment at which it would have started and holds no slot meanwhile. A
/// [`demand`](crate::TaskHandle::demand) ends the delay; the report says so: it is the strongest sign that the
/// task was needed early.
///
/// **Only for tasks that may be late without harming data.** The usual delay is 60 s, as in the web mail
/// client whose governor has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monkey {
    pub(crate) choice: Choice,
    pub(crate) delay: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Random,
    Task(Cow<'static, str>),
    Index(usize),
}

impl Monkey {
    pub(crate) const DEFAULT_DELAY: Duration = Duration::from_secs(60);

    /// Delays a task drawn at random. The seed stands in the report; see
    /// [`Builder::seed`](crate::Builder::seed).
    pub fn random(delay: Duration) -> Monkey {
        Monkey { choice: Choice::Random, delay }
    }

    /// Delays the task that is shown under this name: `name`, or `name#2` for the second one that was declared so. If there is none, or it has started, nothing is delayed and the
    /// report says so.
    pub fn task(name: impl Into<Cow<'static, str>>, delay: Duration) -> Monkey {
        Monkey { choice: Choice::Task(name.into()), delay }
    }

    /// Delays the task that was declared `index`-th, counted from 0.
    pub fn index(index: usize, delay: Duration) -> Monkey {
        Monkey { choice: Choice::Index(index), delay }
    }
}

impl fmt::Display for Monkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.choice {
            Choice::Random => f.write_str("monkey=random")?,
            Choice::Index(index) => write!(f, "monkey=#{index}")?,
            Choice::Task(name) => {
                f.write_str("monkey=\"")?;
                for c in name.chars() {
                    if matches!(c, '"' | '\\') {
                        f.write_str("\\")?;
                    }
                    write!(f, "{c}")?;
                }
                f.write_str("\"")?;
            }
        }
        write!(f, ",monkey_delay={:?}", self.delay)
    }
}

/// What became of the monkey's delay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Delivery {
    /// A random monkey found nobody: each task had started or ended, was demanded, or was declared `never_delay`.
    NoneEligible,
    /// The task that was asked for had started.
    AlreadyStarted,
    /// The task that was asked for is declared with [`Task::never_delay`](crate::Task::never_delay).
    Excluded,
    /// No task of that name or number was declared.
    Unknown,
    /// The victim is picked; its turn has not come.
    Pending,
    /// The delay has begun and not ended.
    Delaying,
    /// The victim waited the whole delay.
    Delivered,
    /// The victim was demanded before the delay was over: somebody needed it.
    Demanded,
    /// The victim ended before its turn came: it was cancelled, or a predecessor did not complete.
    NotDelivered,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Delivery::NoneEligible => "not delivered: no task was eligible",
            Delivery::AlreadyStarted => "not delivered: had already started",
            Delivery::Excluded => "not delivered: declared never_delay",
            Delivery::Unknown => "not delivered: no such task",
            Delivery::Pending => "its turn has not come",
            Delivery::Delaying => "still delayed",
            Delivery::Delivered => "delayed to the end",
            Delivery::Demanded => "demanded before the delay was over",
            Delivery::NotDelivered => "not delivered: ended before its turn",
        })
    }
}
