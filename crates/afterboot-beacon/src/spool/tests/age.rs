//! How old a row is, whatever the wall clock was set to.

use super::*;
use crate::spool::{Adopted, Evicted};

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// A batch posted now, that is worth something for a day.
fn posted(seq: u64, now: &Stamp) -> NewRow {
    NewRow { newest_at: now.wall, expires_at: now.wall + DAY, until: Some(now.mono + DAY), ..row(seq) }
}

/// What a process leaves that dies at this moment.
fn left(place: &Place, rows: &[NewRow], now: &Stamp) {
    place.open().put(rows, Durability::Process, now).unwrap();
}

fn later(now: &Stamp, by: u64) -> Stamp {
    Stamp { mono: now.mono + by, wall: now.wall + by, ..now.clone() }
}

/// Another start of the machine, which is up for a minute.
fn restarted(wall: u64) -> Stamp {
    Stamp { wall, mono: 60_000, boot: "another boot".into() }
}

fn adopt(place: &Place, now: &Stamp) -> (Vec<u64>, Adopted) {
    let mut spool = place.open();
    let adopted = spool.adopt(None, now, 100);
    assert!(adopted.failed.is_none(), "{adopted:?}");
    let listed = spool.list(None, now, |_| false, 100).unwrap();
    let rows: Vec<RowId> = listed.iter().map(|row| row.id).collect();
    spool.delete(&rows).unwrap();
    spool.close().unwrap();
    (seqs(&listed), adopted)
}

/// B29: the clock was two days behind, or never set, and is right now.
#[test]
fn rows_of_this_start_of_the_machine_are_as_old_as_its_clock_says() {
    for wall in [NOW - 2 * DAY, 5_000, NOW + 900 * DAY] {
        let place = Place::new();
        let before = Stamp { wall, ..stamp(NOW) };
        left(&place, &[posted(1, &before)], &before);
        let set = Stamp { mono: before.mono + DAY - 1, ..stamp(NOW) };
        assert_eq!(adopt(&place, &set).0, [1], "posted at {wall}");

        left(&place, &[posted(2, &before), posted(3, &before)], &before);
        let (rows, adopted) = adopt(&place, &Stamp { mono: before.mono + DAY, ..stamp(NOW) });
        assert_eq!((rows, firsts(&adopted.expired)), (vec![], vec![2, 3]), "posted at {wall}");
        assert!(place.processes().is_empty());
    }
}

/// B29: in a spool that lives, too.
#[test]
fn a_living_spools_rows_expire_by_the_machines_clock() {
    let place = Place::new();
    let mut spool = place.open();
    let before = Stamp { wall: 5_000, ..stamp(NOW) };
    spool.put(&[posted(1, &before)], Durability::Process, &before).unwrap();
    let almost = Stamp { mono: before.mono + DAY - 1, ..stamp(NOW) };
    assert!(spool.expire(&almost).unwrap().is_empty());
    assert_eq!(seqs(&spool.list(None, &almost, |_| false, 9).unwrap()), [1]);
    let over = Stamp { mono: before.mono + DAY, wall: 5_000, ..stamp(NOW) };
    assert!(spool.list(None, &over, |_| false, 9).unwrap().is_empty());
    assert_eq!(firsts(&spool.expire(&over).unwrap()), [1]);
}

/// B29: after a restart the wall clock is all there is, and it is believed where it makes sense.
#[test]
fn rows_of_an_earlier_start_are_as_old_as_a_wall_clock_that_makes_sense_says() {
    let (place, before) = (Place::new(), stamp(NOW));
    left(&place, &[posted(1, &before)], &before);
    assert_eq!(adopt(&place, &restarted(NOW + DAY - 1)).0, [1]);
    left(&place, &[posted(2, &before)], &before);
    let (rows, adopted) = adopt(&place, &restarted(NOW + DAY));
    assert_eq!((rows, firsts(&adopted.expired)), (vec![], vec![2]));
}

/// What is adopted keeps the rest of its life, and no more.
#[test]
fn an_adopted_row_goes_on_living_where_it_was() {
    let (place, before) = (Place::new(), stamp(NOW));
    left(&place, &[posted(1, &before), NewRow { until: None, ..posted(2, &before) }], &before);
    let now = restarted(NOW + 20 * HOUR);
    let mut spool = place.open();
    assert_eq!(spool.adopt(None, &now, 9).rows, 2);
    assert!(spool.expire(&later(&now, 4 * HOUR - 1)).unwrap().is_empty());
    assert_eq!(firsts(&spool.expire(&later(&now, 4 * HOUR)).unwrap()), [1, 2]);
}

/// B29: nobody can say how old they are: they live once more as long as they were to live, and then they go.
#[test]
fn rows_with_stamps_that_make_no_sense_live_anew_once_and_not_for_ever() {
    for wall in [5_000, NOW + 900 * DAY] {
        let place = Place::new();
        let before = Stamp { wall, ..stamp(NOW) };
        let others = NewRow { user: Some("b".to_owned()), ..posted(2, &before) };
        left(&place, &[posted(1, &before), others], &before);
        let now = restarted(NOW);
        assert_eq!(adopt(&place, &now).0, [1], "posted at {wall}");
        assert_eq!(place.processes().len(), 1, "the other one's row waits for its user");
        assert!(adopt(&place, &later(&now, DAY - 1)).1.expired.is_empty());
        let gone: Vec<Evicted> = adopt(&place, &later(&now, DAY)).1.expired;
        assert_eq!(firsts(&gone), [2], "posted at {wall}");
        assert!(place.processes().is_empty());
    }
}

/// B29: a clock that is not set yet says nothing of what was before.
#[test]
fn nothing_expires_by_a_clock_that_is_not_set_yet() {
    let (place, before) = (Place::new(), stamp(NOW));
    let others = NewRow { user: Some("b".to_owned()), ..posted(2, &before) };
    left(&place, &[posted(1, &before), others], &before);
    let (rows, adopted) = adopt(&place, &restarted(5_000));
    assert_eq!((rows, adopted.expired.len()), (vec![1], 0));
    let (_, adopted) = adopt(&place, &Stamp { wall: NOW + DAY, ..restarted(0) });
    assert_eq!(firsts(&adopted.expired), [2], "the clock is set");
}

/// The file of a version that knew nothing of this.
fn as_before(place: &Place) {
    for dir in place.processes() {
        let conn = rusqlite::Connection::open(dir.join("spool.db")).unwrap();
        let drop = "DROP INDEX batch_until; ALTER TABLE batch DROP COLUMN until_boot;
            ALTER TABLE batch DROP COLUMN until_mono;";
        conn.execute_batch(drop).unwrap();
    }
}

/// B15: what an older version of this crate left is taken over as ever.
#[test]
fn the_file_of_an_older_version_is_read() {
    let (place, now) = (Place::new(), stamp(NOW));
    left(&place, &[posted(1, &now), posted(2, &Stamp { wall: NOW - 2 * DAY, ..now.clone() })], &now);
    as_before(&place);
    let orphan = rusqlite::Connection::open(place.processes()[0].join("spool.db")).unwrap();
    let version: i64 = orphan.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    drop(orphan);
    assert_eq!(version, 1, "the older one reads what this one wrote");
    let (rows, adopted) = adopt(&place, &later(&now, HOUR));
    assert_eq!((rows, firsts(&adopted.expired)), (vec![1], vec![2]));
    assert!(place.processes().is_empty());
}

/// Its statements, as it had them.
#[test]
fn an_older_version_can_read_and_write_this_ones_file() {
    let (place, now) = (Place::new(), stamp(NOW));
    left(&place, &[posted(1, &now)], &now);
    let conn = rusqlite::Connection::open(place.processes()[0].join("spool.db")).unwrap();
    let columns = "stream, last_seq, rank, user, session, events, newest_at, expires_at, boot, bytes, body";
    let copy = format!(
        "INSERT INTO batch (app, first_seq, {columns}) SELECT app, 0, {columns} FROM batch WHERE first_seq = 1"
    );
    assert_eq!(conn.execute(&copy, []).unwrap(), 1);
    let gone = "DELETE FROM batch WHERE expires_at <= ?1 AND app = 'app' RETURNING id";
    assert!(!conn.prepare(gone).unwrap().exists([NOW as i64]).unwrap());
    drop(conn);
    assert_eq!(adopt(&place, &later(&now, HOUR)).0, [1, 0]);
}

#[test]
fn a_replayed_letter_lives_by_the_machines_clock_too() {
    let place = Place::new();
    let mut spool = place.open();
    let now = Stamp { wall: 5_000, ..stamp(NOW) };
    spool.put_dead(&[], &[letter(posted(1, &now))], Durability::Process).unwrap();
    let id = spool.list_dead(None, 1).unwrap()[0].id();
    spool.replay_dead(&[id], &now).unwrap();
    let set = |after| Stamp { mono: now.mono + after, ..stamp(NOW) };
    assert!(spool.expire(&set(DAY - 1)).unwrap().is_empty());
    assert_eq!(firsts(&spool.expire(&set(DAY)).unwrap()), [1]);
}
