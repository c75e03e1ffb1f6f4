//! Dead letters of a spool: what the server will not take, kept for a person to look at.

use rusqlite::Connection;

use super::store::{delete, make_room};
use super::{
    DeadId, DeadLetter, Durability, Evicted, NewDead, NewRow, Replayed, RowId, Spool, SpoolError, Stamp,
    Totals, Why, db, sql,
};

// What a replayed batch lives at least, whatever its first life was.
const MIN_LIFE_MS: u64 = 60 * 60 * 1000;

type Result<T, E = SpoolError> = std::result::Result<T, E>;

impl Spool {
    /// Dead letters after this one, in the order in which they came. Those that make no sense are left out.
    pub(crate) fn list_dead(&mut self, after: Option<DeadId>, limit: usize) -> Result<Vec<DeadLetter>> {
        self.heal(|spool| {
            let process = DeadId::process_of(spool.home.dir());
            let listed = list(spool.db()?.conn(), process, after.map_or(0, |id| id.row), limit);
            listed.map_err(|error| SpoolError::sql("read", error))
        })
    }

    /// Makes batches of dead letters again, with a new life as long as the first one. All of them or, where one is not
    /// there, none.
    pub(crate) fn replay_dead(&mut self, ids: &[DeadId], now: &Stamp) -> Result<Replayed> {
        self.heal(|spool| {
            let rows = spool.own_rows(ids)?;
            let (mut totals, mut dead, mut replayed) = (spool.totals, spool.dead, Replayed::default());
            let mut batches = Vec::new();
            let tx = spool.db()?.begin(Durability::Process)?;
            let failed = |error| SpoolError::sql("write to", error);
            for (&row, id) in rows.iter().zip(ids) {
                let Some(moved) = replay(&tx, row, now, &mut dead).map_err(failed)? else {
                    return Err(SpoolError::no_dead_letter(id));
                };
                let Moved { batch, own, new } = moved;
                replayed.rows += 1;
                *(if own { &mut replayed.own } else { &mut replayed.others }) += u64::from(batch.events);
                if new {
                    totals.add(batch.events, batch.body.len());
                }
                batches.push(batch);
            }
            replayed.evicted = make_room(&tx, spool, now, &mut totals).map_err(failed)?;
            tx.commit().map_err(failed)?;
            (spool.totals, spool.dead) = (totals, dead);
            spool.note_numbers(&batches);
            Ok(replayed)
        })
    }

    /// Deletes dead letters, those that are not there included; `None` is all of them.
    pub(crate) fn purge_dead(&mut self, ids: Option<&[DeadId]>) -> Result<Vec<Evicted>> {
        self.heal(|spool| {
            let mut dead = spool.dead;
            let tx = spool.db()?.begin(Durability::Process)?;
            let failed = |error| SpoolError::sql("write to", error);
            let rows = match ids {
                Some(ids) => spool.own_rows(ids)?,
                None => all(&tx).map_err(failed)?,
            };
            let gone = delete(&tx, sql::DELETE_DEAD, &rows, Why::Erased, &mut dead).map_err(failed)?;
            tx.commit().map_err(failed)?;
            spool.dead = dead;
            Ok(gone)
        })
    }

    fn own_rows(&self, ids: &[DeadId]) -> Result<Vec<RowId>> {
        let process = DeadId::process_of(self.home.dir());
        let own = |id: &DeadId| match id.process == process {
            true => Ok(RowId(id.row)),
            false => Err(SpoolError::no_dead_letter(id)),
        };
        ids.iter().map(own).collect()
    }
}

pub(crate) struct Moved {
    pub(super) batch: NewRow,
    pub(super) own: bool,
    // Not so where the same batch is in the spool too.
    pub(super) new: bool,
}

/// Moves a dead letter among the batches of the same database. `None` where it is not there or makes no sense.
pub(crate) fn replay(
    conn: &Connection,
    id: RowId,
    now: &Stamp,
    dead: &mut Totals,
) -> rusqlite::Result<Option<Moved>> {
    let Some(Ok((app, NewDead { mut batch, own, .. }))) = db::get_dead(conn, id)? else { return Ok(None) };
    let life = batch.life().max(MIN_LIFE_MS);
    batch.expires_at = now.wall.saturating_add(life);
    batch.until = Some(now.mono.saturating_add(life));
    let new = db::insert(conn, &app, &batch, now)?.is_some();
    delete(conn, sql::DELETE_DEAD, &[id], Why::Room, dead)?;
    Ok(Some(Moved { batch, own, new }))
}

pub(crate) fn list(
    conn: &Connection,
    process: u64,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<DeadLetter>> {
    let mut letters = Vec::new();
    let mut statement = conn.prepare_cached(sql::LIST_DEAD)?;
    let mut ids = statement.query([after])?;
    while letters.len() < limit {
        let Some(row) = ids.next()? else { break };
        let row = row.get(0)?;
        if let Some(Ok((app, dead))) = db::get_dead(conn, RowId(row))? {
            letters.push(DeadLetter { id: DeadId { process, row }, app, dead });
        }
    }
    Ok(letters)
}

pub(crate) fn all(conn: &Connection) -> rusqlite::Result<Vec<RowId>> {
    let mut statement = conn.prepare_cached(sql::LIST_DEAD)?;
    let rows = statement.query_map([0], |row| row.get(0).map(RowId))?;
    rows.collect()
}
