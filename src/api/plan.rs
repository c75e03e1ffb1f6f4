//! Validation of the configuration and of task declarations.

use std::sync::Arc;
use std::time::Duration;

use crate::api::task::Task;
use crate::base::catch::catch_quietly;
use crate::core::table::{After, Spec};
use crate::model::error::ConfigError;
use crate::model::gate_rules::GateRules;
use crate::model::profile::Profile;
use crate::model::queue::Queue;
use crate::shell::context;
use crate::shell::shared::Shared;

/// The longest time a gate may stay shut. There is no "never": an idle task that waits for a quiet moment which
/// does not come must run all the same.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The watchdog looks four times in this time.
const MIN_STUCK_AFTER: Duration = Duration::from_millis(10);

/// Checks all fields of a builder at once.
pub(crate) fn check(
    name: &str,
    profile: &Profile,
    gate: &GateRules,
    stuck_after: Duration,
) -> Result<(), ConfigError> {
    let mut problems = Vec::new();
    problems.extend(profile.check().err());
    let mut field = |holds: bool, problem: String| {
        if !holds {
            problems.push(ConfigError::value(problem));
        }
    };
    field(!name.is_empty(), "name: \"\"; allowed: at least one character".to_owned());
    field(
        !gate.gate_timeout.is_zero() && gate.gate_timeout <= MAX_TIMEOUT,
        format!("gate_timeout: {:?}; allowed: more than 0 and at most {MAX_TIMEOUT:?}", gate.gate_timeout),
    );
    field(
        gate.quiet <= gate.gate_timeout,
        format!("quiet: {:?}; allowed: at most gate_timeout, which is {:?}", gate.quiet, gate.gate_timeout),
    );
    field(
        stuck_after >= MIN_STUCK_AFTER,
        format!("stuck_after: {stuck_after:?}; allowed: at least {MIN_STUCK_AFTER:?}"),
    );
    ConfigError::all(problems)
}

/// What the core needs to know of a declaration. An invalid one is not rejected: its handle resolves to the problem, so
/// that `govern` never fails and never panics.
pub(crate) fn spec<T>(task: &mut Task<T>, shared: &Arc<Shared>) -> Spec {
    let foreign =
        task.after.iter().any(|(predecessor, _)| predecessor.governor() != Arc::as_ptr(shared).addr());
    let invalid = if foreign {
        Some("after: a handle of another governor; allowed: handles that this governor gave")
    } else if task.timeout.is_some_and(|limit| limit.is_zero()) {
        Some("timeout: 0; allowed: more than 0")
    } else if task.no_later_than.is_some() && task.queue == Queue::Normal {
        Some("no_later_than: given for a normal task; allowed: for idle tasks")
    } else if attempt_limit_is_wrong(task) {
        Some(
            "attempt_timeout: 0, or given for a task that is not retried; allowed: more than 0, for retryable tasks",
        )
    } else {
        None
    };
    let after: Vec<After> = task
        .after
        .drain(..)
        .map(|(predecessor, accepts_any_outcome)| {
            let after = After { id: predecessor.id(), outcome: predecessor.outcome(), accepts_any_outcome };
            // It may be the last reference to a value whose destructor panics.
            catch_quietly("the destructor of a value nobody claimed", || drop(predecessor));
            after
        })
        .filter(|_| !foreign)
        .collect();
    Spec {
        name: std::mem::take(&mut task.name),
        queue: task.queue,
        condition: task.condition,
        blocking: task.given_up.is_some(),
        timeout: task.timeout,
        no_later_than: task.no_later_than,
        never_delay: task.never_delay,
        after,
        declared_in: context::task_of(Arc::as_ptr(shared)),
        invalid: invalid.map(Into::into),
    }
}

#[cfg(feature = "retry")]
fn attempt_limit_is_wrong<T>(task: &Task<T>) -> bool {
    task.attempt_limit_is_wrong
}

#[cfg(not(feature = "retry"))]
fn attempt_limit_is_wrong<T>(_: &Task<T>) -> bool {
    false
}
