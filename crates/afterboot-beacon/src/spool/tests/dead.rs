use super::*;
use crate::spool::DeadId;

const LIFE: u64 = 3 * 24 * 60 * 60 * 1000;

fn ids(spool: &mut Spool) -> Vec<DeadId> {
    spool.list_dead(None, 100).unwrap().iter().map(|letter| letter.id()).collect()
}

fn bury(spool: &mut Spool, letters: &[NewDead]) -> crate::spool::Put {
    spool.put_dead(&[], letters, Durability::Process).unwrap()
}

#[test]
fn a_dead_letter_says_what_it_was_and_why_it_died() {
    let place = Place::new();
    let mut spool = place.open();
    let gone = put(&mut spool, &[row(1)]).ids;
    let batch = NewRow { session: Some("s".to_owned()), ..of("u", 1) };
    spool.put_dead(&gone, &[letter(batch)], Durability::Power).unwrap();
    assert_eq!(spool.totals().rows, 0);
    assert_eq!((spool.count_dead().rows, spool.count_dead().events), (1, 1));

    let listed = spool.list_dead(None, 10).unwrap();
    let found = &listed[0];
    assert_eq!((found.at(), found.reason(), found.status()), (NOW, "too_old", Some(400)));
    assert_eq!((found.user(), found.session(), found.app()), (Some("u"), Some("s"), "app"));
    assert_eq!((found.priority(), found.events()), (Priority::Basic, 1));
    assert_eq!(found.batch().unwrap().events[0].seq, 1);
    assert!(!format!("{found:?}").contains("hello"), "events are not for logs");
    assert_eq!(found.id().to_string().parse::<DeadId>().unwrap(), found.id());
}

#[test]
fn dead_letters_are_paged_in_the_order_they_came() {
    let place = Place::new();
    let mut spool = place.open();
    bury(&mut spool, &(0..5).map(|seq| letter(row(9 - seq))).collect::<Vec<_>>());
    let first = spool.list_dead(None, 2).unwrap();
    let rest = spool.list_dead(Some(first[1].id()), 10).unwrap();
    let seq = |letter: &crate::spool::DeadLetter| letter.dead.batch.first_seq;
    assert_eq!(first.iter().chain(&rest).map(seq).collect::<Vec<_>>(), [9, 8, 7, 6, 5]);
}

#[test]
fn a_replay_makes_a_batch_again_with_as_long_a_life() {
    let place = Place::new();
    let mut spool = place.open();
    let own = NewRow { events: 3, newest_at: 5, expires_at: 5 + LIFE, ..row(1) };
    let other = NewRow { events: 4, newest_at: 9, expires_at: 9, ..row(2) };
    bury(&mut spool, &[letter(own), NewDead { own: false, ..letter(other) }, letter(row(3))]);
    let ids = ids(&mut spool);
    let replayed = spool.replay_dead(&ids[..2], &stamp(NOW)).unwrap();
    assert_eq!((replayed.rows, replayed.own, replayed.others), (2, 3, 4));
    let listed = list(&mut spool, None);
    assert_eq!(seqs(&listed), [1, 2]);
    assert_eq!(listed[0].batch.expires_at, NOW + LIFE);
    assert_eq!(listed[1].batch.expires_at, NOW + 60 * 60 * 1000);
    assert_eq!(spool.count_dead().rows, 1);
    assert_eq!(spool.totals(), recount(&spool));
}

#[test]
fn a_replay_of_one_that_is_not_there_replays_none() {
    let place = Place::new();
    let mut spool = place.open();
    bury(&mut spool, &[letter(row(1))]);
    let known = ids(&mut spool)[0];
    let strange = [DeadId { row: 99, ..known }, DeadId { process: known.process ^ 1, ..known }];
    for strange in strange {
        let error = spool.replay_dead(&[known, strange], &stamp(NOW)).unwrap_err();
        assert_eq!(error.to_string(), format!("there is no dead letter {strange}"));
        assert_eq!((spool.totals().rows, spool.count_dead().rows), (0, 1));
    }
    assert!(list(&mut spool, None).is_empty());
}

#[test]
fn a_replayed_letter_may_die_again() {
    let place = Place::new();
    let mut spool = place.open();
    for _ in 0..3 {
        let gone: Vec<_> = list(&mut spool, None).iter().map(|row| row.id).collect();
        spool.put_dead(&gone, &[letter(row(1))], Durability::Process).unwrap();
        assert_eq!((spool.totals().rows, spool.count_dead().rows), (0, 1));
        let ids = ids(&mut spool);
        spool.replay_dead(&ids, &stamp(NOW)).unwrap();
        assert_eq!((spool.totals().rows, spool.count_dead().rows), (1, 0));
    }
}

#[test]
fn a_purge_takes_those_that_are_named_or_all() {
    let place = Place::new();
    let mut spool = place.open();
    bury(&mut spool, &[letter(row(1)), letter(row(2)), letter(row(3))]);
    let ids = ids(&mut spool);
    assert_eq!(firsts(&spool.purge_dead(Some(&ids[1..2])).unwrap()), [2]);
    assert_eq!(firsts(&spool.purge_dead(Some(&ids[1..2])).unwrap()), [] as [u64; 0]);
    assert_eq!(firsts(&spool.purge_dead(None).unwrap()), [1, 3]);
    assert_eq!(spool.count_dead().rows, 0);
}

#[test]
fn dead_letters_are_bounded_in_number_and_the_oldest_go_first() {
    let place = Place::new();
    let mut spool = Spool::open(&place.options().max_dead_letters(3), "app").unwrap();
    bury(&mut spool, &[letter(row(5)), letter(row(4))]);
    let put = bury(&mut spool, &[letter(row(3)), letter(row(2)), letter(row(1))]);
    assert_eq!(firsts(&put.dead_dropped), [5, 4]);
    assert_eq!((spool.count_dead().rows, spool.count_dead().events), (3, 3));
}

#[test]
fn dead_letters_have_a_quarter_of_the_bytes() {
    let place = Place::new();
    let mut spool = Spool::open(&place.options().max_bytes(1 << 20), "app").unwrap();
    let big = |seq| letter(NewRow { body: large(100_000), ..row(seq) });
    assert!(bury(&mut spool, &[big(1), big(2)]).dead_dropped.is_empty());
    assert_eq!(firsts(&bury(&mut spool, &[big(3)]).dead_dropped), [1]);
    assert!(spool.count_dead().bytes <= 1 << 18);
}

#[test]
fn an_id_of_another_form_is_refused() {
    for text in
        ["", "1", "0123456789ab", "0123456789AB-1", "0123456789ab-+1", "0123456789ab-0", "123-1", "é-1"]
    {
        assert!(text.parse::<DeadId>().is_err(), "{text}");
    }
    let error = "x".parse::<DeadId>().unwrap_err();
    assert_eq!(error.to_string(), "ID is \"x\": 12 lower-case hex digits, a dash and a number are allowed");
}
