//! The monkey: delays one task on purpose, to test whether it must run early.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A deliberate delay of one task, to test whether anything depends on its running early. The victim is selected among
/// the tasks that have not started when [`Governor::report`](crate::Governor::report) is called.
///
/// The delay begins when the victim would have started; it occupies no slot meanwhile. A
/// [`demand`](crate::TaskHandle::demand) ends the delay and is recorded in the report, as evidence that the task is
/// needed early.
///
/// **Use it only where a late task cannot harm data**; exclude others with
/// [`Task::never_delay`](crate::Task::never_delay). The usual delay is 60 s, as in the startup governor of a large web
/// mail client.
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

    /// Delays a task selected at random. The report contains the seed; see [`Builder::seed`](crate::Builder::seed).
    pub fn random(delay: Duration) -> Monkey {
        Monkey { choice: Choice::Random, delay }
    }

    /// Delays the task that is shown under this name: `name`, or `name#2` for the second one declared as `name`. If there is
    /// none, or it has already started, nothing is delayed and the report says so.
    pub fn task(name: impl Into<Cow<'static, str>>, delay: Duration) -> Monkey {
        Monkey { choice: Choice::Task(name.into()), delay }
    }

    /// Delays the task with this position in the order of declaration, counted from 0.
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

/// The result of the monkey's delay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Delivery {
    /// No task was eligible for a random delay: each had started or ended, was demanded, or was declared with
    /// [`Task::never_delay`](crate::Task::never_delay).
    NoneEligible,
    /// The requested task had already started.
    AlreadyStarted,
    /// The requested task was declared with [`Task::never_delay`](crate::Task::never_delay).
    Excluded,
    /// No task of the requested name or number was declared.
    Unknown,
    /// The victim is selected; its delay has not begun.
    Pending,
    /// The delay is in progress.
    Delaying,
    /// The victim was delayed for the whole time.
    Delivered,
    /// The victim was demanded before the delay was over: it is needed early.
    Demanded,
    /// The victim ended before its delay began: it was cancelled, or a predecessor did not complete.
    NotDelivered,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Delivery::NoneEligible => "not delivered: no task was eligible",
            Delivery::AlreadyStarted => "not delivered: already started",
            Delivery::Excluded => "not delivered: declared never_delay",
            Delivery::Unknown => "not delivered: no such task",
            Delivery::Pending => "pending",
            Delivery::Delaying => "still delayed",
            Delivery::Delivered => "delayed in full",
            Delivery::Demanded => "demanded before the delay was over",
            Delivery::NotDelivered => "not delivered: ended before its turn",
        })
    }
}
