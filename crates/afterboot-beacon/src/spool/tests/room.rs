use super::*;
use crate::spool::{Change, Why};

// Three rows of this size fit into the smallest spool, a fourth does not.
const SIZE: usize = 150_000;

fn small(place: &Place) -> Spool {
    Spool::open(&place.options().max_bytes(1 << 19), "app").unwrap()
}

fn big(row: NewRow) -> NewRow {
    NewRow { body: large(SIZE), ..row }
}

/// B20: what has expired goes first, then basic batches, then vital ones, the oldest first.
#[test]
fn expired_goes_before_basic_before_vital() {
    let place = Place::new();
    let mut spool = small(&place);
    put(&mut spool, &[big(vital(1)), big(row(2)), big(NewRow { expires_at: NOW, ..vital(3) })]);
    let evicted = put(&mut spool, &[big(vital(4))]).evicted;
    assert_eq!((firsts(&evicted), evicted[0].why), (vec![3], Why::Expired));
    let evicted = put(&mut spool, &[big(vital(5))]).evicted;
    assert_eq!((firsts(&evicted), evicted[0].why), (vec![2], Why::Room));
    let evicted = put(&mut spool, &[big(vital(6)), big(vital(7))]).evicted;
    assert_eq!(firsts(&evicted), [1, 4]);
    assert_eq!(seqs_for(&mut spool, None), [5, 6, 7]);
    assert_eq!(spool.totals(), recount(&spool));
}

/// B20: vital outlives basic, also where the basic one is the newer.
#[test]
fn a_basic_batch_never_takes_the_place_of_a_vital_one() {
    let place = Place::new();
    let mut spool = small(&place);
    put(&mut spool, &[big(vital(1)), big(vital(2)), big(vital(3))]);
    let done = put(&mut spool, &[big(row(4))]);
    assert_eq!(firsts(&done.evicted), [4]);
    assert_eq!(done.evicted[0].id, done.ids[0]);
    assert_eq!(seqs_for(&mut spool, None), [1, 2, 3]);
}

#[test]
fn the_oldest_is_what_was_posted_first_not_what_was_put_first() {
    let place = Place::new();
    let mut spool = small(&place);
    put(&mut spool, &[big(row(7)), big(row(5)), big(row(6))]);
    assert_eq!(firsts(&put(&mut spool, &[big(row(8))]).evicted), [5]);
}

#[test]
fn nothing_is_evicted_while_there_is_room() {
    let place = Place::new();
    let mut spool = small(&place);
    let expired = big(NewRow { expires_at: NOW - 1, ..row(1) });
    assert!(put(&mut spool, &[expired, big(row(2)), big(row(3))]).evicted.is_empty());
    assert_eq!(spool.totals().rows, 3);
}

#[test]
fn many_small_batches_stay_within_the_pages_of_the_file() {
    let place = Place::new();
    let mut spool = small(&place);
    for round in 0..60 {
        let rows: Vec<_> = (0..50).map(|seq| of("somebody", round * 50 + seq)).collect();
        put(&mut spool, &rows);
    }
    assert!(spool.totals().rows < 3000, "the cap was reached");
    assert_eq!(spool.totals(), recount(&spool));
    let bytes = std::fs::metadata(spool.home.db()).unwrap().len();
    assert!(bytes < 3 << 19, "{bytes} bytes on disk");
}

fn pages(spool: &Spool) -> u32 {
    spool.db().unwrap().conn().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap()
}

/// A disk that is full is no corruption: nothing is lost, and it goes on when there is room.
#[test]
fn a_full_disk_is_told_apart_and_the_spool_goes_on() {
    let place = Place::new();
    let mut spool = place.open();
    let ids = put(&mut spool, &[big(row(1)), big(row(2))]).ids;
    let held = spool.db().unwrap().limit_pages(pages(&spool)).unwrap();
    assert_eq!(held, pages(&spool));
    let before = spool.totals();

    let error = spool.put(&[big(row(3))], Durability::Process, &stamp(NOW)).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(error.to_string().contains("full"), "{error}");
    assert_eq!(spool.totals(), before);
    assert_eq!(seqs_for(&mut spool, None), [1, 2]);
    assert_eq!(spool.take_lost().events, 0);

    spool.delete(&ids[..1]).unwrap();
    put(&mut spool, &[big(row(4))]);
    assert!(spool.put(&[big(row(5))], Durability::Power, &stamp(NOW)).unwrap_err().is_full());
    spool.db().unwrap().limit_pages(10_000).unwrap();
    put(&mut spool, &[big(row(5))]);
    assert_eq!(seqs_for(&mut spool, None), [2, 4, 5]);
    assert_eq!(spool.totals(), recount(&spool));
}

#[test]
fn the_pages_of_the_file_are_bounded_by_the_byte_cap() {
    let place = Place::new();
    let spool = small(&place);
    assert_eq!(spool.db().unwrap().limit_pages(0).unwrap(), (1 << 19) / 2 * 5 / 4096 + 256);
}

#[test]
fn a_change_that_hits_a_full_disk_changes_nothing() {
    let place = Place::new();
    let mut spool = place.open();
    let ids = put(&mut spool, &[row(1)]).ids;
    spool.db().unwrap().limit_pages(pages(&spool)).unwrap();
    let change = Change { gone: &ids, rows: &[big(row(2))], dead: &[letter(row(3))] };
    assert!(spool.change(change, Durability::Process, &stamp(NOW)).unwrap_err().is_full());
    assert_eq!(seqs_for(&mut spool, None), [1]);
    assert_eq!(spool.count_dead().rows, 0);
}

#[test]
fn errors_of_the_system_for_want_of_room_are_known() {
    let full = |kind| {
        let error = std::io::Error::from(kind);
        crate::spool::SpoolError::io("make", Path::new("x"), error).is_full()
    };
    assert!(full(std::io::ErrorKind::StorageFull) && full(std::io::ErrorKind::QuotaExceeded));
    assert!(!full(std::io::ErrorKind::PermissionDenied));
    let sql = |code| {
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        crate::spool::SpoolError::sql("write to", error)
    };
    assert!(sql(rusqlite::ffi::SQLITE_FULL).is_full());
    assert!(sql(rusqlite::ffi::SQLITE_IOERR_WRITE).is_full());
    assert!(!sql(rusqlite::ffi::SQLITE_IOERR_READ).is_full());
    assert!(!sql(rusqlite::ffi::SQLITE_CORRUPT).is_full());
    assert!(!sql(rusqlite::ffi::SQLITE_FULL).is_corrupt());
}
