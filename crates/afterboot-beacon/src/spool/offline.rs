//! A root without a spool of one's own: for a tool that looks at what lies there.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::adopt::erase_in;
use super::db::{self, Db};
use super::place::{Home, Root, Take, db_in, process_name};
use super::store::delete;
use super::{
    DeadId, DeadLetter, Durability, ProcessSpool, RowId, SpoolError, Stamp, Totals, Why, dead_store, sql,
};

type Result<T, E = SpoolError> = std::result::Result<T, E>;

#[derive(Debug)]
pub(crate) struct Offline(Root);

/// A database that can be read, and changed where its process is gone.
#[derive(Debug)]
pub(crate) struct Held {
    db: Db,
    // Let go after the database is closed.
    home: Option<Home>,
}

impl Offline {
    pub(crate) fn open(root: &Path) -> Result<Offline> {
        Root::existing(root).map(Offline)
    }

    pub(crate) fn list(&self, after: Option<DeadId>, limit: usize) -> Result<Vec<DeadLetter>> {
        let mut letters = Vec::new();
        for dir in self.0.processes()? {
            let process = DeadId::process_of(&dir);
            let after = after.map_or(0, |after| match after.process.cmp(&process) {
                std::cmp::Ordering::Less => 0,
                std::cmp::Ordering::Equal => after.row,
                std::cmp::Ordering::Greater => i64::MAX,
            });
            if letters.len() >= limit {
                break;
            }
            if after == i64::MAX {
                continue;
            }
            let Some(held) = hold(&dir)? else { continue };
            let more = dead_store::list(held.db.conn(), process, after, limit - letters.len());
            letters.extend(more.map_err(|error| SpoolError::sql("read", error))?);
        }
        Ok(letters)
    }

    /// Changes dead letters, one process after the other. Returns the sums.
    pub(crate) fn each_of(
        &self,
        ids: &[DeadId],
        act: impl Fn(&Held, &[DeadId]) -> Result<(u64, u64)>,
    ) -> Result<(u64, u64)> {
        let mut by_process: BTreeMap<u64, Vec<DeadId>> = BTreeMap::new();
        for &id in ids {
            by_process.entry(id.process).or_default().push(id);
        }
        let (mut letters, mut events) = (0, 0);
        for ids in by_process.into_values() {
            let missing = || SpoolError::no_dead_letter(ids[0]);
            let dir = self.0.process(&ids[0].process_name()).ok_or_else(missing)?;
            let held = hold(&dir)?.ok_or_else(missing)?;
            if held.home.is_none() {
                return Err(SpoolError::live(&dir));
            }
            let (more_letters, more_events) = act(&held, &ids)?;
            letters += more_letters;
            events += more_events;
            held.let_go()?;
        }
        Ok((letters, events))
    }

    pub(crate) fn erase_user(&self, user: &str, now: &Stamp) -> Result<u64> {
        let (mut events, mut live) = (0, None);
        self.0.clear_aside();
        for dir in self.0.processes()? {
            let Some(held) = hold(&dir)? else { continue };
            if held.home.is_none() {
                live = Some(SpoolError::live(&dir));
                continue;
            }
            let (rows, dead) = erase_in(&held.db, user, None, Some(now))?;
            events += rows.iter().chain(&dead).map(|(gone, _)| u64::from(gone.events)).sum::<u64>();
            held.let_go()?;
        }
        live.map_or(Ok(events), Err)
    }

    pub(crate) fn processes(&self) -> Result<Vec<ProcessSpool>> {
        let mut processes = Vec::new();
        for dir in self.0.processes()? {
            let Some(held) = hold(&dir)? else { continue };
            let read = read_totals(held.db.conn()).map_err(|error| SpoolError::sql("read", error))?;
            let (totals, dead, oldest) = read;
            processes.push(ProcessSpool {
                process: process_name(&dir).unwrap_or_default().to_owned(),
                live: held.home.is_none(),
                rows: totals.rows,
                events: totals.events,
                bytes: totals.bytes,
                dead: dead.rows,
                oldest: oldest.and_then(|at| u64::try_from(at).ok()),
            });
        }
        Ok(processes)
    }
}

impl Held {
    /// All of them or, where one is not there, none.
    pub(crate) fn replay(&self, ids: &[DeadId], now: &Stamp) -> Result<(u64, u64)> {
        self.all_or_none(ids, |conn, row| {
            let moved = dead_store::replay(conn, row, now, &mut Totals::default())?;
            Ok(moved.map(|moved| moved.batch.events))
        })
    }

    pub(crate) fn purge(&self, ids: &[DeadId]) -> Result<(u64, u64)> {
        self.all_or_none(ids, |conn, row| {
            let gone = delete(conn, sql::DELETE_DEAD, &[row], Why::Erased, &mut Totals::default())?;
            Ok(gone.first().map(|gone| gone.events))
        })
    }

    fn all_or_none(
        &self,
        ids: &[DeadId],
        act: impl Fn(&Connection, RowId) -> rusqlite::Result<Option<u32>>,
    ) -> Result<(u64, u64)> {
        let failed = |error| SpoolError::sql("write to", error);
        let tx = self.db.begin(Durability::Power)?;
        let mut events = 0;
        for id in ids {
            let done = act(&tx, RowId(id.row)).map_err(failed)?;
            events += u64::from(done.ok_or_else(|| SpoolError::no_dead_letter(id))?);
        }
        tx.commit().map_err(failed)?;
        Ok((ids.len() as u64, events))
    }

    /// Closes the database. A directory that holds nothing any more goes.
    fn let_go(self) -> Result<()> {
        let empty = db::is_empty(self.db.conn()).map_err(|error| SpoolError::sql("read", error))?;
        drop(self.db);
        match self.home {
            Some(home) if empty => home.remove(),
            _ => Ok(()),
        }
    }
}

/// `None` where there is nothing to read.
fn hold(dir: &Path) -> Result<Option<Held>> {
    match Home::take(dir)? {
        Take::Ours(home) if home.has_db() => Ok(Some(Held { db: Db::open(&home.db())?, home: Some(home) })),
        Take::Busy | Take::Later => match Db::open_read_only(&db_in(dir)) {
            Ok(db) => Ok(Some(Held { db, home: None })),
            // It is made or removed at this moment.
            Err(_) if !db_in(dir).exists() => Ok(None),
            Err(error) => Err(error),
        },
        Take::Ours(_) | Take::Gone | Take::Foreign => Ok(None),
    }
}

fn read_totals(conn: &Connection) -> rusqlite::Result<(Totals, Totals, Option<i64>)> {
    let oldest = conn.query_row(sql::OLDEST, [], |row| row.get(0))?;
    Ok((db::count(conn, sql::COUNT)?, db::count(conn, sql::COUNT_DEAD)?, oldest))
}
