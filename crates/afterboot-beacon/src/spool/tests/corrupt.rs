use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use super::*;
use crate::spool::{MAX_ROW, sql};

/// Changes the file behind the back of whoever has it open.
fn damage(spool: &Spool, change: impl FnOnce(&std::fs::File, u64)) {
    let db = spool.db().unwrap();
    db.checkpoint();
    db.conn().execute_batch("PRAGMA shrink_memory").unwrap();
    damage_file(&spool.home.db(), change);
}

fn damage_file(path: &Path, change: impl FnOnce(&std::fs::File, u64)) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let bytes = file.metadata().unwrap().len();
    change(&file, bytes);
}

fn garbage_header(file: &std::fs::File, _: u64) {
    file.write_all_at(&[0x5a; 100], 0).unwrap();
}

fn cut_in_half(file: &std::fs::File, bytes: u64) {
    file.set_len(bytes / 2).unwrap();
}

fn inflated(body: &[u8]) -> Vec<u8> {
    crate::wire::gunzip(body, 1 << 20).unwrap()
}

fn hundred() -> Vec<NewRow> {
    (0..100).map(|seq| NewRow { body: large(5000), events: 2, ..row(seq) }).collect()
}

/// B14: set aside, counted, and the next batch is kept.
#[test]
fn a_file_that_turns_corrupt_is_set_aside_and_a_fresh_one_goes_on() {
    for change in [garbage_header, cut_in_half] {
        let place = Place::new();
        let mut spool = place.open();
        let old = put(&mut spool, &hundred()).ids;
        damage(&spool, change);
        let new = put(&mut spool, &[row(200)]).ids;
        assert_eq!(seqs_for(&mut spool, None), [200]);
        assert_eq!(spool.take_lost().events, 200);
        assert_eq!(spool.take_lost().events, 0);
        assert_eq!(spool.totals(), recount(&spool));
        assert_eq!(place.aside().len(), 1);
        assert!(new[0] > *old.last().unwrap(), "ids that are still held do not name new rows");
        spool.delete(&old).unwrap();
        assert_eq!(spool.totals().rows, 1);
    }
}

#[test]
fn every_operation_goes_on_after_a_corruption() {
    let operations: [fn(&mut Spool) -> bool; 7] = [
        |spool| spool.list(None, &stamp(NOW), |_| false, 9).is_ok(),
        |spool| spool.expire(&stamp(NOW)).is_ok(),
        |spool| spool.delete(&[super::super::RowId(50)]).is_ok(),
        |spool| spool.put_dead(&[], &[letter(row(1))], Durability::Process).is_ok(),
        |spool| spool.erase_user("u").is_ok(),
        |spool| spool.list_dead(None, 9).is_ok(),
        |spool| spool.adopt(None, &stamp(NOW), 9).failed.is_none(),
    ];
    for (index, operation) in operations.iter().enumerate() {
        let place = Place::new();
        let mut spool = place.open();
        put(&mut spool, &hundred());
        damage(&spool, cut_in_half);
        assert!(operation(&mut spool), "operation {index}");
        put(&mut spool, &[vital(300)]);
        let listed = list(&mut spool, None);
        assert_eq!(listed[0].batch.first_seq, 300, "operation {index}");
    }
}

#[test]
fn a_corrupt_orphan_is_set_aside_and_its_directory_goes() {
    for change in [garbage_header, cut_in_half] {
        let place = Place::new();
        let orphan = place.orphan(&hundred());
        damage_file(&orphan.join("spool.db"), change);
        place.orphan(&[row(500)]);
        let mut spool = place.open();
        let adopted = spool.adopt(None, &stamp(NOW), 1000);
        assert!(adopted.failed.is_none(), "{adopted:?}");
        assert!(adopted.unreadable > 0 || !adopted.damaged.is_empty());
        assert!(seqs_for(&mut spool, None).contains(&500), "the others are adopted all the same");
        assert!(!orphan.exists());
        assert_eq!(place.aside().len(), 1);
    }
}

#[test]
fn an_orphan_whose_file_is_empty_is_removed() {
    let place = Place::new();
    let orphan = place.orphan(&[row(1)]);
    damage_file(&orphan.join("spool.db"), |file, _| file.set_len(0).unwrap());
    let mut spool = place.open();
    assert_eq!(spool.adopt(None, &stamp(NOW), 1000).rows, 0);
    assert!(!orphan.exists());
}

#[test]
fn of_what_is_set_aside_the_newest_three_are_kept_within_the_byte_cap() {
    let place = Place::new();
    let mut spool = place.open();
    for seq in 0..5 {
        put(&mut spool, &[row(seq)]);
        damage(&spool, garbage_header);
    }
    put(&mut spool, &[row(9)]);
    assert_eq!(place.aside().len(), 3);
    assert_eq!(spool.take_lost().events, 5);

    let mut small = Spool::open(&place.options().max_bytes(1 << 19), "app").unwrap();
    put(&mut small, &[NewRow { body: large(200_000), ..row(1) }, NewRow { body: large(200_000), ..row(2) }]);
    damage(&small, garbage_header);
    put(&mut small, &[row(3)]);
    let bytes: u64 = place.aside().iter().map(|path| std::fs::metadata(path).unwrap().len()).sum();
    assert!(bytes <= 1 << 19, "{bytes}");
}

/// B14: whatever bytes change, nothing panics, nothing fails, and what is listed is what was put.
#[test]
fn flipped_bytes_in_the_middle_never_reach_the_caller() {
    let mut state = 12_345_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..40 {
        let place = Place::new();
        let mut spool = place.open();
        let rows = hundred();
        put(&mut spool, &rows);
        damage(&spool, |file, bytes| {
            for _ in 0..=round {
                let noise = u8::try_from(random(256)).unwrap();
                file.write_all_at(&[noise, !noise], 4096 + random(bytes - 4098)).unwrap();
            }
        });
        let listed = list(&mut spool, None);
        for row in &listed {
            // The head of a gzip body has bytes that say nothing.
            assert!(inflated(&row.batch.body) == inflated(&rows[0].body), "round {round}");
        }
        spool.expire(&stamp(NOW)).unwrap();
        spool.delete(&listed.iter().map(|row| row.id).collect::<Vec<_>>()).unwrap();
        put(&mut spool, &[vital(1000)]);
        assert!(seqs_for(&mut spool, None).contains(&1000), "round {round}");
    }
}

/// B14: bounded before allocation.
#[test]
fn a_row_that_makes_no_sense_is_deleted_and_counted() {
    let wrong = [
        "body = zeroblob(262145)",
        "body = zeroblob(900000)",
        "body = x'00'",
        "body = substr(body, 1, 20), bytes = 20",
        "bytes = bytes + 1",
        "events = -1",
        "events = 5000000000",
        "stream = x'00'",
        "first_seq = -1",
        "last_seq = 0",
        "boot = CAST(x'ff' AS TEXT)",
    ];
    for change in wrong {
        let place = Place::new();
        let mut spool = place.open();
        put(&mut spool, &[row(1), NewRow { events: 9, ..row(2) }, row(3)]);
        let update = format!("UPDATE batch SET {change} WHERE first_seq = 2");
        assert_eq!(spool.db().unwrap().conn().execute(&update, []).unwrap(), 1);
        assert_eq!(seqs_for(&mut spool, None), [1, 3], "{change}");
        assert_eq!(spool.take_lost().events, 9, "{change}");
        assert_eq!(spool.totals(), recount(&spool), "{change}");
        assert!(place.aside().is_empty(), "{change}");
    }
}

/// B14: it is the row's size that is looked at, before anything of the body is read.
#[test]
fn a_body_above_the_largest_is_not_read_even_where_it_is_sound() {
    let place = Place::new();
    let mut spool = place.open();
    put(&mut spool, &[row(1), row(2)]);
    let body = large(MAX_ROW - 4);
    assert!(body.len() > MAX_ROW && inflated(&body).len() < MAX_ROW);
    let conn = spool.db().unwrap().conn();
    let update = "UPDATE batch SET body = ?1, bytes = length(?1) WHERE first_seq = 2";
    conn.execute(update, [&body[..]]).unwrap();
    assert_eq!(seqs_for(&mut spool, None), [1]);
    assert_eq!(spool.take_lost().events, 1);
}

#[test]
fn a_row_of_an_orphan_that_makes_no_sense_is_deleted_and_counted() {
    let place = Place::new();
    let orphan = place.orphan(&[row(1), row(2)]);
    let conn = rusqlite::Connection::open(orphan.join("spool.db")).unwrap();
    conn.execute("UPDATE batch SET body = zeroblob(?1) WHERE first_seq = 2", [MAX_ROW as i64 + 1]).unwrap();
    drop(conn);
    let mut spool = place.open();
    let adopted = spool.adopt(None, &stamp(NOW), 1000);
    assert_eq!((adopted.rows, adopted.damaged.len()), (1, 1));
    assert!(!orphan.exists());
}

#[test]
fn a_table_that_is_missing_is_a_corrupt_file() {
    let place = Place::new();
    let mut spool = place.open();
    put(&mut spool, &[row(1)]);
    spool.db().unwrap().conn().execute_batch("DROP TABLE batch").unwrap();
    put(&mut spool, &[row(2)]);
    assert_eq!((spool.take_lost().events, seqs_for(&mut spool, None)), (1, vec![2]));
    assert_eq!(super::super::db::count(spool.db().unwrap().conn(), sql::COUNT_DEAD).unwrap().rows, 0);
}
