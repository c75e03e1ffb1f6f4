//! What is left to say of a row or a file that makes no sense: how many events are gone, and under which numbers.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row as SqlRow, params};

use super::db::Db;
use super::place::Home;
use super::rows::{Evicted, Numbers, RowId, Why};
use super::sql;
use crate::wire::{MAX_EVENTS, StreamId};

/// No batch spans more numbers. What says so was changed itself, and a declaration of that many would hide other losses.
const MAX_SPAN: u64 = 1 << 20;

impl Evicted {
    /// None where its numbers make no sense, or there are none.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        let Evicted { stream, first_seq: first, last_seq: last, events, .. } = *self;
        (events > 0 && first <= last).then_some(Numbers { stream, first, last })
    }
}

/// What a row still says of itself, its body apart: one event at least is gone with it.
pub(super) fn remains(conn: &Connection, statement: &str, id: RowId) -> Evicted {
    let read = conn.prepare_cached(statement).and_then(|mut it| it.query_row([id.0], |row| Ok(says(row))));
    let read = read.ok().flatten();
    read.unwrap_or(Evicted { id, ..NOTHING })
}

const NOTHING: Evicted = Evicted {
    id: RowId(0),
    stream: StreamId::from_bytes([0; 16]),
    first_seq: 1,
    last_seq: 0,
    events: 1,
    own: false,
    why: Why::Corrupt,
};

fn says(row: &SqlRow<'_>) -> Option<Evicted> {
    let number = |index: usize| row.get::<_, i64>(index).ok().and_then(|number| u64::try_from(number).ok());
    let id = RowId(row.get(0).ok()?);
    let stream = row.get_ref(1).ok().and_then(|value| value.as_blob().ok()?.try_into().ok());
    let (first, last) = (number(2), number(3));
    let events = number(4).filter(|events| *events <= MAX_EVENTS as u64);
    let events = events.map_or(1, |events| u32::try_from(events).unwrap_or(1));
    Some(match (stream, first, last) {
        (Some(stream), Some(first), Some(last)) if first <= last && last - first < MAX_SPAN => Evicted {
            id,
            stream: StreamId::from_bytes(stream),
            first_seq: first,
            last_seq: last,
            events,
            ..NOTHING
        },
        _ => Evicted { id, events, ..NOTHING },
    })
}

/// What can still be read of the rows of an application in a file that is corrupt.
pub(super) fn salvage(home: &Home, app: &str) -> Vec<Evicted> {
    let mut found = BTreeMap::new();
    let Ok(db) = Db::open_read_only(&home.db()) else { return Vec::new() };
    for statement in sql::ALL_NUMBERS {
        let Ok(mut statement) = db.conn().prepare(statement) else { continue };
        let Ok(mut rows) = statement.query(params![app]) else { continue };
        while let Ok(Some(row)) = rows.next() {
            if let Some(gone) = says(row) {
                found.insert(gone.id, gone);
            }
        }
    }
    found.into_values().collect()
}
