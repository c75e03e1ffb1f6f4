//! Dead letters, their ids, and the content of a process's directory.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::{MAX_INFLATED, NewDead, process_name};
use crate::wire::{Batch, BodyError, InflateError, Priority, gunzip};

/// The id of a dead letter: twelve hex digits for the directory of a process, a dash and a number. It changes when another
/// process takes the directory over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeadId {
    pub(crate) process: u64,
    pub(crate) row: i64,
}

impl DeadId {
    pub(crate) fn process_of(dir: &Path) -> u64 {
        let name = process_name(dir).unwrap_or_default();
        u64::from_str_radix(name, 16).unwrap_or_default()
    }

    pub(crate) fn process_name(&self) -> String {
        format!("{:012x}", self.process)
    }
}

impl fmt::Display for DeadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.process_name(), self.row)
    }
}

/// A text that is not a [`DeadId`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadIdError(String);

impl fmt::Display for DeadIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ID is {:?}: 12 lower-case hex digits, a dash and a number are allowed", self.0)
    }
}

impl std::error::Error for DeadIdError {}

impl FromStr for DeadId {
    type Err = DeadIdError;

    fn from_str(text: &str) -> Result<DeadId, DeadIdError> {
        let read = || {
            let (process, row) = text.split_once('-')?;
            let id = DeadId { process: u64::from_str_radix(process, 16).ok()?, row: row.parse().ok()? };
            // The one way to write it, so that no two texts name the same letter.
            (id.to_string() == text && id.row > 0).then_some(id)
        };
        read().ok_or_else(|| DeadIdError(text.chars().take(40).collect()))
    }
}

/// A batch that the server will never accept.
#[derive(Clone)]
pub struct DeadLetter {
    pub(crate) id: DeadId,
    pub(crate) app: String,
    pub(crate) dead: NewDead,
}

impl DeadLetter {
    /// Returns its id, for a replay or a purge.
    pub fn id(&self) -> DeadId {
        self.id
    }

    /// Returns the application that posted its events.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// Returns when it became a dead letter, in milliseconds since the epoch.
    pub fn at(&self) -> u64 {
        self.dead.at
    }

    /// Returns the cause: `oversize` or `refused`.
    pub fn reason(&self) -> &str {
        &self.dead.reason
    }

    /// Returns the HTTP status of the response, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.dead.status
    }

    /// Returns the user of its events.
    pub fn user(&self) -> Option<&str> {
        self.dead.batch.user.as_deref()
    }

    /// Returns the session of its events.
    pub fn session(&self) -> Option<&str> {
        self.dead.batch.session.as_deref()
    }

    /// Returns the priority of its events.
    pub fn priority(&self) -> Priority {
        self.dead.batch.priority
    }

    /// Returns the number of its events.
    pub fn events(&self) -> u32 {
        self.dead.batch.events
    }

    /// Returns the batch as it was sent.
    ///
    /// # Errors
    /// Fails if the stored body is not a batch of a version that this crate knows.
    pub fn batch(&self) -> Result<Batch, DeadBatchError> {
        let body = gunzip(&self.dead.batch.body, MAX_INFLATED).map_err(DeadBatchError::Inflate)?;
        Batch::parse(&body).map_err(DeadBatchError::Body)
    }

    /// Returns the body as it was sent: JSON of any version.
    ///
    /// # Errors
    /// Fails if the stored body cannot be inflated.
    pub fn body(&self) -> Result<Vec<u8>, InflateError> {
        gunzip(&self.dead.batch.body, MAX_INFLATED)
    }
}

// The events themselves are not for logs.
impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("id", &self.id)
            .field("at", &self.dead.at)
            .field("reason", &self.dead.reason)
            .field("status", &self.dead.status)
            .field("events", &self.dead.batch.events)
            .finish_non_exhaustive()
    }
}

/// Why a dead letter's batch cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeadBatchError {
    /// The stored body cannot be inflated.
    Inflate(InflateError),
    /// The inflated body is not a batch.
    Body(BodyError),
}

impl fmt::Display for DeadBatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeadBatchError::Inflate(error) => error.fmt(f),
            DeadBatchError::Body(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DeadBatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DeadBatchError::Inflate(error) => error.source(),
            DeadBatchError::Body(error) => error.source(),
        }
    }
}

/// The content of one process's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessSpool {
    /// The directory's name, twelve hex digits: the first part of its dead letters' ids.
    pub process: String,
    /// Whether its process runs. Otherwise another process may take it over.
    pub live: bool,
    /// The number of batches.
    pub rows: u64,
    /// The number of events in the batches.
    pub events: u64,
    /// The compressed size of the batches.
    pub bytes: u64,
    /// The number of dead letters.
    pub dead: u64,
    /// When the last event of the oldest batch was posted, in milliseconds since the epoch.
    pub oldest: Option<u64>,
}
