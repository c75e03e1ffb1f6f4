use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::db::{self, Db};
use super::files::Files;
use super::place::{Home, Root};
use super::{
    Change, Durability, Evicted, Lost, NewRow, Put, Row, RowId, SpoolError, SpoolOptions, Stamp, Totals, Why,
    damage, sql,
};
use crate::wire::StreamId;

// What a row takes on disk beside its body, in the table, five indexes and the pages' unused ends.
const ROW_OVERHEAD: u64 = 512;

type Result<T, E = SpoolError> = std::result::Result<T, E>;

/// The batches of this process on disk. Every call may block on the disk; none reads a clock.
#[derive(Debug)]
pub(crate) struct Spool {
    // `None` after a failure to open a fresh one; the next call tries again. Closed before the lock is let go.
    pub(super) db: Option<Db>,
    /// As their names led to them when it was opened.
    pub(super) files: Option<Files>,
    pub(super) home: Home,
    pub(super) root: Root,
    pub(super) app: String,
    pub(super) options: SpoolOptions,
    pub(super) totals: Totals,
    pub(super) dead: Totals,
    pub(super) lost: Lost,
    // The first and the last number of each stream that the file has held since it was last empty.
    pub(super) numbers: HashMap<StreamId, (u64, u64)>,
    // A fresh file goes on numbering where the lost one was: a caller may still hold the ids of its rows.
    pub(super) last_id: i64,
}

impl Spool {
    #[cfg(test)]
    pub(crate) fn open(options: &SpoolOptions, app: &str) -> Result<Spool> {
        Spool::open_after(options, app, 0)
    }

    /// Makes a directory for this process, for batches of this application. Its rows' numbers come after `last_id`: a
    /// caller may still hold those of a spool that it has given up.
    pub(crate) fn open_after(options: &SpoolOptions, app: &str, last_id: i64) -> Result<Spool> {
        options.check()?;
        Spool::make(options, app, last_id)
    }

    pub(super) fn make(options: &SpoolOptions, app: &str, last_id: i64) -> Result<Spool> {
        let root = Root::prepare(&options.dir)?;
        let home = Home::create(&root)?;
        let mut spool = Spool {
            db: None,
            files: None,
            home,
            root,
            app: app.to_owned(),
            options: options.clone(),
            totals: Totals::default(),
            dead: Totals::default(),
            lost: Lost::default(),
            numbers: HashMap::new(),
            last_id,
        };
        match spool.ready() {
            Ok(()) => Ok(spool),
            Err(error) => {
                spool.db = None;
                // It is tried again and again: nothing stays of it.
                let _ = spool.home.remove();
                Err(error)
            }
        }
    }

    /// Adds rows. A row whose key is there already is that row, unchanged.
    pub(crate) fn put(&mut self, rows: &[NewRow], durability: Durability, now: &Stamp) -> Result<Put> {
        self.change(Change { rows, ..Change::default() }, durability, now)
    }

    /// Deletes rows, those that are not there included.
    pub(crate) fn delete(&mut self, gone: &[RowId]) -> Result<()> {
        self.change(Change { gone, ..Change::default() }, Durability::Process, &Stamp::default()).map(drop)
    }

    /// Deletes, adds and buries, in one transaction. [`Durability::Buffered`] is no less than `Process` here.
    pub(crate) fn change(&mut self, change: Change<'_>, durability: Durability, now: &Stamp) -> Result<Put> {
        for row in change.rows.iter().chain(change.dead.iter().map(|dead| &dead.batch)) {
            row.check()?;
        }
        self.heal(|spool| {
            let (mut totals, mut dead) = (spool.totals, spool.dead);
            let tx = spool.db()?.begin(durability)?;
            let put = apply(&tx, spool, change, now, &mut totals, &mut dead);
            let put = put.and_then(|put| tx.commit().map(|()| put));
            let put = put.map_err(|error| SpoolError::sql("write to", error))?;
            (spool.totals, spool.dead) = (totals, dead);
            spool.note_numbers(change.rows);
            spool.last_id = put.ids.iter().fold(spool.last_id, |last, id| last.max(id.0));
            Ok(put)
        })
    }

    /// Rows of this user and anonymous ones that have not expired, except those to skip: vital before basic, the oldest
    /// first. Rows that make no sense are deleted on the way and counted as lost.
    pub(crate) fn list(
        &mut self,
        user: Option<&str>,
        now: &Stamp,
        skip: impl Fn(RowId) -> bool,
        limit: usize,
    ) -> Result<Vec<Row>> {
        self.heal(|spool| {
            loop {
                let conn = spool.db()?.conn();
                let (rows, damaged) = eligible(conn, &spool.app, user, now, &skip, limit)
                    .map_err(|error| SpoolError::sql("read", error))?;
                if damaged.is_empty() {
                    return Ok(rows);
                }
                spool.drop_damaged(&damaged)?;
            }
        })
    }

    /// Deletes what has expired.
    pub(crate) fn expire(&mut self, now: &Stamp) -> Result<Vec<Evicted>> {
        // All rows of this file are of this start of the machine: what comes from an earlier one is stamped anew.
        self.take(sql::EXPIRE, |app| (now.boot.to_string(), db::signed(now.mono), app), Why::Expired)
    }

    /// Losses by unreadable files and rows since the last call.
    pub(crate) fn take_lost(&mut self) -> Lost {
        std::mem::take(&mut self.lost)
    }

    /// Writes the log back. A directory that holds nothing goes.
    pub(crate) fn close(mut self) -> Result<()> {
        let empty = match self.db.take() {
            Some(db) => {
                db.checkpoint();
                db::is_empty(db.conn()).unwrap_or(false)
            }
            None => !self.home.has_db(),
        };
        // Another one may stand where it was.
        if empty && self.home.is_named() { self.home.remove() } else { Ok(()) }
    }

    pub(super) fn take<P: rusqlite::Params>(
        &mut self,
        statement: &'static str,
        args: impl Fn(String) -> P,
        why: Why,
    ) -> Result<Vec<Evicted>> {
        self.heal(|spool| {
            let mut totals = spool.totals;
            let tx = spool.db()?.begin(Durability::Process)?;
            let taken = db::take_rows(&tx, statement, args(spool.app.clone()), why);
            let taken = taken.and_then(|taken| tx.commit().map(|()| taken));
            let taken = taken.map_err(|error| SpoolError::sql("write to", error))?;
            let taken = settle(taken, &mut totals);
            spool.totals = totals;
            Ok(taken)
        })
    }

    pub(super) fn db(&self) -> Result<&Db> {
        // Asked for only after `ready`.
        self.db.as_ref().ok_or_else(|| SpoolError::sql("open", rusqlite::Error::InvalidQuery))
    }

    pub(super) fn note_numbers(&mut self, rows: &[NewRow]) {
        if self.totals.rows == 0 {
            self.numbers.clear();
            return;
        }
        for row in rows.iter().filter(|row| row.events > 0) {
            let known = self.numbers.entry(row.stream).or_insert((row.first_seq, row.last_seq));
            *known = (known.0.min(row.first_seq), known.1.max(row.last_seq));
        }
    }

    fn drop_damaged(&mut self, ids: &[RowId]) -> Result<()> {
        let conn = self.db()?.conn();
        let gone: Vec<Evicted> = ids.iter().map(|id| damage::remains(conn, sql::NUMBERS, *id)).collect();
        let deleted = ids.iter().try_for_each(|id| conn.execute(sql::DELETE_QUIETLY, [id.0]).map(drop));
        // What their own numbers say is no use, so the rest is counted.
        let left = deleted.and_then(|()| db::count(conn, sql::COUNT));
        let left = left.map_err(|error| SpoolError::sql("write to", error))?;
        self.lost.events += self.totals.events.saturating_sub(left.events);
        self.lost.numbers.extend(gone.iter().filter_map(Evicted::numbers));
        self.totals = left;
        Ok(())
    }

    pub(super) fn has_room(&self, rows: &[Row]) -> bool {
        let mut sum = self.totals;
        rows.iter().for_each(|row| sum.add(row.batch.events, row.batch.body.len()));
        charged(sum) <= self.options.max_bytes
    }
}

/// The rows that may be sent for this user, and those among them that make no sense.
pub(super) fn eligible(
    conn: &Connection,
    app: &str,
    user: Option<&str>,
    now: &Stamp,
    skip: &impl Fn(RowId) -> bool,
    limit: usize,
) -> rusqlite::Result<(Vec<Row>, Vec<RowId>)> {
    let (mut rows, mut damaged) = (Vec::new(), Vec::new());
    for rank in [0, 1] {
        let mut statement = conn.prepare_cached(sql::LIST)?;
        let mut ids = statement.query(params![rank, user, app, &*now.boot, db::signed(now.mono)])?;
        while rows.len() + damaged.len() < limit {
            let Some(row) = ids.next()? else { break };
            let id = RowId(row.get(1)?);
            if skip(id) {
                continue;
            }
            match db::get(conn, id)? {
                Some(Ok(row)) => rows.push(row),
                Some(Err(db::Damaged)) => damaged.push(id),
                // The index names a row that is not there, and deleting it would not help.
                None => return Err(rusqlite::Error::QueryReturnedNoRows),
            }
        }
    }
    Ok((rows, damaged))
}

fn apply(
    conn: &Connection,
    spool: &Spool,
    change: Change<'_>,
    now: &Stamp,
    totals: &mut Totals,
    dead: &mut Totals,
) -> rusqlite::Result<Put> {
    let mut put = Put::default();
    delete(conn, sql::DELETE, change.gone, Why::Room, totals)?;
    for row in change.rows {
        let id = match db::insert(conn, &spool.app, row, now)? {
            Some(id) => {
                totals.add(row.events, row.body.len());
                put.added.add(row.events, row.body.len());
                id
            }
            None => db::find(conn, row)?,
        };
        put.ids.push(id);
    }
    for letter in change.dead {
        if db::insert_dead(conn, &spool.app, letter)?.is_some() {
            dead.add_letter(letter);
        }
    }
    put.evicted = make_room(conn, spool, now, totals)?;
    put.dead_dropped = bound_dead(conn, &spool.options, dead)?;
    Ok(put)
}

/// Evicts down to the byte cap. New rows are in the table already: a basic one never takes the place of a vital one.
pub(super) fn make_room(
    conn: &Connection,
    spool: &Spool,
    now: &Stamp,
    totals: &mut Totals,
) -> rusqlite::Result<Vec<Evicted>> {
    let fits = |totals: &Totals| charged(*totals) <= spool.options.max_bytes;
    if fits(totals) {
        return Ok(Vec::new());
    }
    let expired =
        db::take_rows(conn, sql::EXPIRE, params![&*now.boot, db::signed(now.mono), spool.app], Why::Expired)?;
    let mut evicted = settle(expired, totals);
    for rank in [1, 0] {
        let victims = oldest(conn, sql::VICTIMS, [rank], *totals, fits)?;
        evicted.extend(delete(conn, sql::DELETE, &victims, Why::Room, totals)?);
    }
    Ok(evicted)
}

/// Deletes the oldest dead letters down to their own limits.
pub(super) fn bound_dead(
    conn: &Connection,
    options: &SpoolOptions,
    dead: &mut Totals,
) -> rusqlite::Result<Vec<Evicted>> {
    let fits = |dead: &Totals| dead.rows <= options.max_dead && charged(*dead) <= options.max_bytes / 4;
    if fits(dead) {
        return Ok(Vec::new());
    }
    let victims = oldest(conn, sql::OLDEST_DEAD, [], *dead, fits)?;
    delete(conn, sql::DELETE_DEAD, &victims, Why::Room, dead)
}

/// As many of the first rows of a statement as must go until the rest fits.
fn oldest(
    conn: &Connection,
    statement: &str,
    args: impl rusqlite::Params,
    mut totals: Totals,
    fits: impl Fn(&Totals) -> bool,
) -> rusqlite::Result<Vec<RowId>> {
    let mut statement = conn.prepare_cached(statement)?;
    let mut rows = statement.query(args)?;
    let mut victims = Vec::new();
    while !fits(&totals) {
        let Some(row) = rows.next()? else { break };
        victims.push(RowId(row.get(0)?));
        totals.sub(0, usize::try_from(row.get::<_, i64>(1)?).unwrap_or_default());
    }
    Ok(victims)
}

pub(super) fn delete(
    conn: &Connection,
    statement: &str,
    ids: &[RowId],
    why: Why,
    totals: &mut Totals,
) -> rusqlite::Result<Vec<Evicted>> {
    let mut gone = Vec::new();
    for id in ids {
        gone.extend(settle(db::take_rows(conn, statement, [id.0], why)?, totals));
    }
    Ok(gone)
}

pub(super) fn settle(taken: Vec<(Evicted, usize)>, totals: &mut Totals) -> Vec<Evicted> {
    let note = |(gone, bytes): (Evicted, usize)| {
        totals.sub_gone(&gone, bytes);
        gone
    };
    taken.into_iter().map(note).collect()
}

fn charged(totals: Totals) -> u64 {
    totals.bytes + totals.rows * ROW_OVERHEAD
}
