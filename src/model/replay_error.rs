//! The error type of a replay.

use std::error::Error;
use std::fmt;

use crate::model::error::ConfigError;

/// Why a report cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayError(Unplayable);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unplayable {
    Profile(ConfigError),
    Version(u32),
    NoSegments,
    Unended(usize),
}

impl ReplayError {
    pub(crate) fn new(why: Unplayable) -> ReplayError {
        ReplayError(why)
    }

    /// Returns whether the profile has an invalid value; [`Error::source`] then returns the [`ConfigError`].
    pub fn is_profile(&self) -> bool {
        matches!(self.0, Unplayable::Profile(_))
    }

    /// Returns whether the report has a format version that this library does not support.
    pub fn is_version(&self) -> bool {
        matches!(self.0, Unplayable::Version(_))
    }

    /// Returns whether the report lacks the segments that say when its tasks were polled.
    pub fn is_no_segments(&self) -> bool {
        self.0 == Unplayable::NoSegments
    }

    /// Returns whether the report was taken before all of its tasks had ended.
    pub fn is_unended(&self) -> bool {
        matches!(self.0, Unplayable::Unended(_))
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Unplayable::Profile(error) => write!(f, "invalid profile: {error}"),
            Unplayable::Version(version) => {
                write!(f, "unsupported report version {version}; supported: 1")
            }
            Unplayable::NoSegments => {
                f.write_str("the report has no segments; build the governor with `record_segments()`")
            }
            Unplayable::Unended(tasks) => {
                write!(
                    f,
                    "{tasks} tasks had not ended when the report was taken; take it with `finished().await`"
                )
            }
        }
    }
}

impl Error for ReplayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Unplayable::Profile(error) => Some(error),
            _ => None,
        }
    }
}
