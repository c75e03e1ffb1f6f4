//! Is the file still the one that a later process would find, and can it be written?

use rusqlite::Connection;

use super::db::{self, Db};
use super::place::{Home, Root};
use super::{Durability, Lost, Numbers, Spool, SpoolError, sql};

/// The log may have so many times the bytes of the spool: four, for the log holds old versions of pages.
const LOG_SHARE: u64 = 4;

/// But it may always hold the largest transaction.
const LOG_AT_LEAST: u64 = 16 << 20;

type Result<T, E = SpoolError> = std::result::Result<T, E>;

impl Spool {
    /// Does the work; where the file turns out to be corrupt, once more on a fresh one. Where the disk is full, once
    /// more after the log was written back, as it is written from its beginning then. That does not help where the
    /// file has to grow first.
    ///
    /// Work on a file that has lost its name is repeated on one that has it: a result is reported only for a file that a later
    /// process finds.
    pub(super) fn heal<T>(&mut self, work: impl Fn(&mut Spool) -> Result<T>) -> Result<T> {
        self.ready()?;
        let done = match work(self) {
            Err(error) if error.is_corrupt() => {
                self.forget();
                self.root.set_aside(self.home.dir(), self.options.max_bytes)?;
                self.ready()?;
                work(self)
            }
            Err(error) if error.is_full() => {
                self.db()?.restart_log();
                work(self)
            }
            done => done,
        }?;
        if !self.is_findable() {
            let lost = std::mem::take(&mut self.lost.file);
            self.ready()?;
            let lost_now = std::mem::replace(&mut self.lost.file, true);
            if lost_now {
                return work(self);
            }
            self.lost.file = lost;
        }
        Ok(done)
    }

    /// Returns whether the names lead to the files that are written to.
    fn is_findable(&self) -> bool {
        let named = self.home.named_files();
        self.home.is_named() && self.files.is_some_and(|files| files.are(&named)) && named.are_all_there()
    }

    /// Before it is closed: what is in a file without a name is written anew. What could not be saved.
    pub(crate) fn last_look(&mut self) -> Lost {
        if self.db.is_some() && !self.is_findable() {
            let _ = self.ready();
        }
        self.take_lost()
    }

    /// Writes something that changes nothing, to see whether that is possible.
    pub(crate) fn probe(&mut self) -> Result<()> {
        self.heal(|spool| {
            let tx = spool.db()?.begin(Durability::Process)?;
            let failed = |error| SpoolError::sql("write to", error);
            tx.pragma_update(None, "user_version", sql::VERSION).map_err(failed)?;
            tx.commit().map_err(failed)
        })
    }

    /// Gives up the file.
    fn forget(&mut self) {
        self.db = None;
        self.lost.events += self.totals.events;
        self.lost.letters += self.dead.own;
        self.lost.file = true;
        let numbers = self.numbers.drain().map(|(stream, (first, last))| Numbers { stream, first, last });
        self.lost.numbers.extend(numbers);
        (self.totals, self.dead) = Default::default();
    }

    /// What was in the directory is gone with it.
    fn move_out(&mut self) -> Result<()> {
        self.forget();
        self.root = Root::prepare(&self.options.dir)?;
        self.home = Home::create(&self.root)?;
        Ok(())
    }

    /// Files were removed or replaced: the open ones still hold all of their content.
    fn save_from_nameless_files(&mut self) -> Result<()> {
        let Some(db) = self.db.take() else { return Ok(()) };
        let named = self.home.named_files();
        let same_db = named.db.is_some() && self.files.is_some_and(|files| files.db == named.db);
        // Where it is only the log that lost its name, what is in it goes where it would have gone in the end.
        if same_db && db.write_back() {
            return Ok(());
        }
        let copied = db.copy_to(&self.home.new_db());
        drop(db);
        let saved = copied && self.home.rename_new_db().is_ok();
        if !saved {
            self.forget();
            self.root.set_aside(self.home.dir(), self.options.max_bytes)?;
        }
        Ok(())
    }

    /// A reader that does not end keeps the log from being written back, and the log grows with each commit.
    fn bound_log(&self) -> Result<()> {
        let max = (LOG_SHARE * self.options.max_bytes).max(LOG_AT_LEAST);
        if self.home.named_files().log_bytes <= max {
            return Ok(());
        }
        self.db()?.checkpoint();
        match self.home.named_files().log_bytes {
            bytes if bytes > max => Err(SpoolError::log(bytes, max)),
            _ => Ok(()),
        }
    }

    pub(super) fn ready(&mut self) -> Result<()> {
        // A clean-up may have removed the directory or its files; writes into the nameless files would still succeed.
        if !self.home.is_named() {
            self.move_out()?;
        } else if self.db.is_some() && !self.is_findable() {
            self.save_from_nameless_files()?;
        }
        if self.db.is_some() {
            return self.bound_log();
        }
        let db = match Db::open(&self.home.db()) {
            Err(error) if error.is_corrupt() => {
                self.root.set_aside(self.home.dir(), self.options.max_bytes)?;
                Db::open(&self.home.db())?
            }
            opened => opened?,
        };
        // Twice the bytes, for pages that are half empty, and for dead letters and the schema.
        let pages = (self.options.max_bytes / 2 * 5) / 4096 + 256;
        db.limit_pages(u32::try_from(pages).unwrap_or(u32::MAX - 1))?;
        let begin = |conn: &Connection| {
            conn.execute("DELETE FROM sqlite_sequence", [])?;
            let seed = "INSERT INTO sqlite_sequence (name, seq) VALUES ('batch', ?1), ('dead', ?1)";
            conn.execute(seed, [self.last_id])?;
            Ok((db::count(conn, sql::COUNT)?, db::count(conn, sql::COUNT_DEAD)?))
        };
        (self.totals, self.dead) = begin(db.conn()).map_err(|error| SpoolError::sql("open", error))?;
        self.db = Some(db);
        self.files = Some(self.home.named_files());
        Ok(())
    }
}
