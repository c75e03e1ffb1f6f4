//! The settings of the spool.

use std::path::PathBuf;

use super::SpoolError;
use super::rows::MAX_ROW;

/// What an event survives once its receipt has resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Nothing: the event is in memory.
    Buffered,
    /// The end of the process by any means, `kill -9` included: the operating system has the event. A power cut may lose the last
    /// seconds, and does not damage the rest.
    Process,
    /// A power cut, if the disk honours flushes.
    Power,
}

/// Where batches are kept on disk, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolOptions {
    pub(super) dir: PathBuf,
    pub(super) max_bytes: u64,
    pub(super) max_dead: u64,
}

impl SpoolOptions {
    /// Keeps batches under `dir`, which the processes of an application may share. A missing directory is created with access
    /// for this user only. A directory that others can write to, such as `/tmp`, is refused.
    pub fn new(dir: impl Into<PathBuf>) -> SpoolOptions {
        SpoolOptions { dir: dir.into(), max_bytes: 64 << 20, max_dead: 10_000 }
    }

    /// Limits the bytes of compressed batches, each counted with half a KiB beside its body. Default: 64 MiB. At the limit,
    /// expired batches are evicted first, then basic ones, then vital ones, each oldest first. Dead letters have a quarter of
    /// this in addition.
    ///
    /// The database's log may take four times as much, or 16 MiB if that is more. It grows only while another reader keeps
    /// the database open; beyond its limit the spool fails until that reader is gone.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> SpoolOptions {
        self.max_bytes = bytes;
        self
    }

    /// Limits the number of dead letters. Default: 10,000. Beyond it the oldest are dropped
    /// ([`DropReason::DeadFull`](crate::DropReason::DeadFull)).
    #[must_use]
    pub fn max_dead_letters(mut self, letters: u64) -> SpoolOptions {
        self.max_dead = letters;
        self
    }

    /// Checks the values, without touching the disk.
    pub(crate) fn check(&self) -> Result<(), SpoolError> {
        if self.dir.as_os_str().is_empty() {
            return Err(SpoolError::option("spool dir", &self.dir, "a path"));
        }
        if !(MIN_BYTES..=MAX_BYTES).contains(&self.max_bytes) {
            return Err(SpoolError::option("spool max_bytes", self.max_bytes, "524288 (512 KiB) to 1 TiB"));
        }
        if self.max_dead == 0 {
            return Err(SpoolError::option("spool max_dead_letters", self.max_dead, "1 or more"));
        }
        Ok(())
    }
}

// Room for two of the largest rows.
const MIN_BYTES: u64 = 2 * MAX_ROW as u64;
const MAX_BYTES: u64 = 1 << 40;
