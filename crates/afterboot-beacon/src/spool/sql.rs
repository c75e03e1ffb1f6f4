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

macro_rules! add_until {
    () => {
        concat!(
            "ALTER TABLE batch ADD COLUMN until_boot TEXT; ALTER TABLE batch ADD COLUMN until_mono INTEGER;",
            "CREATE INDEX batch_until ON batch (until_boot, until_mono);",
        )
    };
}

/// What a file of before these columns lacks. They may be null and no statement of before minds them, so the version
/// stays: either version of this crate reads what the other wrote.
pub(super) const ADD_UNTIL: &str = add_until!();
pub(super) const HAS_UNTIL: &str =
    "SELECT count(*) FROM pragma_table_info('batch') WHERE name = 'until_mono'";

pub(super) const SCHEMA: &str = concat!(
    table!("batch", ""),
    add_until!(),
    "CREATE INDEX batch_age ON batch (rank, newest_at);",
    "CREATE INDEX batch_expiry ON batch (expires_at);",
    table!("dead", " at INTEGER NOT NULL, reason TEXT NOT NULL, status INTEGER, own INTEGER NOT NULL,"),
    "PRAGMA user_version = 1;",
);

pub(super) const COUNT: &str =
    "SELECT count(*), coalesce(sum(events), 0), coalesce(sum(bytes), 0), 0 FROM batch";
pub(super) const COUNT_DEAD: &str =
    "SELECT count(*), coalesce(sum(events), 0), coalesce(sum(bytes), 0), coalesce(sum(events * own), 0)
    FROM dead";
pub(super) const OLDEST: &str = "SELECT min(newest_at) FROM batch";
pub(super) const ANY: &str = "SELECT EXISTS (SELECT 1 FROM batch) OR EXISTS (SELECT 1 FROM dead)";

pub(super) const INSERT: &str = concat!(
    "INSERT INTO batch (",
    columns!(),
    ", until_boot, until_mono) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    " ON CONFLICT (stream, first_seq, last_seq) DO NOTHING"
);
pub(super) const FIND: &str = "SELECT id FROM batch WHERE stream = ?1 AND first_seq = ?2 AND last_seq = ?3";
pub(super) const LIST: &str = concat!(
    "SELECT newest_at, id FROM batch WHERE user IS NULL AND rank = ?1 AND app = ?3",
    " AND (until_boot IS NOT ?4 OR until_mono > ?5)",
    " UNION ALL",
    " SELECT newest_at, id FROM batch WHERE user = ?2 AND rank = ?1 AND app = ?3",
    " AND (until_boot IS NOT ?4 OR until_mono > ?5)",
    " ORDER BY 1, 2"
);
// length() of a column needs only the row's header, so an absurd body is never read.
pub(super) const GET: &str = concat!(
    "SELECT ",
    "app, stream, first_seq, last_seq, rank, user, session, events, newest_at, expires_at, boot, bytes,",
    " CASE WHEN length(body) <= ?2 THEN body END, until_boot, until_mono FROM batch WHERE id = ?1"
);
pub(super) const DELETE: &str =
    "DELETE FROM batch WHERE id = ?1 RETURNING id, stream, first_seq, last_seq, events, bytes";
pub(super) const DELETE_QUIETLY: &str = "DELETE FROM batch WHERE id = ?1";
pub(super) const DELETE_DEAD_QUIETLY: &str = "DELETE FROM dead WHERE id = ?1";
/// What a row says of itself, its body apart.
pub(super) const NUMBERS: &str = "SELECT id, stream, first_seq, last_seq, events FROM batch WHERE id = ?1";
pub(super) const NUMBERS_OF_DEAD: &str =
    "SELECT id, stream, first_seq, last_seq, events FROM dead WHERE id = ?1";
pub(super) const NUMBERS_OF_USER: &str = "SELECT app, stream, first_seq, last_seq FROM batch WHERE user = ?1 AND events > 0 ORDER BY stream, first_seq";
/// From both ends, as a page in the middle may be what cannot be read.
pub(super) const ALL_NUMBERS: [&str; 2] = [
    "SELECT id, stream, first_seq, last_seq, events FROM batch WHERE app = ?1 ORDER BY id",
    "SELECT id, stream, first_seq, last_seq, events FROM batch WHERE app = ?1 ORDER BY id DESC",
];
pub(super) const EXPIRE: &str = "DELETE FROM batch WHERE until_boot = ?1 AND until_mono <= ?2 AND app = ?3
    RETURNING id, stream, first_seq, last_seq, events, bytes";
/// What was left before this start of the machine, by a wall clock that makes sense.
pub(super) const EXPIRE_BY_WALL: &str = "DELETE FROM batch WHERE until_boot IS NOT ?1 AND expires_at <= ?2
    AND newest_at >= ?3 AND app = ?4 RETURNING id, stream, first_seq, last_seq, events, bytes";
/// Where it makes none, it lives anew from now on.
pub(super) const LIVE_ANEW: &str = "UPDATE batch SET until_boot = ?1,
    until_mono = ?2 + max(0, min(expires_at - newest_at, 1 << 60))
    WHERE until_boot IS NOT ?1 AND (newest_at < ?3 OR newest_at > ?4) AND app = ?5";
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
    "DELETE FROM dead WHERE id = ?1 RETURNING id, stream, first_seq, last_seq, events, bytes, own";
pub(super) const OLDEST_DEAD: &str = "SELECT id, bytes FROM dead ORDER BY id";
pub(super) const ERASE_DEAD: &str = "DELETE FROM dead WHERE user = ?1 AND (?2 IS NULL OR app = ?2)
    RETURNING id, stream, first_seq, last_seq, events, bytes, own";

/// The statements that a batch meets on its way, which must cost the same whatever lies in the table.
#[cfg(test)]
pub(super) const ON_THE_WAY: [&str; 12] =
    [INSERT, FIND, LIST, GET, DELETE, EXPIRE, VICTIMS, ERASE, INSERT_DEAD, LIST_DEAD, GET_DEAD, DELETE_DEAD];
