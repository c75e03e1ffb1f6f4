//! A dead letter, its name, and what one process's directory holds.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::{MAX_INFLATED, NewDead, process_name};
use crate::wire::{Batch, BodyError, InflateError, Priority, gunzip};

/// The name of a dead letter: twelve hex digits for the directory of a process, and a number. It changes when another
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

/// Not the name of a dead letter.
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

/// A batch that was given up.
#[derive(Clone)]
pub struct DeadLetter {
    pub(crate) id: DeadId,
    pub(crate) app: String,
    pub(crate) dead: NewDead,
}

impl DeadLetter {
    /// Its name, for a replay or a purge.
    pub fn id(&self) -> DeadId {
        self.id
    }

    /// The application that it is of.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// When it was given up, in milliseconds since the epoch.
    pub fn at(&self) -> u64 {
        self.dead.at
    }

    /// Why, as the server or this side said it.
    pub fn reason(&self) -> &str {
        &self.dead.reason
    }

    /// The HTTP status of the answer, where there was one.
    pub fn status(&self) -> Option<u16> {
        self.dead.status
    }

    /// Who was there when its events were posted.
    pub fn user(&self) -> Option<&str> {
        self.dead.batch.user.as_deref()
    }

    /// The session that its events are of.
    pub fn session(&self) -> Option<&str> {
        self.dead.batch.session.as_deref()
    }

    /// Of all its events.
    pub fn priority(&self) -> Priority {
        self.dead.batch.priority
    }

    /// How many events it holds.
    pub fn events(&self) -> u32 {
        self.dead.batch.events
    }

    /// The batch as it was sent.
    ///
    /// # Errors
    /// Where what was stored is no batch of a version that this crate knows.
    pub fn batch(&self) -> Result<Batch, DeadBatchError> {
        let body = gunzip(&self.dead.batch.body, MAX_INFLATED).map_err(DeadBatchError::Inflate)?;
        Batch::parse(&body).map_err(DeadBatchError::Body)
    }

    /// The body as it was sent: JSON, whatever version it is of.
    ///
    /// # Errors
    /// Where what was stored cannot be inflated.
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
    /// It cannot be inflated.
    Inflate(InflateError),
    /// It is no batch.
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

/// What one process's directory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessSpool {
    /// The directory's name, twelve hex digits: the first part of its dead letters' names.
    pub process: String,
    /// Does its process run? Otherwise another one may take it over.
    pub live: bool,
    /// Batches.
    pub rows: u64,
    /// Events in the batches.
    pub events: u64,
    /// Compressed bytes of the batches.
    pub bytes: u64,
    /// Dead letters.
    pub dead: u64,
    /// When the oldest batch's last event was posted, in milliseconds since the epoch.
    pub oldest: Option<u64>,
}
