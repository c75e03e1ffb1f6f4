use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;
use crate::spool::place::{Home, Root, Take, open_lock};

fn refusal(options: &SpoolOptions) -> String {
    Spool::open(options, "app").unwrap_err().to_string()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn everything_is_made_for_this_user_alone() {
    let place = Place::new();
    let nested = SpoolOptions::new(place.root().join("a/b"));
    let spool = Spool::open(&nested, "app").unwrap();
    assert_eq!(mode(&place.root()), 0o700);
    assert_eq!(mode(&place.root().join("a/b")), 0o700);
    assert_eq!(mode(spool.home.dir()), 0o700);
    assert_eq!(mode(&spool.home.dir().join("lock")), 0o600);
}

#[test]
fn a_root_that_is_a_symbolic_link_is_refused() {
    let place = Place::new();
    let (real, link) = (place.0.path().join("real"), place.root());
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    assert_eq!(
        refusal(&place.options()),
        format!("spool dir is {link:?}: a directory that is no symbolic link is allowed")
    );
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
}

#[test]
fn a_root_below_a_symbolic_link_is_the_administrators_business() {
    let place = Place::new();
    let real = place.0.path().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, place.root()).unwrap();
    let mut spool = Spool::open(&SpoolOptions::new(place.root().join("inner")), "app").unwrap();
    put(&mut spool, &[row(1)]);
    assert_eq!(seqs_for(&mut spool, None), [1]);
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    let place = Place::new();
    fs::write(place.root(), "").unwrap();
    assert!(refusal(&place.options()).ends_with(": a directory is allowed"));
}

#[test]
fn a_shared_root_is_refused() {
    let place = Place::new();
    fs::create_dir(place.root()).unwrap();
    fs::set_permissions(place.root(), Permissions::from_mode(0o1777)).unwrap();
    let root = place.root();
    assert_eq!(
        refusal(&place.options()),
        format!("spool dir is {root:?}: a directory that others cannot write to is allowed")
    );
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
}

#[test]
fn a_root_of_somebody_else_is_refused() {
    let place = Place::new();
    fs::create_dir(place.root()).unwrap();
    if chown(place.root(), Some(12_345), None).is_err() {
        // Only the superuser can give a folder away.
        return;
    }
    assert!(
        refusal(&place.options()).ends_with(": a directory that the user of this process owns is allowed")
    );
}

#[test]
fn a_directory_that_is_a_link_or_holds_one_is_not_adopted() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let far = elsewhere.orphan(&[row(1)]);
    let mut spool = place.open();
    symlink(&far, place.root().join("p-000000000001")).unwrap();
    let near = place.orphan(&[row(2)]);
    fs::rename(near.join("spool.db"), place.root().join("moved.db")).unwrap();
    symlink(place.root().join("moved.db"), near.join("spool.db")).unwrap();
    let locked = place.orphan(&[row(3)]);
    fs::rename(locked.join("lock"), locked.join("kcol")).unwrap();
    symlink(locked.join("kcol"), locked.join("lock")).unwrap();
    let adopted = spool.adopt(None, &stamp(NOW), 100);
    assert!(adopted.rows == 0 && adopted.failed.is_none(), "{adopted:?}");
    assert!(far.join("spool.db").exists() && near.exists() && locked.exists());
}

#[test]
fn an_orphan_of_somebody_else_is_not_adopted() {
    let place = Place::new();
    let mut spool = place.open();
    let orphan = place.orphan(&[row(1)]);
    if chown(&orphan, Some(12_345), None).is_err() {
        return;
    }
    assert_eq!(spool.adopt(None, &stamp(NOW), 100).rows, 0);
}

/// B15: only a lock that is held means something.
#[test]
fn a_lock_file_that_was_left_behind_holds_nobody_off() {
    let place = Place::new();
    let orphan = place.orphan(&[row(1)]);
    fs::write(orphan.join("lock"), "pid 1").unwrap();
    assert_eq!(place.open().adopt(None, &stamp(NOW), 100).rows, 1);
}

#[test]
fn a_directory_without_its_lock_file_cannot_be_told_from_a_living_one() {
    let place = Place::new();
    let mut living = place.open();
    put(&mut living, &[row(1)]);
    let dir = living.home.dir().to_owned();
    fs::remove_file(dir.join("lock")).unwrap();
    assert_eq!(place.open().adopt(None, &stamp(NOW), 100).rows, 0);
    assert!(dir.join("spool.db").exists());
}

#[test]
fn a_lock_on_a_file_that_has_no_name_any_more_is_no_lock() {
    let place = Place::new();
    let root = Root::prepare(&place.root()).unwrap();
    let home = Home::create(&root).unwrap();
    assert!(home.is_named());
    let dir = home.dir().to_owned();
    fs::rename(dir.join("lock"), dir.join("old")).unwrap();
    fs::write(dir.join("lock"), "").unwrap();
    assert!(!home.is_named());
    let Take::Ours(second) = Home::take(&dir).unwrap() else { panic!("the file under the name is free") };
    assert!(second.is_named());
    assert!(matches!(Home::take(&dir).unwrap(), Take::Busy));
}

/// B15: two that look for orphans open the same lock file, and the first has removed it when the second locks it.
#[test]
fn a_lock_that_is_taken_after_the_directory_was_removed_is_no_lock() {
    let place = Place::new();
    let orphan = place.orphan(&[row(1)]);
    let slow = open_lock(&orphan, false).unwrap();
    let mut quick = place.open();
    assert_eq!(quick.adopt(None, &stamp(NOW), 100).rows, 1);
    assert!(matches!(Home::claim(&orphan, slow).unwrap(), Take::Gone));
}

#[test]
fn a_directory_that_holds_something_strange_is_not_removed() {
    let place = Place::new();
    let spool = place.open();
    let dir = spool.home.dir().to_owned();
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    spool.close().unwrap();
    assert_eq!(fs::read(dir.join("notes.txt")).unwrap(), b"mine");
    assert!(dir.join("lock").exists());
}

#[test]
fn a_directory_that_was_taken_away_is_made_anew_and_what_it_held_is_counted() {
    let place = Place::new();
    let mut spool = place.open();
    let ids = put(&mut spool, &[NewRow { events: 5, ..row(1) }]).ids;
    fs::remove_dir_all(place.root()).unwrap();
    let more = put(&mut spool, &[row(2)]).ids;
    assert_eq!(spool.take_lost().events, 5);
    assert_eq!(spool.take_lost().events, 0);
    assert!(more[0] > ids[0], "an id is never given twice");
    assert_eq!(seqs_for(&mut spool, None), [2]);
    drop(spool);
    assert_eq!(place.open().adopt(None, &stamp(NOW), 100).rows, 1);
}
