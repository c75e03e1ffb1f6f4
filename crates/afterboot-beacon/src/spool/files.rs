//! The files of a database, and whether their names still lead to them.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::file_id::{FileId, file_id};
use super::place::{DB, FILES, Home, NEW, SHM, WAL, sync_dir};

/// The files of an open database, by what their names lead to. A log or an index that is another one is not the one that
/// is written to, and a later process reads those that have the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) db: Option<FileId>,
    pub(super) log: Option<FileId>,
    pub(super) index: Option<FileId>,
    pub(super) log_bytes: u64,
}

impl Files {
    /// Returns whether it is the same database, whatever the length of its log.
    pub(super) fn are(&self, others: &Files) -> bool {
        (self.db, self.log, self.index) == (others.db, others.log, others.index)
    }

    pub(super) fn are_all_there(&self) -> bool {
        self.db.is_some() && self.log.is_some() && self.index.is_some()
    }
}

impl Home {
    /// Which files the names of the database lead to.
    pub(super) fn named_files(&self) -> Files {
        let look = |name| fs::symlink_metadata(self.dir().join(name)).ok();
        let log = look(WAL);
        Files {
            db: look(DB).filter(|meta| meta.len() > 0).map(|meta| file_id(&meta)),
            log: log.as_ref().map(file_id),
            index: look(SHM).map(|meta| file_id(&meta)),
            log_bytes: log.map_or(0, |meta| meta.len()),
        }
    }

    /// Where a database is written before it has its name.
    pub(super) fn new_db(&self) -> PathBuf {
        self.dir().join(NEW)
    }

    /// The new database gets the old one's name. None, or not all, of the old one's files may be there.
    pub(super) fn rename_new_db(&self) -> io::Result<()> {
        for file in FILES {
            match fs::remove_file(self.dir().join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(self.new_db(), self.db())?;
        sync_dir(self.dir());
        Ok(())
    }
}
