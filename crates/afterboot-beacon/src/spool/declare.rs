//! What a tool deletes has no beacon to declare it: it leaves a batch without events in its place, that says what is gone.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::{NewRow, Stamp, db, sql};
use crate::base::bounds::EXPIRY;
use crate::wire::{BatchWriter, Gap, Head, Priority, StreamId, gzip};

/// So many declarations one of them carries at most.
const GAPS: usize = 50;

/// The declarations of a user's batches, which are to be erased, by application.
pub(super) fn of_user(conn: &Connection, user: &str, now: &Stamp) -> rusqlite::Result<Vec<(String, NewRow)>> {
    let mut statement = conn.prepare_cached(sql::NUMBERS_OF_USER)?;
    let mut rows = statement.query([user])?;
    let mut streams: BTreeMap<(String, StreamId), Vec<Gap>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let stream = row.get_ref(1)?.as_blob().ok().and_then(|bytes| bytes.try_into().ok());
        let number = |index| row.get::<_, i64>(index).map(u64::try_from);
        // Numbers that make no sense declare nothing.
        let (Some(stream), Ok(first), Ok(last)) = (stream, number(2)?, number(3)?) else { continue };
        let stream = StreamId::from_bytes(stream);
        let gap = Gap { stream, first, last, why: "erased".to_owned() };
        streams.entry((row.get(0)?, stream)).or_default().push(gap);
    }
    let mut declarations = Vec::new();
    for ((app, stream), gaps) in streams {
        for gaps in gaps.chunks(GAPS) {
            declarations.push((app.clone(), declaration(&app, stream, gaps, now)));
        }
    }
    Ok(declarations)
}

/// It is anonymous: any process may send it.
fn declaration(app: &str, stream: StreamId, gaps: &[Gap], now: &Stamp) -> NewRow {
    let head = Head {
        app: app.to_owned(),
        stream,
        user: None,
        session: None,
        priority: Priority::Basic,
        gaps: gaps.to_vec(),
        end: None,
    };
    let life = u64::try_from(EXPIRY.as_millis()).unwrap_or(u64::MAX);
    NewRow {
        stream,
        first_seq: gaps.first().map_or(0, |gap| gap.first),
        last_seq: gaps.last().map_or(0, |gap| gap.last),
        priority: Priority::Basic,
        user: None,
        session: None,
        events: 0,
        newest_at: now.wall,
        expires_at: now.wall.saturating_add(life),
        until: Some(now.mono.saturating_add(life)),
        boot: now.boot.to_string(),
        body: gzip(&BatchWriter::new(&head).finish()).into(),
    }
}

pub(super) fn leave(
    conn: &Connection,
    declarations: &[(String, NewRow)],
    now: &Stamp,
) -> rusqlite::Result<()> {
    declarations.iter().try_for_each(|(app, row)| db::insert(conn, app, row, now).map(drop))
}
