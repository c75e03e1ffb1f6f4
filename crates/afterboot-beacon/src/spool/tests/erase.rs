use super::*;
use crate::spool::Why;

const SECRET: &str = "somebody@example.org";

/// B18: what was asked to be forgotten is in no file any more.
#[test]
fn a_users_batches_are_erased_wherever_their_process_is_gone() {
    let place = Place::new();
    place.orphan_of("app", &[of(SECRET, 1), row(2)], &[letter(of(SECRET, 3))]);
    place.orphan(&[of(SECRET, 4)]);
    let mut spool = place.open();
    put(&mut spool, &[NewRow { events: 5, ..of(SECRET, 5) }, of("other", 6)]);
    spool.put_dead(&[], &[letter(of(SECRET, 7)), letter(of("other", 8))], Durability::Process).unwrap();
    assert!(holds(&place.root(), SECRET));

    let erased = spool.erase_user(SECRET).unwrap();
    assert!(erased.failed.is_none(), "{erased:?}");
    assert_eq!((firsts(&erased.rows), erased.rows[0].why, erased.rows[0].events), (vec![5], Why::Erased, 5));
    let mut orphans = firsts(&erased.orphans);
    orphans.sort_unstable();
    assert_eq!(orphans, [1, 4]);
    assert_eq!(firsts(&erased.dead), [7]);
    assert!(!holds(&place.root(), SECRET));
    assert_eq!(seqs_for(&mut spool, Some("other")), [6]);
    assert_eq!((spool.totals(), spool.count_dead().rows), (recount(&spool), 1));
    assert_eq!(place.processes().len(), 2, "an orphan that holds nothing any more goes");
    assert_eq!(spool.adopt(None, &stamp(NOW), 9).rows, 1);
}

#[test]
fn what_was_sent_before_is_in_no_file_after_an_erasure_either() {
    let place = Place::new();
    let mut spool = place.open();
    let ids = put(&mut spool, &(0..50).map(|seq| of(SECRET, seq)).collect::<Vec<_>>()).ids;
    spool.delete(&ids).unwrap();
    spool.erase_user(SECRET).unwrap();
    assert!(!holds(&place.root(), SECRET));
}

#[test]
fn what_was_set_aside_is_erased_with_any_user() {
    let place = Place::new();
    let orphan = place.orphan(&[of(SECRET, 1)]);
    let mut file = std::fs::read(orphan.join("spool.db")).unwrap();
    file[..16].fill(0x5a);
    std::fs::write(orphan.join("spool.db"), file).unwrap();
    let mut spool = place.open();
    assert_eq!(spool.adopt(None, &stamp(NOW), 9).unreadable, 1);
    assert!(holds(&place.root(), SECRET));
    spool.erase_user(SECRET).unwrap();
    assert!(!holds(&place.root(), SECRET));
}

#[test]
fn a_user_of_another_application_is_somebody_else() {
    let place = Place::new();
    place.orphan_of("other", &[of(SECRET, 1)], &[]);
    let mut spool = place.open();
    assert!(spool.erase_user(SECRET).unwrap().orphans.is_empty());
    assert!(holds(&place.root(), SECRET));
}
