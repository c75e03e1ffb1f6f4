//! What other processes left behind.

use std::io;
use std::path::Path;

use rusqlite::{Connection, params};

use super::db::{self, Db};
use super::place::{Home, Take};
use super::store::{eligible, settle};
use super::{
    Adopted, Change, Durability, Erased, Evicted, NewDead, NewRow, Row, RowId, Spool, SpoolError, Stamp,
    Totals, Why, damage, declare, sql,
};

// Rows that are moved in one transaction: what a crash leaves twice at most.
const CHUNK: usize = 50;

type Result<T, E = SpoolError> = std::result::Result<T, E>;

/// Whose failure it is: an orphan's spoils that orphan only.
enum Failure {
    Theirs(SpoolError),
    Ours(SpoolError),
}

impl Spool {
    /// Takes over up to about `limit` rows of processes that are gone: those of our application that are this user's or
    /// anonymous. The rest stays where it is. Dead letters of all users come along, as they are not sent.
    pub(crate) fn adopt(&mut self, user: Option<&str>, now: &Stamp, limit: usize) -> Adopted {
        let mut adopted = Adopted::default();
        let dirs = match self.root.processes() {
            Ok(dirs) => dirs,
            Err(error) => return Adopted { failed: Some(error), ..adopted },
        };
        for dir in dirs {
            adopted.more = adopted.rows >= limit as u64;
            // Each of the others would be waited for as long.
            if adopted.more || adopted.later {
                break;
            }
            match self.adopt_dir(&dir, user, now, limit, &mut adopted) {
                Ok(()) => {}
                Err(Failure::Theirs(error)) => adopted.failed = Some(error),
                Err(Failure::Ours(error)) => {
                    adopted.failed = Some(error);
                    break;
                }
            }
        }
        adopted.more |= adopted.rows >= limit as u64;
        adopted
    }

    fn adopt_dir(
        &mut self,
        dir: &Path,
        user: Option<&str>,
        now: &Stamp,
        limit: usize,
        adopted: &mut Adopted,
    ) -> Result<(), Failure> {
        let home = match self.orphan(dir).map_err(Failure::Theirs)? {
            Take::Ours(home) => home,
            taken => {
                adopted.later |= matches!(taken, Take::Later);
                return Ok(());
            }
        };
        if !home.has_db() {
            adopted.unreadable += u64::from(home.lost_its_db());
            return home.remove().map_err(Failure::Theirs);
        }
        let drained = match Db::open(&home.db()) {
            // A process that knows the newer version will adopt it.
            Err(error) if error.is_newer() => return Ok(()),
            Err(error) => Err(Failure::Theirs(error)),
            Ok(db) => self.drain(&db, user, now, limit, adopted),
        };
        match drained {
            Ok(true) => home.remove().map_err(Failure::Theirs),
            Ok(false) => Ok(()),
            Err(Failure::Theirs(error)) if error.is_corrupt() => {
                let mut salvaged = damage::salvage(&home, &self.app);
                // What was moved before is not lost, though it could not be deleted there.
                salvaged.retain(|gone| !self.holds(gone));
                adopted.unreadable += u64::from(salvaged.is_empty());
                adopted.damaged.extend(salvaged);
                let aside = self.root.set_aside(home.dir(), self.options.max_bytes);
                aside.and_then(|()| home.remove()).map_err(Failure::Theirs)
            }
            Err(failure) => Err(failure),
        }
    }

    fn holds(&self, gone: &Evicted) -> bool {
        let key = params![&gone.stream.as_bytes()[..], db::signed(gone.first_seq), db::signed(gone.last_seq)];
        self.db().is_ok_and(|db| db.conn().query_row(sql::FIND, key, |_| Ok(())).is_ok())
    }

    /// The directory with its lock, where its process is gone.
    fn orphan(&self, dir: &Path) -> Result<Take> {
        if dir == self.home.dir() { Ok(Take::Busy) } else { Home::take(dir) }
    }

    /// Moves the eligible rows. Returns whether none is left.
    fn drain(
        &mut self,
        theirs: &Db,
        user: Option<&str>,
        now: &Stamp,
        limit: usize,
        adopted: &mut Adopted,
    ) -> Result<bool, Failure> {
        let conn = theirs.conn();
        let read = |error| Failure::Theirs(SpoolError::sql("read", error));
        let expired = db::expire_left_behind(conn, &self.app, now).map_err(read)?;
        adopted.expired.extend(settle(expired, &mut Totals::default()));
        loop {
            let chunk = CHUNK.min(limit.saturating_sub(usize::try_from(adopted.rows).unwrap_or(limit)));
            let (rows, damaged) = eligible(conn, &self.app, user, now, &|_| false, chunk).map_err(read)?;
            if rows.is_empty() && damaged.is_empty() {
                break;
            }
            if !self.has_room(&rows) {
                adopted.no_room = true;
                break;
            }
            let (ids, batches): (Vec<RowId>, Vec<_>) =
                rows.into_iter().map(|row| (row.id, stamped(row, now))).unzip();
            // A power cut must not keep the deletion there and lose the addition here.
            let put = self.put(&batches, Durability::Power, now).map_err(Failure::Ours)?;
            adopted.rows += put.added.rows;
            adopted.events += put.added.events;
            adopted.evicted.extend(put.evicted);
            let gone: Vec<Evicted> =
                damaged.iter().map(|id| damage::remains(conn, sql::NUMBERS, *id)).collect();
            forget(theirs, sql::DELETE_QUIETLY, &[ids, damaged].concat())?;
            adopted.damaged.extend(gone);
        }
        while self.drain_dead(theirs, now, adopted)? {}
        db::is_empty(conn).map_err(read)
    }

    fn drain_dead(&mut self, theirs: &Db, now: &Stamp, adopted: &mut Adopted) -> Result<bool, Failure> {
        let (ids, letters, damaged) = dead_of(theirs.conn(), &self.app)
            .map_err(|error| Failure::Theirs(SpoolError::sql("read", error)))?;
        if ids.is_empty() {
            return Ok(false);
        }
        let gone: Vec<Evicted> =
            damaged.iter().map(|id| damage::remains(theirs.conn(), sql::NUMBERS_OF_DEAD, *id)).collect();
        let change = Change { dead: &letters, ..Change::default() };
        let put = self.change(change, Durability::Power, now).map_err(Failure::Ours)?;
        adopted.dead += letters.len() as u64;
        adopted.dead_dropped.extend(put.dead_dropped);
        forget(theirs, sql::DELETE_DEAD_QUIETLY, &ids)?;
        adopted.damaged.extend(gone);
        Ok(true)
    }

    /// Deletes all of a user's batches of our application, dead letters included: our own, and those of processes that
    /// are gone. What was set aside as unreadable goes too, as its users are not known.
    pub(crate) fn erase_user(&mut self, user: &str) -> Result<Erased> {
        let mut erased = self.heal(|spool| {
            let (mut totals, mut dead) = (spool.totals, spool.dead);
            let db = spool.db()?;
            let (rows, letters) = erase_in(db, user, Some(&spool.app), None)?;
            let rows = settle(rows, &mut totals);
            let letters = settle(letters, &mut dead);
            (spool.totals, spool.dead) = (totals, dead);
            Ok(Erased { rows, dead: letters, ..Erased::default() })
        })?;
        self.root.clear_aside();
        let dirs = self.root.processes().unwrap_or_else(|error| {
            erased.failed = Some(error);
            Vec::new()
        });
        for dir in dirs {
            match self.erase_orphan(&dir, user) {
                Ok(Some(rows)) => erased.orphans.extend(rows),
                // What may be in the others is not erased, and the reply says so.
                Ok(None) => {
                    let late = io::Error::from(io::ErrorKind::TimedOut);
                    erased.failed = Some(SpoolError::io("lock", &dir, late));
                    break;
                }
                Err(error) => erased.failed = Some(error),
            }
        }
        Ok(erased)
    }

    /// `None`: it could not be looked at, for want of a turn.
    fn erase_orphan(&mut self, dir: &Path, user: &str) -> Result<Option<Vec<Evicted>>> {
        let home = match self.orphan(dir)? {
            Take::Ours(home) if home.has_db() => home,
            Take::Later => return Ok(None),
            Take::Ours(_) | Take::Busy | Take::Gone | Take::Foreign => return Ok(Some(Vec::new())),
        };
        let db = Db::open(&home.db())?;
        let (rows, _) = erase_in(&db, user, Some(&self.app), None)?;
        let empty = db::is_empty(db.conn()).map_err(|error| SpoolError::sql("read", error))?;
        drop(db);
        if empty {
            home.remove()?;
        }
        Ok(Some(settle(rows, &mut Totals::default())))
    }
}

/// Its expiry, by the clock of this start of the machine.
fn stamped(row: Row, now: &Stamp) -> NewRow {
    NewRow { until: Some(now.until(&row.batch, row.until.as_ref())), ..row.batch }
}

type Taken = Vec<(Evicted, usize)>;

/// Deletes a user's rows and dead letters of one application, or of all, so that the file does not hold them either. A
/// caller that cannot declare what is gone says what time it is, and a declaration is left there.
pub(super) fn erase_in(
    db: &Db,
    user: &str,
    app: Option<&str>,
    leaves: Option<&Stamp>,
) -> Result<(Taken, Taken)> {
    let failed = |error| SpoolError::sql("write to", error);
    db.conn().pragma_update_and_check(None, "secure_delete", true, |_| Ok(())).map_err(failed)?;
    let tx = db.begin(Durability::Power)?;
    let declarations = leaves.map(|now| declare::of_user(&tx, user, now)).transpose().map_err(failed)?;
    let rows = db::take_rows(&tx, sql::ERASE, params![user, app], Why::Erased).map_err(failed)?;
    if let (Some(declarations), Some(now)) = (declarations, leaves) {
        declare::leave(&tx, &declarations, now).map_err(failed)?;
    }
    let dead = db::take_rows(&tx, sql::ERASE_DEAD, params![user, app], Why::Erased).map_err(failed)?;
    tx.commit().map_err(failed)?;
    db.scrub();
    let _ = db.conn().pragma_update_and_check(None, "secure_delete", false, |_| Ok(()));
    Ok((rows, dead))
}

fn forget(theirs: &Db, statement: &str, ids: &[RowId]) -> Result<(), Failure> {
    let tx = theirs.begin(Durability::Process).map_err(Failure::Theirs)?;
    let deleted = ids.iter().try_for_each(|id| tx.execute(statement, [id.0]).map(drop));
    let deleted = deleted.and_then(|()| tx.commit());
    deleted.map_err(|error| Failure::Theirs(SpoolError::sql("write to", error)))
}

/// Some of the dead letters of an application, and which of these ids make no sense.
fn dead_of(conn: &Connection, app: &str) -> rusqlite::Result<(Vec<RowId>, Vec<NewDead>, Vec<RowId>)> {
    let mut statement = conn.prepare_cached(sql::LIST_DEAD_OF_APP)?;
    let ids = statement.query_map(params![app, CHUNK as i64], |row| row.get(0).map(RowId))?;
    let ids: Vec<RowId> = ids.collect::<rusqlite::Result<_>>()?;
    let (mut letters, mut damaged) = (Vec::new(), Vec::new());
    for &id in &ids {
        match db::get_dead(conn, id)? {
            Some(Ok((_, dead))) => letters.push(NewDead { own: false, ..dead }),
            Some(Err(db::Damaged)) | None => damaged.push(id),
        }
    }
    Ok((ids, letters, damaged))
}
