//! Batches that outlive the process: one SQLite file a process, in a directory of its own under a root that the
//! processes of an application share.
//!
//! A directory belongs to whoever holds its lock. What a dead process left behind is moved into the database of one that
//! lives, row by row, and a row never has two owners: it is committed here before it is deleted there, and while that
//! goes on the lock of both directories is held. A crash between the two leaves a copy in each, which the server
//! recognises by its numbers.

mod error;
mod age;
mod rows;
#[cfg_attr(not(unix), path = "spool/owner/elsewhere.rs")]
mod owner;
mod place;
mod files;
mod sql;
mod db;
mod damage;
mod alive;
mod declare;
mod store;
mod dead_store;
mod adopt;
mod offline;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub(crate) use age::{Stamp, Until};
pub(crate) use db::MAX_INFLATED;
pub use error::SpoolError;
pub(crate) use offline::{Held, Offline};
pub(crate) use place::process_name;
pub(crate) use rows::{
    Adopted, Change, Erased, Evicted, Lost, MAX_ROW, NewDead, NewRow, Numbers, Put, Replayed, Row, RowId,
    Totals, Why,
};
pub(crate) use store::Spool;

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
    dir: PathBuf,
    max_bytes: u64,
    max_dead: u64,
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
