//! Batches that no server will take as they are: kept to be looked at, replayed or purged.

use crate::answer::Answerer;
use crate::error::Error;
use crate::wire::{self, Priority, gunzip};

/// A body that is set aside inflates to at most this.
pub(crate) const MAX_INFLATED: usize = 1024 * 1024;

/// A batch that was set aside: refused by the server, or too large for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub(crate) id: i64,
    pub(crate) at: u64,
    pub(crate) reason: String,
    pub(crate) status: Option<u16>,
    pub(crate) user: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) priority: Priority,
    pub(crate) events: u32,
    pub(crate) body: Vec<u8>,
}

impl DeadLetter {
    /// Its name, for replaying and purging it.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// When it was set aside, in milliseconds since the epoch.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Why: `oversize` or `refused`.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The status that judged it, where one did.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Who was there; none is anonymous.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The session, where there was one.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Of all its events.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How many events it holds.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// What it says.
    ///
    /// # Errors
    /// Where its body is damaged.
    pub fn batch(&self) -> Result<wire::Batch, Error> {
        let body = gunzip(&self.body, MAX_INFLATED).map_err(Error::storage)?;
        wire::Batch::parse(&body).map_err(Error::storage)
    }
}

/// Which dead letters.
#[derive(Debug, Clone)]
pub(crate) enum Which {
    All,
    These(Vec<i64>),
}

impl Which {
    pub(crate) fn includes(&self, id: i64) -> bool {
        match self {
            Which::All => true,
            Which::These(ids) => ids.contains(&id),
        }
    }
}

#[derive(Debug)]
pub(crate) enum DeadCommand {
    List { after: i64, limit: usize, answer: Answerer<Result<Vec<DeadLetter>, String>> },
    Replay { which: Which, answer: Answerer<Result<u64, String>> },
    Purge { which: Which, answer: Answerer<Result<u64, String>> },
}
