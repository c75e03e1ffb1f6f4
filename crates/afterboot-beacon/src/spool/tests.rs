mod adopt;
mod age;
mod basics;
mod corrupt;
mod dead;
mod erase;
mod model;
mod offline;
#[cfg(unix)]
mod owner;
mod place;
mod process;
mod room;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::{
    Change, Durability, NewDead, NewRow, Put, Row, RowId, Spool, SpoolError, SpoolOptions, Stamp, Totals,
};
use crate::wire::{BatchWriter, Head, Priority, StreamId, encode_event, gzip};

const NOW: u64 = 1_700_000_000_000;
const NEVER: u64 = u64::MAX;

/// A folder of this test's alone, and the root in it.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("spool")
    }

    fn options(&self) -> SpoolOptions {
        SpoolOptions::new(self.root())
    }

    fn open(&self) -> Spool {
        Spool::open(&self.options(), "app").unwrap()
    }

    /// The spool of a process that wrote these rows and died.
    fn orphan(&self, rows: &[NewRow]) -> PathBuf {
        self.orphan_of("app", rows, &[])
    }

    fn orphan_of(&self, app: &str, rows: &[NewRow], dead: &[NewDead]) -> PathBuf {
        let mut spool = Spool::open(&self.options(), app).unwrap();
        put(&mut spool, rows);
        spool.put_dead(&[], dead, Durability::Process).unwrap();
        spool.home.dir().to_owned()
    }

    /// The directories of processes.
    fn processes(&self) -> Vec<PathBuf> {
        super::place::Root::existing(&self.root()).unwrap().processes().unwrap()
    }

    fn aside(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.root().join("aside")) else { return Vec::new() };
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| !path.to_string_lossy().ends_with("-wal"));
        files
    }
}

const fn stream(number: u8) -> StreamId {
    StreamId::from_bytes([number; 16])
}

/// How long the machine has been running, at `NOW`.
const UP: u64 = 1_000_000;

/// This moment by all clocks, none of which was set.
fn stamp(wall: u64) -> Stamp {
    Stamp { wall, mono: wall - NOW + UP, boot: "boot".into() }
}

/// A basic batch of one event of nobody's, the older the smaller its number.
fn row(seq: u64) -> NewRow {
    NewRow {
        stream: stream(1),
        first_seq: seq,
        last_seq: seq,
        priority: Priority::Basic,
        user: None,
        session: None,
        events: 1,
        newest_at: NOW + seq,
        expires_at: NEVER,
        until: None,
        boot: "boot".to_owned(),
        body: body(seq),
    }
}

fn of(user: &str, seq: u64) -> NewRow {
    NewRow { user: Some(user.to_owned()), ..row(seq) }
}

fn vital(seq: u64) -> NewRow {
    NewRow { priority: Priority::Vital, ..row(seq) }
}

fn letter(batch: NewRow) -> NewDead {
    NewDead { batch, at: NOW, reason: "too_old".to_owned(), status: Some(400), own: true }
}

/// What a batch of one event looks like.
fn body(seq: u64) -> Arc<[u8]> {
    let head = Head {
        app: "app".to_owned(),
        stream: stream(1),
        user: None,
        session: None,
        priority: Priority::Basic,
        gaps: Vec::new(),
        end: None,
    };
    let mut event = Vec::new();
    encode_event(&mut event, uuid::Uuid::from_u128(1), "page.view", NOW, 1, "hello").unwrap();
    let mut writer = BatchWriter::new(&head);
    writer.event(seq, &event);
    gzip(&writer.finish()).into()
}

/// A body of about this many bytes, which do not compress.
fn large(bytes: usize) -> Arc<[u8]> {
    let mut state = 88_172_645_463_325_252_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    })
    .take(bytes)
    .collect();
    gzip(&noise).into()
}

fn put(spool: &mut Spool, rows: &[NewRow]) -> super::Put {
    spool.put(rows, Durability::Process, &stamp(NOW)).unwrap()
}

fn list(spool: &mut Spool, user: Option<&str>) -> Vec<Row> {
    spool.list(user, &stamp(NOW), |_| false, usize::MAX).unwrap()
}

/// The first numbers of what is listed.
fn seqs(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| row.batch.first_seq).collect()
}

fn seqs_for(spool: &mut Spool, user: Option<&str>) -> Vec<u64> {
    seqs(&list(spool, user))
}

fn firsts(gone: &[super::Evicted]) -> Vec<u64> {
    gone.iter().map(|gone| gone.first_seq).collect()
}

/// What the file really holds.
fn recount(spool: &Spool) -> super::Totals {
    super::db::count(spool.db().unwrap().conn(), super::sql::COUNT).unwrap()
}

/// How far the last commit waited for the disk: 1 not at all, 2 until it is written.
fn level(spool: &Spool) -> i64 {
    let conn = spool.db().unwrap().conn();
    conn.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap()
}

/// Does any file under this folder hold the text?
fn holds(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => holds(&path, text),
            false => std::fs::read(&path).unwrap().windows(text.len()).any(|part| part == text.as_bytes()),
        }
    })
}

impl Spool {
    /// Writes a batch anew of which a part was settled.
    fn replace(
        &mut self,
        gone: &[RowId],
        rows: &[NewRow],
        durability: Durability,
        now: &Stamp,
    ) -> Result<Put, SpoolError> {
        self.change(Change { gone, rows, dead: &[] }, durability, now)
    }

    /// Sets batches aside, and deletes the rows that they came from.
    pub(crate) fn put_dead(
        &mut self,
        gone: &[RowId],
        dead: &[NewDead],
        durability: Durability,
    ) -> Result<Put, SpoolError> {
        self.change(Change { gone, rows: &[], dead }, durability, &Stamp::default())
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn count_dead(&self) -> Totals {
        self.dead
    }
}
