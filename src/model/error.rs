//! The error types: of a task without a value, of a configuration.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::model::name::Name;
use crate::model::outcome::Outcome;

/// Any error a task may return.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Why a task has no value: its name, its [`Outcome`] and, if it failed, the error it returned.
///
/// Cheap to clone. [`Error::source`] returns the task's own error, if there is one.
#[derive(Clone)]
pub struct TaskError(Arc<Inner>);

struct Inner {
    task: Cow<'static, str>,
    why: Why,
    source: Option<BoxError>,
}

#[derive(Debug)]
enum Why {
    Ended(Outcome),
    /// The names of the tasks that wait for each other, the first again at the end.
    Cycle(Vec<String>),
}

impl TaskError {
    pub(crate) fn new(task: Name, outcome: Outcome, source: Option<BoxError>) -> TaskError {
        let task = task.into_text();
        TaskError(Arc::new(Inner { task, why: Why::Ended(outcome), source }))
    }

    /// `path` begins and ends with the task that was about to wait.
    pub(crate) fn cycle(path: Vec<String>) -> TaskError {
        let task = path.get(1).or(path.first()).cloned().unwrap_or_default();
        TaskError(Arc::new(Inner { task: task.into(), why: Why::Cycle(path), source: None }))
    }

    /// Returns the name of the task that was waited for, as shown in the report.
    pub fn task(&self) -> &str {
        &self.0.task
    }

    /// Returns the task's outcome, or `None` if it has not ended because the wait was rejected; see
    /// [`is_cycle`](TaskError::is_cycle).
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.0.why {
            Why::Ended(outcome) => Some(outcome),
            Why::Cycle(_) => None,
        }
    }

    /// Returns whether the wait was rejected because it would have closed a cycle of tasks that wait for each other, or
    /// of a task with itself.
    pub fn is_cycle(&self) -> bool {
        !self.cycle_path().is_empty()
    }

    /// Returns the names along the cycle, beginning and ending with the task that tried to wait. Empty if there is no
    /// cycle.
    pub fn cycle_path(&self) -> &[String] {
        match &self.0.why {
            Why::Cycle(path) => path,
            Why::Ended(_) => &[],
        }
    }

    /// Returns whether the task returned `Err`.
    pub fn is_failed(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Failed(_)))
    }

    /// Returns whether the task panicked.
    pub fn is_panicked(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Panicked(_)))
    }

    /// Returns whether the task's `timeout` passed.
    pub fn is_timed_out(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::TimedOut { .. }))
    }

    /// Returns whether the task was skipped: its condition was false, or a predecessor did not complete.
    pub fn is_skipped(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Skipped(_)))
    }

    /// Returns whether the task was cancelled: through its handle, by a shutdown, or by the loss of the runtime.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Cancelled(_)))
    }

    /// Returns whether the task was abandoned while its code was still running.
    pub fn is_abandoned(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Abandoned))
    }

    /// Returns whether the task's declaration was invalid.
    pub fn is_invalid(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Invalid(_)))
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskError")
            .field("task", &self.0.task)
            .field("why", &self.0.why)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.why {
            Why::Ended(outcome) => write!(f, "task {:?} {outcome}", self.0.task),
            Why::Cycle(path) => {
                write!(f, "waiting for task {:?} would deadlock: ", self.0.task)?;
                let path: Vec<String> = path.iter().map(|name| format!("{name:?}")).collect();
                f.write_str(&path.join(" waits for "))
            }
        }
    }
}

impl Error for TaskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|e| e as &(dyn Error + 'static))
    }
}

/// An invalid configuration: lists every invalid field with its value and the allowed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    kind: Kind,
    problems: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Value,
    NoRuntime,
}

impl ConfigError {
    pub(crate) fn value(problem: String) -> ConfigError {
        ConfigError { kind: Kind::Value, problems: vec![problem] }
    }

    pub(crate) fn no_runtime() -> ConfigError {
        let problem = "runtime: none found; call build() inside a tokio runtime, or set `.runtime(handle)`";
        ConfigError { kind: Kind::NoRuntime, problems: vec![problem.to_owned()] }
    }

    /// Says where the bad fields came from.
    pub(crate) fn within(mut self, origin: &str) -> ConfigError {
        for problem in &mut self.problems {
            *problem = format!("{origin}: {problem}");
        }
        self
    }

    /// Joins what several checks found.
    pub(crate) fn all(found: impl IntoIterator<Item = ConfigError>) -> Result<(), ConfigError> {
        found
            .into_iter()
            .reduce(|mut all, next| {
                all.problems.extend(next.problems);
                if next.kind == Kind::NoRuntime {
                    all.kind = Kind::NoRuntime;
                }
                all
            })
            .map_or(Ok(()), Err)
    }

    /// Returns whether the errors are invalid field values only.
    pub fn is_value(&self) -> bool {
        self.kind == Kind::Value
    }

    /// Returns whether no tokio runtime was found.
    pub fn is_no_runtime(&self) -> bool {
        self.kind == Kind::NoRuntime
    }

    /// Returns one line per invalid field, in the form `field: value; allowed: values`.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl Error for ConfigError {}
