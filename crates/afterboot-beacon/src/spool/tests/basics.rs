use super::*;
use crate::spool::{Change, MAX_ROW, RowId, Totals, sql};

#[test]
fn what_was_put_is_listed_as_it_was() {
    let place = Place::new();
    let mut spool = place.open();
    let full = NewRow {
        stream: StreamId::from_bytes(*b"0123456789abcdef"),
        first_seq: 7,
        last_seq: 106,
        priority: Priority::Vital,
        user: Some("u1".to_owned()),
        session: Some("s1".to_owned()),
        events: 99,
        newest_at: 5,
        expires_at: NOW + 1,
        until: None,
        boot: "b".to_owned(),
        body: large(MAX_ROW - 2000),
    };
    let ids = put(&mut spool, &[full.clone(), row(1)]).ids;
    let listed = list(&mut spool, Some("u1"));
    assert_eq!(listed.iter().map(|row| row.id).collect::<Vec<_>>(), ids);
    assert_eq!(listed[0].batch, full);
    assert_eq!(listed[1].batch, NewRow { expires_at: i64::MAX as u64, ..row(1) });
}

#[test]
fn vital_comes_before_basic_and_the_oldest_first() {
    let place = Place::new();
    let mut spool = place.open();
    put(&mut spool, &[row(3), vital(9), of("u", 2), vital(8), row(1)]);
    assert_eq!(seqs_for(&mut spool, Some("u")), [8, 9, 1, 2, 3]);
    let first = spool.list(Some("u"), &stamp(NOW), |_| false, 3).unwrap();
    assert_eq!(seqs(&first), [8, 9, 1]);
    let skipped = |id| first.iter().any(|row| row.id == id);
    assert_eq!(seqs(&spool.list(Some("u"), &stamp(NOW), skipped, 3).unwrap()), [2, 3]);
}

/// B18: a batch is listed for its own user, or for anybody where it has none.
#[test]
fn a_batch_of_another_user_is_not_listed() {
    let place = Place::new();
    let mut spool = place.open();
    put(&mut spool, &[of("a", 1), of("b", 2), row(3)]);
    assert_eq!(seqs_for(&mut spool, Some("a")), [1, 3]);
    assert_eq!(seqs_for(&mut spool, Some("b")), [2, 3]);
    assert_eq!(seqs_for(&mut spool, None), [3]);
    assert_eq!(seqs_for(&mut spool, Some("")), [3]);
}

#[test]
fn what_has_expired_is_not_listed_and_is_deleted_when_asked() {
    let place = Place::new();
    let mut spool = place.open();
    let at = |expires_at, seq| NewRow { expires_at, ..row(seq) };
    put(&mut spool, &[at(NOW, 1), at(NOW + 1, 2), at(NOW - 1, 3)]);
    assert_eq!(seqs_for(&mut spool, None), [2]);
    let mut gone = firsts(&spool.expire(&stamp(NOW)).unwrap());
    gone.sort_unstable();
    assert_eq!(gone, [1, 3]);
    assert_eq!(spool.totals().rows, 1);
}

#[test]
fn a_key_that_is_there_already_is_the_same_row() {
    let place = Place::new();
    let mut spool = place.open();
    let first = put(&mut spool, &[row(1)]);
    let again = put(&mut spool, &[row(2), NewRow { events: 50, ..row(1) }]);
    assert_eq!(again.ids[1], first.ids[0]);
    assert_eq!(again.added.rows, 1);
    assert_eq!(spool.totals(), recount(&spool));
    assert_eq!(spool.totals().events, 2);
    assert!(again.evicted.is_empty());
}

#[test]
fn a_partly_settled_batch_is_replaced_in_one_step() {
    let place = Place::new();
    let mut spool = place.open();
    let whole = NewRow { last_seq: 99, events: 100, ..row(0) };
    let gone = put(&mut spool, std::slice::from_ref(&whole)).ids;
    // The first and the last are left: the new row has the old one's key.
    let left = NewRow { events: 2, ..whole };
    let ids =
        spool.replace(&gone, std::slice::from_ref(&left), Durability::Process, &stamp(NOW)).unwrap().ids;
    assert_ne!(ids, gone);
    assert_eq!(list(&mut spool, None)[0].batch.events, 2);
    assert_eq!(spool.totals().events, 2);
}

#[test]
fn totals_are_of_rows_events_and_bodies() {
    let place = Place::new();
    let mut spool = place.open();
    let rows = [NewRow { events: 5, ..row(1) }, NewRow { events: 0, ..row(2) }];
    let bytes = rows.iter().map(|row| row.body.len() as u64).sum();
    let ids = put(&mut spool, &rows).ids;
    assert_eq!(spool.totals(), Totals { rows: 2, events: 5, bytes, own: 0 });
    spool.delete(&[ids[0], RowId(999), ids[0]]).unwrap();
    assert_eq!(spool.totals(), Totals { rows: 1, events: 0, bytes: rows[1].body.len() as u64, own: 0 });
    assert_eq!(spool.totals(), recount(&spool));
}

#[test]
fn a_body_above_the_largest_is_refused_and_nothing_is_written() {
    let place = Place::new();
    let mut spool = place.open();
    let body: Arc<[u8]> = vec![0; MAX_ROW + 1].into();
    let error =
        spool.put(&[row(1), NewRow { body, ..row(2) }], Durability::Process, &stamp(NOW)).unwrap_err();
    assert_eq!(error.to_string(), "a batch has 262145 bytes compressed: at most 262144 are allowed");
    assert!(!error.is_full() && !error.is_corrupt());
    assert_eq!(recount(&spool).rows, 0);
}

#[test]
fn every_durability_is_kept_when_the_file_is_read_again() {
    let place = Place::new();
    for (seq, durability) in [Durability::Buffered, Durability::Process, Durability::Power].iter().enumerate()
    {
        let mut spool = place.open();
        spool.put(&[row(seq as u64)], *durability, &stamp(NOW)).unwrap();
    }
    let mut spool = place.open();
    assert_eq!(spool.adopt(None, &stamp(NOW), 100).rows, 3);
    assert_eq!(seqs_for(&mut spool, None), [0, 1, 2]);
}

/// B1: a commit that has to survive a power cut waits for the disk, and the others do not.
#[test]
fn only_power_waits_for_the_disk() {
    let place = Place::new();
    let mut spool = place.open();
    spool.put(&[row(1)], Durability::Power, &stamp(NOW)).unwrap();
    assert_eq!(level(&spool), 2);
    spool.put(&[row(2)], Durability::Process, &stamp(NOW)).unwrap();
    assert_eq!(level(&spool), 1);
    let conn = spool.db().unwrap().conn();
    let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

/// B7: what a batch costs does not depend on what lies there already.
#[test]
fn no_statement_on_the_way_of_a_batch_walks_a_table() {
    let place = Place::new();
    let spool = place.open();
    let conn = spool.db().unwrap().conn();
    for statement in sql::ON_THE_WAY {
        let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let args = vec![rusqlite::types::Null; plan.parameter_count()];
        let steps = plan.query_map(rusqlite::params_from_iter(args), |row| row.get::<_, String>(3)).unwrap();
        for step in steps.map(Result::unwrap) {
            assert!(!step.starts_with("SCAN") && !step.contains("TEMP B-TREE"), "{step}: {statement}");
        }
    }
}

#[test]
fn closing_removes_a_directory_that_holds_nothing() {
    let place = Place::new();
    let mut spool = place.open();
    let ids = put(&mut spool, &[row(1)]).ids;
    spool.delete(&ids).unwrap();
    spool.close().unwrap();
    assert!(place.processes().is_empty());
}

#[test]
fn closing_keeps_what_is_left_in_one_file() {
    let place = Place::new();
    let mut spool = place.open();
    put(&mut spool, &[row(1)]);
    spool.close().unwrap();
    let mut dead = place.open();
    dead.put_dead(&[], &[letter(row(2))], Durability::Process).unwrap();
    dead.close().unwrap();
    let dirs = place.processes();
    assert_eq!(dirs.len(), 2);
    for dir in dirs {
        let mut names: Vec<_> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["lock", "spool.db"]);
    }
}

#[test]
fn a_change_that_fails_changes_nothing() {
    let place = Place::new();
    let mut spool = place.open();
    let ids = put(&mut spool, &[row(1)]).ids;
    let before = spool.totals();
    let broken = NewRow { body: large(MAX_ROW), ..row(3) };
    let change = Change { gone: &ids, rows: &[row(2), broken], dead: &[letter(row(4))] };
    spool.change(change, Durability::Process, &stamp(NOW)).unwrap_err();
    assert_eq!(seqs_for(&mut spool, None), [1]);
    assert_eq!((spool.totals(), spool.count_dead().rows), (before, 0));
}

#[test]
fn options_that_make_no_sense_are_named() {
    let place = Place::new();
    let said = |options: SpoolOptions| options.check().unwrap_err().to_string();
    assert_eq!(said(SpoolOptions::new("")), "spool dir is \"\": a path is allowed");
    assert_eq!(
        said(place.options().max_bytes(1)),
        "spool max_bytes is 1: 524288 (512 KiB) to 1 TiB is allowed"
    );
    assert_eq!(
        said(place.options().max_dead_letters(0)),
        "spool max_dead_letters is 0: 1 or more is allowed"
    );
    assert!(place.options().check().is_ok());
}
