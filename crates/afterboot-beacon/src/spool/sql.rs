//! Every statement, so that a test can show that none of those on the way of a batch walks a whole table.

pub(super) const VERSION: i64 = 1;

macro_rules! columns {
    () => {
        "app, stream, first_seq, last_seq, rank, user, session, events, newest_at, expires_at, boot, bytes, body"
    };
}

macro_rules! table {
    ($name:literal, $more:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (id INTEGER PRIMARY KEY AUTOINCREMENT,",
            " app TEXT NOT NULL, stream BLOB NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,",
            " rank INTEGER NOT NULL, user TEXT, session TEXT, events INTEGER NOT NULL,",
            " newest_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, boot TEXT NOT NULL,",
            " bytes INTEGER NOT NULL,",
            $more,
            " body BLOB NOT NULL) STRICT;",
            "CREATE UNIQUE INDEX ",
            $name,
            "_key ON ",
            $name,
            " (stream, first_seq, last_seq);",
            "CREATE INDEX ",
            $name,
            "_user ON ",
            $name,
            " (user, rank, newest_at);",
        )
    };
}

pub(super) const SCHEMA: &str = concat!(
    table!("batch", ""),
    "CREATE INDEX batch_age ON batch (rank, newest_at);",
    "CREATE INDEX batch_expiry ON batch (expires_at);",
    table!("dead", " at INTEGER NOT NULL, reason TEXT NOT NULL, status INTEGER, own INTEGER NOT NULL,"),
    "PRAGMA user_version = 1;",
);

pub(super) const COUNT: &str =
    "SELECT count(*), coalesce(sum(events), 0), coalesce(sum(bytes), 0) FROM batch";
pub(super) const COUNT_DEAD: &str =
    "SELECT count(*), coalesce(sum(events), 0), coalesce(sum(bytes), 0) FROM dead";
pub(super) const OLDEST: &str = "SELECT min(newest_at) FROM batch";
pub(super) const ANY: &str = "SELECT EXISTS (SELECT 1 FROM batch) OR EXISTS (SELECT 1 FROM dead)";

pub(super) const INSERT: &str = concat!(
    "INSERT INTO batch (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    " ON CONFLICT (stream, first_seq, last_seq) DO NOTHING"
);
pub(super) const FIND: &str = "SELECT id FROM batch WHERE stream = ?1 AND first_seq = ?2 AND last_seq = ?3";
pub(super) const LIST: &str = concat!(
    "SELECT newest_at, id FROM batch WHERE user IS NULL AND rank = ?1 AND expires_at > ?3 AND app = ?4",
    " UNION ALL",
    " SELECT newest_at, id FROM batch WHERE user = ?2 AND rank = ?1 AND expires_at > ?3 AND app = ?4",
    " ORDER BY 1, 2"
);
// length() of a column needs only the row's header, so an absurd body is never read.
pub(super) const GET: &str = concat!(
    "SELECT ",
    "app, stream, first_seq, last_seq, rank, user, session, events, newest_at, expires_at, boot, bytes,",
    " CASE WHEN length(body) <= ?2 THEN body END FROM batch WHERE id = ?1"
);
pub(super) const DELETE: &str =
    "DELETE FROM batch WHERE id = ?1 RETURNING id, stream, first_seq, last_seq, events, bytes";
pub(super) const DELETE_QUIETLY: &str = "DELETE FROM batch WHERE id = ?1";
pub(super) const EXPIRE: &str = "DELETE FROM batch WHERE expires_at <= ?1 AND app = ?2
    RETURNING id, stream, first_seq, last_seq, events, bytes";
pub(super) const VICTIMS: &str = "SELECT id, bytes FROM batch WHERE rank = ?1 ORDER BY newest_at, id";
pub(super) const ERASE: &str = "DELETE FROM batch WHERE user = ?1 AND (?2 IS NULL OR app = ?2)
    RETURNING id, stream, first_seq, last_seq, events, bytes";

pub(super) const INSERT_DEAD: &str = concat!(
    "INSERT INTO dead (",
    columns!(),
    ", at, reason, status, own) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    " ON CONFLICT (stream, first_seq, last_seq) DO NOTHING"
);
pub(super) const LIST_DEAD: &str = "SELECT id FROM dead WHERE id > ?1 ORDER BY id";
pub(super) const LIST_DEAD_OF_APP: &str = "SELECT id FROM dead WHERE app = ?1 ORDER BY id LIMIT ?2";
pub(super) const GET_DEAD: &str = concat!(
    "SELECT ",
    "app, stream, first_seq, last_seq, rank, user, session, events, newest_at, expires_at, boot, bytes,",
    " CASE WHEN length(body) <= ?2 THEN body END, at, reason, status, own FROM dead WHERE id = ?1"
);
pub(super) const DELETE_DEAD: &str =
    "DELETE FROM dead WHERE id = ?1 RETURNING id, stream, first_seq, last_seq, events, bytes";
pub(super) const OLDEST_DEAD: &str = "SELECT id, bytes FROM dead ORDER BY id";
pub(super) const ERASE_DEAD: &str = "DELETE FROM dead WHERE user = ?1 AND (?2 IS NULL OR app = ?2)
    RETURNING id, stream, first_seq, last_seq, events, bytes";

/// The statements that a batch meets on its way, which must cost the same whatever lies in the table.
#[cfg(test)]
pub(super) const ON_THE_WAY: [&str; 12] =
    [INSERT, FIND, LIST, GET, DELETE, EXPIRE, VICTIMS, ERASE, INSERT_DEAD, LIST_DEAD, GET_DEAD, DELETE_DEAD];
