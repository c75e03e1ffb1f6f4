//! Where the spool lies, how much it may hold, and what a durable event survives.

use std::path::PathBuf;

use super::SpoolError;
use super::rows::MAX_ROW;

/// What an event must survive before a post of it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Nothing: it is in memory, and a crash loses it.
    Buffered,
    /// The death of the process, `kill -9` included: it is with the operating system. A power cut may lose the last
    /// seconds of it, but not damage the rest.
    Process,
    /// A power cut, as far as the disk is honest about what it has written.
    Power,
}

/// Where batches are kept on disk, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolOptions {
    pub(super) dir: PathBuf,
    pub(super) max_bytes: u64,
    pub(super) max_dead: u64,
}

impl SpoolOptions {
    /// Keeps them under `dir`, which all processes of the application may share. It is made where it is missing, for
    /// this user alone. One that others can write to, such as `/tmp`, is refused.
    pub fn new(dir: impl Into<PathBuf>) -> SpoolOptions {
        SpoolOptions { dir: dir.into(), max_bytes: 64 << 20, max_dead: 10_000 }
    }

    /// How many bytes of compressed batches there are at most, with half a KiB for each batch beside its body: 64 MiB
    /// unless told. When room is short, what has expired goes first, then basic batches, then vital ones, the oldest
    /// first. Dead letters have a quarter of this for themselves.
    ///
    /// The database's log may have four times as much beside it, or 16 MiB where that is more. It grows only while
    /// somebody else reads the database and does not end; past its bound the spool is in trouble and says why, until
    /// that reader is gone.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> SpoolOptions {
        self.max_bytes = bytes;
        self
    }

    /// How many dead letters there are at most: 10,000 unless told. The oldest go first, and are counted as dropped
    /// ([`DropReason::DeadFull`](crate::DropReason::DeadFull)).
    #[must_use]
    pub fn max_dead_letters(mut self, letters: u64) -> SpoolOptions {
        self.max_dead = letters;
        self
    }

    /// What can be said about the values without touching the disk.
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
