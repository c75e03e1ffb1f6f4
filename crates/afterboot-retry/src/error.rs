//! The error of every builder: all invalid fields at once.

use std::error::Error;
use std::fmt;

/// An invalid policy, rule or throttle. Lists every invalid field with its value and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    problems: Vec<String>,
}

impl PolicyError {
    /// `Ok(())` where nothing was found.
    pub(crate) fn unless_empty(problems: Vec<String>) -> Result<(), PolicyError> {
        if problems.is_empty() { Ok(()) } else { Err(PolicyError { problems }) }
    }

    /// Returns one line for each invalid field, in the form `field: value; allowed: ...`.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl Error for PolicyError {}
