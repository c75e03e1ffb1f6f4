use std::path::Path;

use crate::spool::{DeadId, DeadLetter, Held, Offline, ProcessSpool, SpoolError};
use crate::state::clock;

/// The dead letters of all processes under a spool's directory, for tools outside of the application.
///
/// Listing includes the directories of running processes. Changes are possible only for processes that are gone; a running
/// one offers them as methods of its beacon.
#[derive(Debug)]
pub struct DeadLetters(Offline);

/// The result of a replay. The batches are in the spool again, and the next process that adopts them sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replay {
    /// The number of dead letters.
    pub letters: u64,
    /// The number of events in them.
    pub events: u64,
}

impl DeadLetters {
    /// Opens a spool's directory. A missing one is not created.
    ///
    /// # Errors
    /// Fails if the directory cannot be read, or if other users can write to it.
    pub fn open(root: impl AsRef<Path>) -> Result<DeadLetters, SpoolError> {
        Offline::open(root.as_ref()).map(DeadLetters)
    }

    /// Lists up to `limit` dead letters that follow `after`, by process and number. Directories that vanish meanwhile are
    /// left out.
    ///
    /// # Errors
    /// Fails if a process's directory cannot be read.
    pub fn list(&self, after: Option<DeadId>, limit: usize) -> Result<Vec<DeadLetter>, SpoolError> {
        self.0.list(after, limit)
    }

    /// Returns one dead letter.
    ///
    /// # Errors
    /// Fails if there is none with this id, or if its directory cannot be read.
    pub fn get(&self, id: DeadId) -> Result<DeadLetter, SpoolError> {
        let before = DeadId { row: id.row - 1, ..id };
        let found = self.0.list(Some(before), 1)?.pop().filter(|letter| letter.id == id);
        found.ok_or_else(|| SpoolError::no_dead_letter(id))
    }

    /// Puts dead letters back among the batches to be sent, with their original expiry counted from now.
    ///
    /// # Errors
    /// Fails if one does not exist or its process runs. Those in other processes' directories may have been replayed then.
    pub fn replay(&self, ids: &[DeadId]) -> Result<Replay, SpoolError> {
        let now = clock::stamp();
        let (letters, events) = self.0.each_of(ids, |held, rows| held.replay(rows, &now))?;
        Ok(Replay { letters, events })
    }

    /// Deletes dead letters. Returns the number of events in them.
    ///
    /// # Errors
    /// Fails if one does not exist or its process runs. Those in other processes' directories may have been deleted then.
    pub fn purge(&self, ids: &[DeadId]) -> Result<u64, SpoolError> {
        self.0.each_of(ids, Held::purge).map(|(_, events)| events)
    }

    /// Deletes everything of a user, of all applications: batches, dead letters and files that were set aside as unreadable.
    /// Returns the number of events. Their numbers stay recorded, and the application declares them to the server when it
    /// runs again.
    ///
    /// # Errors
    /// Fails if a process that uses the directory runs; its beacon has [`erase_user`](crate::Beacon::erase_user). What belongs to
    /// processes that are gone is erased even then.
    pub fn erase_user(&self, user: &str) -> Result<u64, SpoolError> {
        self.0.erase_user(user, &clock::stamp())
    }

    /// Lists the directories of all processes.
    ///
    /// # Errors
    /// Fails if a directory cannot be read.
    pub fn processes(&self) -> Result<Vec<ProcessSpool>, SpoolError> {
        self.0.processes()
    }
}
