//! Is the file still the one that a later process would find, and can it be written?

use rusqlite::Connection;

use super::db::{self, Db};
use super::place::{Home, Root};
use super::{Durability, Numbers, Spool, SpoolError, sql};

type Result<T, E = SpoolError> = std::result::Result<T, E>;

impl Spool {
    /// Does the work; where the file turns out to be corrupt, once more on a fresh one. Where the disk is full, once
    /// more after the log was written back, as it is written from its beginning then. That does not help where the
    /// file has to grow first.
    pub(super) fn heal<T>(&mut self, work: impl Fn(&mut Spool) -> Result<T>) -> Result<T> {
        self.ready()?;
        match work(self) {
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
        }
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

    pub(super) fn ready(&mut self) -> Result<()> {
        // Whoever cleans up folders may have taken the directory away; writing on into nameless files would go well.
        if !self.home.is_named() {
            self.forget();
            self.root = Root::prepare(&self.options.dir)?;
            self.home = Home::create(&self.root)?;
        }
        if self.db.is_some() {
            return Ok(());
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
        Ok(())
    }
}
