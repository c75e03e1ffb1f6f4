use std::path::Path;

use crate::spool::{DeadId, DeadLetter, Held, Offline, ProcessSpool, SpoolError};
use crate::state::clock;

/// The dead letters of all processes under a spool's root, for a tool that is not the application.
///
/// Listing also reads the directories of processes that run. What changes something works only where the process is
/// gone; for one that runs, ask its beacon.
#[derive(Debug)]
pub struct DeadLetters(Offline);

/// What a replay did. The batches lie in the spool again, and the next process to adopt them sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replay {
    /// How many dead letters.
    pub letters: u64,
    /// How many events in them.
    pub events: u64,
}

impl DeadLetters {
    /// Looks under a spool's root. Nothing is made where it does not exist.
    ///
    /// # Errors
    /// Where the root cannot be read, or others could reach into it.
    pub fn open(root: impl AsRef<Path>) -> Result<DeadLetters, SpoolError> {
        Offline::open(root.as_ref()).map(DeadLetters)
    }

    /// At most `limit` dead letters after this one, by process and number. Directories that vanish meanwhile are left
    /// out.
    ///
    /// # Errors
    /// Where a directory cannot be read.
    pub fn list(&self, after: Option<DeadId>, limit: usize) -> Result<Vec<DeadLetter>, SpoolError> {
        self.0.list(after, limit)
    }

    /// One dead letter.
    ///
    /// # Errors
    /// Where it is not there, or its directory cannot be read.
    pub fn get(&self, id: DeadId) -> Result<DeadLetter, SpoolError> {
        let before = DeadId { row: id.row - 1, ..id };
        let found = self.0.list(Some(before), 1)?.pop().filter(|letter| letter.id == id);
        found.ok_or_else(|| SpoolError::no_dead_letter(id))
    }

    /// Makes batches of them again, with a new life as long as the first one.
    ///
    /// # Errors
    /// Where one is not there, or its process runs. Those of other processes' directories may have been replayed then.
    pub fn replay(&self, ids: &[DeadId]) -> Result<Replay, SpoolError> {
        let now = clock::stamp();
        let (letters, events) = self.0.each_of(ids, |held, rows| held.replay(rows, &now))?;
        Ok(Replay { letters, events })
    }

    /// Throws them away. Answers how many events were in them.
    ///
    /// # Errors
    /// Where one is not there, or its process runs. Those of other processes' directories may be gone then.
    pub fn purge(&self, ids: &[DeadId]) -> Result<u64, SpoolError> {
        self.0.each_of(ids, Held::purge).map(|(_, events)| events)
    }

    /// Deletes everything of a user, of all applications: batches, dead letters and what was set aside as unreadable.
    /// Answers how many events that were. That they are gone is left there in their place, to be declared to the server by
    /// the application when it runs again.
    ///
    /// # Errors
    /// Where a process that uses the root runs: its beacon erases its own, and whatever lies beside it. What belongs to
    /// processes that are gone is erased all the same.
    pub fn erase_user(&self, user: &str) -> Result<u64, SpoolError> {
        self.0.erase_user(user, &clock::stamp())
    }

    /// What each process's directory holds.
    ///
    /// # Errors
    /// Where a directory cannot be read.
    pub fn processes(&self) -> Result<Vec<ProcessSpool>, SpoolError> {
        self.0.processes()
    }
}
