use std::fs;

use super::*;
use crate::spool::Adopted;

fn adopt(spool: &mut Spool, user: Option<&str>) -> Adopted {
    let adopted = spool.adopt(user, &stamp(NOW), 1000);
    assert!(adopted.failed.is_none(), "{adopted:?}");
    adopted
}

/// B18: never under another user, never with another application's token.
#[test]
fn only_this_users_and_nobodys_rows_of_this_application_are_adopted() {
    let place = Place::new();
    place.orphan(&[of("a", 1), of("b", 2), row(3), NewRow { events: 7, ..of("a", 4) }]);
    place.orphan_of("other", &[NewRow { stream: stream(2), ..row(9) }], &[]);
    let mut spool = place.open();
    let adopted = adopt(&mut spool, Some("a"));
    assert_eq!((adopted.rows, adopted.events), (3, 9));
    assert_eq!(seqs_for(&mut spool, Some("a")), [1, 3, 4]);
    assert_eq!(seqs_for(&mut spool, Some("b")), [3]);
    assert_eq!(place.processes().len(), 3, "what is not ours stays where it is");
    let adopted = adopt(&mut spool, Some("b"));
    assert_eq!(adopted.rows, 1);
    assert_eq!(place.processes().len(), 2, "a directory that holds nothing any more is removed");
    assert_eq!(adopt(&mut spool, Some("b")).rows, 0);
}

#[test]
fn what_expired_in_an_orphan_is_deleted_and_told() {
    let place = Place::new();
    place.orphan(&[NewRow { expires_at: NOW, events: 3, ..of("b", 1) }, row(2)]);
    place.orphan_of("other", &[NewRow { expires_at: NOW, ..row(5) }], &[]);
    let mut spool = place.open();
    let adopted = adopt(&mut spool, Some("a"));
    assert_eq!((adopted.rows, adopted.events), (1, 1));
    assert_eq!(firsts(&adopted.expired), [1]);
    assert_eq!(adopted.expired[0].events, 3);
    assert_eq!(place.processes().len(), 2, "another application counts its own");
}

/// B15: a lock that is held says that the process lives, whatever else the directory looks like.
#[test]
fn the_directory_of_a_living_spool_is_left_alone() {
    let place = Place::new();
    let mut living = place.open();
    put(&mut living, &[row(1)]);
    let mut spool = place.open();
    assert_eq!(adopt(&mut spool, None).rows, 0);
    assert_eq!(seqs_for(&mut living, None), [1]);
    drop(living);
    assert_eq!(adopt(&mut spool, None).rows, 1);
}

#[test]
fn an_adoption_stops_at_the_limit_and_says_that_there_is_more() {
    let place = Place::new();
    place.orphan(&(0..120).map(row).collect::<Vec<_>>());
    let mut spool = place.open();
    let mut seen = Vec::new();
    loop {
        let adopted = spool.adopt(None, &stamp(NOW), 70);
        seen.push(adopted.rows);
        if !adopted.more {
            break;
        }
    }
    assert_eq!(seen, [70, 50]);
    assert_eq!(seqs_for(&mut spool, None), (0..120).collect::<Vec<_>>());
}

/// B15: the row is committed here before it is deleted there, and its numbers make the copy known.
#[test]
fn a_crash_between_the_two_commits_leaves_one_row_after_the_next_adoption() {
    let place = Place::new();
    let orphan = place.orphan(&[row(1), row(2)]);
    let saved = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(&orphan).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, saved.path().join(path.file_name().unwrap())).unwrap();
    }
    let mut crashed = place.open();
    assert_eq!(adopt(&mut crashed, None).rows, 2);
    drop(crashed);
    fs::create_dir(&orphan).unwrap();
    for entry in fs::read_dir(saved.path()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, orphan.join(path.file_name().unwrap())).unwrap();
    }
    assert_eq!(place.processes().len(), 2);

    let mut spool = place.open();
    let adopted = adopt(&mut spool, None);
    assert_eq!((adopted.rows, adopted.events), (2, 2));
    assert_eq!(seqs_for(&mut spool, None), [1, 2]);
    assert_eq!(spool.totals(), recount(&spool));
    assert_eq!(place.processes().len(), 1);
}

/// B15: a power cut must not keep the deletion there and lose the addition here.
#[test]
fn what_is_adopted_is_on_the_disk_before_it_is_deleted() {
    let place = Place::new();
    let mut spool = place.open();
    place.orphan(&[row(1)]);
    put(&mut spool, &[row(9)]);
    assert_eq!(level(&spool), 1);
    adopt(&mut spool, None);
    assert_eq!(level(&spool), 2);
    put(&mut spool, &[row(10)]);
    place.orphan_of("app", &[], &[letter(row(2))]);
    adopt(&mut spool, None);
    assert_eq!(level(&spool), 2);
}

#[test]
fn dead_letters_come_along_whoevers_they_are() {
    let place = Place::new();
    place.orphan_of("app", &[], &[letter(of("b", 1)), letter(row(2))]);
    place.orphan_of("other", &[], &[letter(NewRow { stream: stream(2), ..row(3) })]);
    let mut spool = place.open();
    let adopted = adopt(&mut spool, Some("a"));
    assert_eq!((adopted.rows, adopted.dead), (0, 2));
    assert_eq!(spool.count_dead().rows, 2);
    assert_eq!(seqs_for(&mut spool, Some("b")), [] as [u64; 0]);
    let letters = spool.list_dead(None, 10).unwrap();
    assert!(letters.iter().all(|letter| !letter.dead.own));
    assert_eq!(place.processes().len(), 2, "those of another application stay");
}

#[test]
fn an_orphan_waits_while_there_is_no_room() {
    let place = Place::new();
    let rows: Vec<_> = (0..3).map(|seq| NewRow { body: large(200_000), ..row(seq) }).collect();
    place.orphan(&rows);
    let mut spool = Spool::open(&place.options().max_bytes(700_000), "app").unwrap();
    let own = NewRow { stream: stream(2), body: large(200_000), ..vital(9) };
    let ids = put(&mut spool, &[own]).ids;
    let adopted = adopt(&mut spool, None);
    assert_eq!((adopted.rows, adopted.no_room, adopted.more), (0, true, false));
    assert_eq!(spool.totals().rows, 1, "nothing was evicted for it");
    spool.delete(&ids).unwrap();
    assert_eq!(adopt(&mut spool, None).rows, 3);
}

#[test]
fn a_directory_of_a_newer_version_is_left_as_it_is() {
    let place = Place::new();
    let orphan = place.orphan(&[row(1)]);
    let db = rusqlite::Connection::open(orphan.join("spool.db")).unwrap();
    db.pragma_update(None, "user_version", 2).unwrap();
    drop(db);
    let before = fs::read(orphan.join("spool.db")).unwrap();
    let mut spool = place.open();
    let adopted = adopt(&mut spool, None);
    assert_eq!((adopted.rows, adopted.damaged.len()), (0, 0));
    assert_eq!(fs::read(orphan.join("spool.db")).unwrap(), before);
}

#[test]
fn an_empty_orphan_is_removed() {
    let place = Place::new();
    drop(place.open());
    let mut spool = place.open();
    fs::create_dir(place.root().join("p-0123456789ab")).unwrap();
    assert_eq!(place.processes().len(), 3);
    adopt(&mut spool, None);
    assert_eq!(place.processes(), [spool.home.dir()]);
}

#[test]
fn spools_that_race_for_orphans_adopt_each_row_once() {
    let place = Place::new();
    for orphan in 0..6_u8 {
        let rows: Vec<_> = (0..40).map(|seq| NewRow { stream: stream(orphan), ..row(seq) }).collect();
        place.orphan(&rows);
    }
    let spools: Vec<_> = (0..4).map(|_| place.open()).collect();
    let barrier = std::sync::Barrier::new(spools.len());
    // A spool that is dropped is an orphan, so all of them are kept until the end.
    let mut adopted: Vec<(u64, Spool)> = std::thread::scope(|scope| {
        let racing = spools.into_iter().map(|mut spool| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let mut rows = 0;
                for _ in 0..20 {
                    let adopted = spool.adopt(None, &stamp(NOW), 15);
                    assert!(adopted.failed.is_none(), "{adopted:?}");
                    rows += adopted.rows;
                }
                (rows, spool)
            })
        });
        racing.collect::<Vec<_>>().into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(adopted.iter().map(|(rows, _)| rows).sum::<u64>(), 240);
    let keys = adopted.iter_mut().flat_map(|(_, spool)| list(spool, None));
    let keys: std::collections::BTreeSet<_> =
        keys.map(|row| (row.batch.stream, row.batch.first_seq)).collect();
    assert_eq!(keys.len(), 240);
}
