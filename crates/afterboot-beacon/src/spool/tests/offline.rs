use super::*;
use crate::api::dead::DeadLetters;
use crate::spool::DeadId;

fn all(reader: &DeadLetters) -> Vec<DeadId> {
    reader.list(None, 100).unwrap().iter().map(|letter| letter.id()).collect()
}

#[test]
fn dead_letters_of_living_and_gone_processes_are_listed() {
    let place = Place::new();
    place.orphan_of("app", &[], &[letter(row(1)), letter(row(2))]);
    let mut living = place.open();
    living.put_dead(&[], &[letter(row(3))], Durability::Process).unwrap();
    let reader = DeadLetters::open(place.root()).unwrap();
    let mut seqs: Vec<_> =
        reader.list(None, 9).unwrap().iter().map(|letter| letter.batch().unwrap().events[0].seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, [1, 2, 3]);
    let ids = all(&reader);
    for (index, &id) in ids.iter().enumerate() {
        let paged: Vec<_> = reader.list(Some(id), 9).unwrap().iter().map(|letter| letter.id()).collect();
        assert_eq!(paged, ids[index + 1..]);
        assert_eq!(reader.get(id).unwrap().id(), id);
    }
    assert!(reader.get(DeadId { row: 77, ..ids[0] }).is_err());
}

#[test]
fn a_letter_of_a_process_that_is_gone_is_replayed_and_adopted() {
    let place = Place::new();
    place.orphan_of("app", &[], &[letter(NewRow { events: 4, ..row(1) }), letter(row(2))]);
    let reader = DeadLetters::open(place.root()).unwrap();
    let ids = all(&reader);
    let replay = reader.replay(&ids[..1]).unwrap();
    assert_eq!((replay.letters, replay.events), (1, 4));
    assert_eq!(all(&reader), ids[1..]);
    let mut spool = place.open();
    let adopted = spool.adopt(None, &stamp(NOW), 9);
    assert_eq!((adopted.events, adopted.dead), (4, 1));
}

#[test]
fn a_purge_removes_a_directory_that_holds_nothing_any_more() {
    let place = Place::new();
    place.orphan_of("app", &[], &[letter(row(1)), letter(row(2))]);
    let reader = DeadLetters::open(place.root()).unwrap();
    assert_eq!(reader.purge(&all(&reader)).unwrap(), 2);
    assert!(place.processes().is_empty());
}

#[test]
fn nothing_is_changed_in_the_directory_of_a_living_process() {
    let place = Place::new();
    let mut living = place.open();
    living.put_dead(&[], &[letter(of("u", 1))], Durability::Process).unwrap();
    let reader = DeadLetters::open(place.root()).unwrap();
    let ids = all(&reader);
    for error in [
        reader.replay(&ids).unwrap_err(),
        reader.purge(&ids).unwrap_err(),
        reader.erase_user("u").unwrap_err(),
    ] {
        assert!(error.is_live());
        let said = error.to_string();
        assert!(said.ends_with("belongs to a running process: use the dead letters of its beacon"), "{said}");
    }
    assert_eq!(living.list_dead(None, 9).unwrap().len(), 1);
}

#[test]
fn a_user_is_erased_from_every_application() {
    let place = Place::new();
    place.orphan_of("app", &[of("u@x", 1), of("v", 2)], &[letter(of("u@x", 3))]);
    place.orphan_of("other", &[of("u@x", 4)], &[]);
    let reader = DeadLetters::open(place.root()).unwrap();
    assert_eq!(reader.erase_user("u@x").unwrap(), 3);
    assert!(!holds(&place.root(), "u@x"));
    assert_eq!(reader.erase_user("u@x").unwrap(), 0);
}

/// B30: it has no beacon that could declare it, so what is left says it, whoever takes that over.
#[test]
fn what_a_tool_erases_is_declared_by_who_comes_next() {
    let place = Place::new();
    let rows = (0..120).map(|seq| NewRow { last_seq: 3 * seq + 1, events: 2, ..of("u", 3 * seq) });
    place.orphan_of("app", &rows.collect::<Vec<_>>(), &[letter(of("u", 900))]);
    place.orphan_of("other", &[NewRow { stream: stream(2), ..of("u", 4) }], &[]);
    DeadLetters::open(place.root()).unwrap().erase_user("u").unwrap();
    let now = crate::state::clock::stamp();
    let mut gaps = Vec::new();
    for app in ["app", "other"] {
        let mut spool = Spool::open(&place.options(), app).unwrap();
        assert_eq!(spool.adopt(None, &now, 9).events, 0);
        for row in spool.list(None, &now, |_| false, 99).unwrap() {
            let parsed =
                crate::wire::Batch::parse(&crate::wire::gunzip(&row.batch.body, 1 << 20).unwrap()).unwrap();
            assert_eq!((parsed.events.len(), parsed.head.app.as_str(), parsed.head.user), (0, app, None));
            gaps.extend(parsed.head.gaps);
            spool.delete(&[row.id]).unwrap();
        }
        spool.close().unwrap();
    }
    let numbers = |of| -> Vec<u64> {
        let of = gaps.iter().filter(|gap| gap.stream == of && gap.why == "erased");
        of.flat_map(|gap| gap.first..=gap.last).collect()
    };
    assert_eq!(numbers(stream(1)), (0..360).filter(|seq| seq % 3 != 2).collect::<Vec<_>>());
    assert_eq!(numbers(stream(2)), [4]);
    assert!(place.processes().is_empty(), "and then there is nothing left");
}

#[test]
fn processes_are_described() {
    let place = Place::new();
    place.orphan_of("app", &[row(5), row(6)], &[letter(row(7))]);
    let living = place.open();
    let mut described = DeadLetters::open(place.root()).unwrap().processes().unwrap();
    described.sort_by_key(|process| process.live);
    let [gone, runs] = &described[..] else { panic!("{described:?}") };
    assert_eq!((gone.rows, gone.events, gone.dead, gone.oldest), (2, 2, 1, Some(NOW + 5)));
    assert!(!gone.live && gone.bytes > 0);
    assert_eq!((runs.live, runs.rows, runs.oldest), (true, 0, None));
    assert!(living.home.dir().to_string_lossy().ends_with(&runs.process));
}

#[test]
fn a_root_that_does_not_exist_is_not_made() {
    let place = Place::new();
    DeadLetters::open(place.root()).unwrap_err();
    assert!(!place.root().exists());
}
