//! One database file: opening it, and what its rows say.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Row as SqlRow, Transaction, TransactionBehavior, params,
};

use super::age::{LEEWAY_MS, OLDEST_AT, Stamp};
use super::rows::{Evicted, MAX_ROW, NewDead, NewRow, Row, RowId, Totals, Until, Why};
use super::{Durability, SpoolError, sql};
use crate::base::bounds::MAX_LETTER;
use crate::wire::{Priority, StreamId, gunzip};

// Pages are written once into the log and once into the file, so a larger log saves nothing.
const LOG_LIMIT: u32 = 4 << 20;

/// How large a body may inflate: one event may be larger than a batch should be.
pub(crate) const MAX_INFLATED: usize = MAX_LETTER;

type Result<T, E = SpoolError> = std::result::Result<T, E>;

/// A row whose contents make no sense. The rest of the file may.
#[derive(Debug)]
pub(super) struct Damaged;

#[derive(Debug)]
pub(super) struct Db(Connection);

impl Db {
    /// Opens a database, and makes it where the file is new or empty.
    pub(super) fn open(path: &Path) -> Result<Db> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let db = Db::connect(path, flags)?;
        let failed = |error| SpoolError::sql("open", error);
        if db.version(path)? == 0 {
            let tx = db.begin(Durability::Process)?;
            tx.execute_batch(sql::SCHEMA).map_err(failed)?;
            tx.commit().map_err(failed)?;
        } else if !db.has_until().map_err(failed)? {
            let tx = db.begin(Durability::Process)?;
            tx.execute_batch(sql::ADD_UNTIL).map_err(failed)?;
            tx.commit().map_err(failed)?;
        }
        Ok(db)
    }

    fn has_until(&self) -> rusqlite::Result<bool> {
        self.0.query_row(sql::HAS_UNTIL, [], |row| row.get(0)).map(|columns: i64| columns > 0)
    }

    /// For a directory that another process holds.
    pub(super) fn open_read_only(path: &Path) -> Result<Db> {
        let db = Db::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.version(path)?;
        Ok(db)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Db> {
        let failed = |error| SpoolError::sql("open", error);
        let flags = flags | OpenFlags::SQLITE_OPEN_NOFOLLOW | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags).map_err(failed)?;
        conn.busy_timeout(Duration::from_secs(1)).map_err(failed)?;
        // A second guard: no value is read that is much larger than the largest body.
        conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, 4 * MAX_ROW as i32).map_err(failed)?;
        let db = Db(conn);
        db.version(path)?;
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE) {
            // It stays so for a file that has it. One that was copied has not.
            db.0.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).map_err(failed)?;
            db.0.pragma_update_and_check(None, "journal_size_limit", LOG_LIMIT, |_| Ok(()))
                .map_err(failed)?;
            db.0.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
            db.0.pragma_update(None, "cell_size_check", true).map_err(failed)?;
        }
        Ok(db)
    }

    fn version(&self, path: &Path) -> Result<i64> {
        let version = self.0.query_row("PRAGMA user_version", [], |row| row.get(0));
        let version: i64 = version.map_err(|error| SpoolError::sql("open", error))?;
        match version {
            0..=sql::VERSION => Ok(version),
            _ => Err(SpoolError::newer(path, version, sql::VERSION)),
        }
    }

    pub(super) fn conn(&self) -> &Connection {
        &self.0
    }

    /// Bounds the file, in pages. Returns the bound that holds: never less than there is.
    pub(super) fn limit_pages(&self, pages: u32) -> Result<u32> {
        let set = self.0.pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0));
        set.map_err(|error| SpoolError::sql("bound", error))
    }

    /// Begins a transaction whose commit survives as much as is asked for.
    pub(super) fn begin(&self, durability: Durability) -> Result<Transaction<'_>> {
        let failed = |error| SpoolError::sql("write to", error);
        let level = if durability == Durability::Power { "FULL" } else { "NORMAL" };
        self.0.pragma_update(None, "synchronous", level).map_err(failed)?;
        Transaction::new_unchecked(&self.0, TransactionBehavior::Immediate).map_err(failed)
    }

    /// Makes what was deleted unreadable in the file too. What cannot be rewritten for want of room is zeroed at least,
    /// so a failure is no error.
    pub(super) fn scrub(&self) {
        let _ = self.0.execute_batch("VACUUM");
        self.checkpoint();
    }

    /// Writes the log back and keeps its room on the disk.
    pub(super) fn restart_log(&self) {
        let _ = self.0.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()));
    }

    /// Writes the log back whole. Returns false if a reader is active or the disk fails.
    pub(super) fn write_back(&self) -> bool {
        let busy = self.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        busy.is_ok_and(|busy| busy == 0)
    }

    /// All that can be read through this connection, in a file of its own.
    pub(super) fn copy_to(&self, path: &Path) -> bool {
        let _ = fs::remove_file(path);
        let copied = path.to_str().map(|path| self.0.execute("VACUUM INTO ?1", [path]));
        copied.is_some_and(|copied| copied.is_ok())
    }

    pub(super) fn checkpoint(&self) {
        let _ = self.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

pub(super) fn count(conn: &Connection, statement: &str) -> rusqlite::Result<Totals> {
    conn.prepare_cached(statement)?.query_row([], |row| {
        let number = |index| row.get(index).map(unsigned);
        Ok(Totals { rows: number(0)?, events: number(1)?, bytes: number(2)?, own: number(3)? })
    })
}

pub(super) fn is_empty(conn: &Connection) -> rusqlite::Result<bool> {
    conn.prepare_cached(sql::ANY)?.query_row([], |row| row.get(0)).map(|any: bool| !any)
}

/// Adds a row; `None` where its key is there already.
pub(super) fn insert(
    conn: &Connection,
    app: &str,
    row: &NewRow,
    now: &Stamp,
) -> rusqlite::Result<Option<RowId>> {
    let until = row.until.unwrap_or_else(|| now.until(row, None));
    let mut statement = conn.prepare_cached(sql::INSERT)?;
    let new = statement.execute(params![
        app,
        &row.stream.as_bytes()[..],
        signed(row.first_seq),
        signed(row.last_seq),
        rank(row.priority),
        row.user,
        row.session,
        row.events,
        signed(row.newest_at),
        signed(row.expires_at),
        row.boot,
        row.body.len() as i64,
        &row.body[..],
        &*now.boot,
        signed(until),
    ])?;
    Ok((new > 0).then(|| RowId(conn.last_insert_rowid())))
}

/// Deletes what has expired in a file that an earlier process wrote, perhaps before this start of the machine.
pub(super) fn expire_left_behind(
    conn: &Connection,
    app: &str,
    now: &Stamp,
) -> rusqlite::Result<Vec<(Evicted, usize)>> {
    let mut expired = take_rows(conn, sql::EXPIRE, params![&*now.boot, signed(now.mono), app], Why::Expired)?;
    // A clock that is not set yet says nothing: what is left of before waits until it is.
    if now.is_set() {
        let oldest = signed(OLDEST_AT);
        let args = params![&*now.boot, signed(now.wall), oldest, app];
        expired.extend(take_rows(conn, sql::EXPIRE_BY_WALL, args, Why::Expired)?);
        let newest = signed(now.wall.saturating_add(LEEWAY_MS));
        conn.prepare_cached(sql::LIVE_ANEW)?.execute(params![
            &*now.boot,
            signed(now.mono),
            oldest,
            newest,
            app
        ])?;
    }
    Ok(expired)
}

pub(super) fn find(conn: &Connection, row: &NewRow) -> rusqlite::Result<RowId> {
    let key = params![&row.stream.as_bytes()[..], signed(row.first_seq), signed(row.last_seq)];
    conn.prepare_cached(sql::FIND)?.query_row(key, |row| row.get(0)).map(RowId)
}

pub(super) fn insert_dead(conn: &Connection, app: &str, dead: &NewDead) -> rusqlite::Result<Option<RowId>> {
    let row = &dead.batch;
    let mut statement = conn.prepare_cached(sql::INSERT_DEAD)?;
    let new = statement.execute(params![
        app,
        &row.stream.as_bytes()[..],
        signed(row.first_seq),
        signed(row.last_seq),
        rank(row.priority),
        row.user,
        row.session,
        row.events,
        signed(row.newest_at),
        signed(row.expires_at),
        row.boot,
        row.body.len() as i64,
        &row.body[..],
        signed(dead.at),
        dead.reason,
        dead.status,
        dead.own,
    ])?;
    Ok((new > 0).then(|| RowId(conn.last_insert_rowid())))
}

/// Reads a row whole. `None` where it is not there.
pub(super) fn get(conn: &Connection, id: RowId) -> rusqlite::Result<Option<Result<Row, Damaged>>> {
    let mut statement = conn.prepare_cached(sql::GET)?;
    let read = statement.query_row(params![id.0, MAX_ROW as i64], |row| {
        sound(decode(row).and_then(|(_, batch)| {
            let until = match (row.get::<_, Option<String>>(13)?, row.get::<_, Option<i64>>(14)?) {
                (Some(boot), Some(mono)) => Some(Until { boot, mono: unsigned(mono) }),
                _ => None,
            };
            Ok(Row { id, until, batch })
        }))
    });
    read.optional()
}

/// Reads a dead letter whole, with its app. `None` where it is not there.
pub(super) fn get_dead(
    conn: &Connection,
    id: RowId,
) -> rusqlite::Result<Option<Result<(String, NewDead), Damaged>>> {
    let mut statement = conn.prepare_cached(sql::GET_DEAD)?;
    let read = statement.query_row(params![id.0, MAX_ROW as i64], |row| {
        sound(decode(row).and_then(|(app, batch)| {
            let (at, reason) = (natural(row, 13)?, row.get(14)?);
            let dead = NewDead { batch, at, reason, status: row.get(15)?, own: row.get(16)? };
            Ok((app, dead))
        }))
    });
    read.optional()
}

/// The rows that a statement's `RETURNING` names, with the size of their bodies.
pub(super) fn take_rows(
    conn: &Connection,
    statement: &str,
    args: impl rusqlite::Params,
    why: Why,
) -> rusqlite::Result<Vec<(Evicted, usize)>> {
    let mut statement = conn.prepare_cached(statement)?;
    let says_own = statement.column_count() > 6;
    let rows = statement.query_map(args, |row| {
        let bytes = usize::try_from(row.get::<_, i64>(5)?).unwrap_or_default();
        let stream =
            row.get_ref(1)?.as_blob().ok().and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        let gone = Evicted {
            id: RowId(row.get(0)?),
            stream: StreamId::from_bytes(stream),
            first_seq: unsigned(row.get(2)?),
            last_seq: unsigned(row.get(3)?),
            events: u32::try_from(row.get::<_, i64>(4)?).unwrap_or_default(),
            own: says_own && row.get(6)?,
            why,
        };
        Ok((gone, bytes))
    })?;
    rows.collect()
}

fn decode(row: &SqlRow<'_>) -> rusqlite::Result<(String, NewRow)> {
    let damaged = |index: usize| rusqlite::Error::IntegralValueOutOfRange(index, 0);
    let stream = row.get_ref(1)?.as_blob().ok().and_then(|bytes| bytes.try_into().ok());
    let priority = match row.get(4)? {
        0 => Priority::Vital,
        1 => Priority::Basic,
        other => return Err(rusqlite::Error::IntegralValueOutOfRange(4, other)),
    };
    let body: Arc<[u8]> = row.get_ref(12)?.as_blob().map_err(|_| damaged(12))?.into();
    // SQLite has no checksums, but gzip has.
    if body.len() as i64 != row.get::<_, i64>(11)? || gunzip(&body, MAX_INFLATED).is_err() {
        return Err(damaged(12));
    }
    let batch = NewRow {
        stream: StreamId::from_bytes(stream.ok_or_else(|| damaged(1))?),
        first_seq: natural(row, 2)?,
        last_seq: natural(row, 3)?,
        priority,
        user: row.get(5)?,
        session: row.get(6)?,
        events: row.get(7)?,
        newest_at: natural(row, 8)?,
        expires_at: natural(row, 9)?,
        until: None,
        boot: row.get(10)?,
        body,
    };
    if batch.first_seq > batch.last_seq {
        return Err(damaged(2));
    }
    Ok((row.get(0)?, batch))
}

/// Distinguishes an invalid row from an invalid file.
fn sound<T>(decoded: rusqlite::Result<T>) -> rusqlite::Result<Result<T, Damaged>> {
    match decoded {
        Err(error @ rusqlite::Error::SqliteFailure(..)) => Err(error),
        decoded => Ok(decoded.map_err(|_| Damaged)),
    }
}

pub(super) fn rank(priority: Priority) -> i64 {
    match priority {
        Priority::Vital => 0,
        Priority::Basic => 1,
    }
}

// SQLite has no larger numbers. A time that far off is never, and no stream counts that far.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn natural(row: &SqlRow<'_>, index: usize) -> rusqlite::Result<u64> {
    let number = row.get(index)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(index, number))
}
