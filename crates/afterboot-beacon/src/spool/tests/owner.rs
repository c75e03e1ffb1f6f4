//! Who holds a directory, where a forked child has its lock file open too.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use super::*;
use crate::spool::owner;
use crate::spool::place::{Home, Take, open_lock};

/// What a process leaves that was killed, and the lock that its child still has.
fn held_by_a_child(place: &Place, rows: &[NewRow]) -> (PathBuf, File) {
    let dir = place.orphan(rows);
    let child = open_lock(&dir, false).unwrap();
    child.lock().unwrap();
    let name = format!("{:<48}", "4000000000 0123456789abcdef0123456789abcdef\n");
    fs::write(dir.join("lock"), &name).unwrap();
    fs::write(dir.join("alive"), "").unwrap();
    (dir, child)
}

/// B15: the lock of a child says nothing, and whoever has taken the directory holds it all the same.
#[test]
fn a_directory_whose_lock_a_child_inherited_has_one_holder_at_a_time() {
    let place = Place::new();
    let (dir, child) = held_by_a_child(&place, &[row(1)]);
    for _ in 0..3 {
        let Take::Ours(home) = Home::take(&dir).unwrap() else { panic!("its process is gone") };
        assert!(matches!(Home::take(&dir).unwrap(), Take::Busy), "by this process");
        drop(home);
    }
    // The child ends while somebody has the directory.
    let Take::Ours(home) = Home::take(&dir).unwrap() else { panic!("its process is gone") };
    drop(child);
    assert!(matches!(Home::take(&dir).unwrap(), Take::Busy), "by this process");
    drop(home);
    assert!(matches!(Home::take(&dir).unwrap(), Take::Ours(_)));
}

/// B15: an older version of this crate does not say who it is, and has a lock alone.
#[test]
fn a_lock_that_does_not_say_whose_it_is_is_a_living_processs() {
    let place = Place::new();
    let (dir, _other) = held_by_a_child(&place, &[row(1)]);
    fs::write(dir.join("lock"), "").unwrap();
    assert!(matches!(Home::take(&dir).unwrap(), Take::Busy));
    fs::write(dir.join("lock"), "pid 1").unwrap();
    assert!(matches!(Home::take(&dir).unwrap(), Take::Busy));
}

#[test]
fn a_link_in_the_place_of_the_second_lock_is_not_followed() {
    let place = Place::new();
    let (dir, child) = held_by_a_child(&place, &[row(1)]);
    let far = place.0.path().join("far");
    fs::remove_file(dir.join("alive")).unwrap();
    symlink(&far, dir.join("alive")).unwrap();
    assert!(matches!(Home::take(&dir).unwrap(), Take::Busy));
    drop(child);
    let _ = Home::take(&dir).unwrap();
    assert!(!far.exists());
}

/// B15: a disk that is busy holds up whoever takes a directory, and nobody's rows are left lying for that.
#[test]
fn a_turn_that_takes_its_time_is_waited_for() {
    let place = Place::new();
    place.orphan(&[row(1)]);
    let mut spool = place.open();
    let turn = owner::turn().expect("others are quick");
    std::thread::scope(|scope| {
        let adopting = scope.spawn(|| spool.adopt(None, &stamp(NOW), 10));
        std::thread::park_timeout(Duration::from_millis(200));
        drop(turn);
        let adopted = adopting.join().unwrap();
        assert_eq!((adopted.rows, adopted.later), (1, false), "{adopted:?}");
    });
}

/// B15, B18, B31: it is asked for again later, and nobody is told that what could not be looked at is erased.
#[test]
fn a_turn_that_never_comes_is_given_up_and_told() {
    // All spools of a process wait for one turn: this takes a process of its own.
    let alone = "spool::tests::owner::in_a_process_where_a_turn_hangs";
    let here = std::env::current_exe().unwrap();
    let ran = std::process::Command::new(here).args(["--exact", alone, "--ignored"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "the test before this one runs it, in a process of its own"]
fn in_a_process_where_a_turn_hangs() {
    let place = Place::new();
    (0..20).for_each(|seq| drop(place.orphan(&[of("a", seq)])));
    let mut spool = place.open();
    let hangs = owner::turn();
    let begun = now();
    let adopted = spool.adopt(Some("a"), &stamp(NOW), 10);
    assert_eq!((adopted.rows, adopted.later), (0, true), "{adopted:?}");
    let erased = spool.erase_user("a").unwrap();
    assert!(erased.failed.is_some() && erased.orphans.is_empty(), "{erased:?}");
    // Once each, not for each directory.
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    drop(hangs);
    assert_eq!(spool.erase_user("a").unwrap().orphans.len(), 20);
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a turn is waited for in real time")]
    Instant::now()
}

/// B15: also where the beacons are of one process, whose locks of the second kind do not hold each other off.
#[test]
fn spools_that_race_for_directories_of_killed_processes_adopt_each_row_once() {
    let place = Place::new();
    let children: Vec<_> = (0..6_u8)
        .map(|orphan| {
            let rows: Vec<_> = (0..40).map(|seq| NewRow { stream: stream(orphan), ..row(seq) }).collect();
            held_by_a_child(&place, &rows).1
        })
        .collect();
    let spools: Vec<_> = (0..4).map(|_| place.open()).collect();
    let barrier = std::sync::Barrier::new(spools.len());
    let adopted: Vec<(u64, Spool)> = std::thread::scope(|scope| {
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
    assert_eq!(place.processes().len(), 4, "what was emptied is removed");
    drop(children);
}
