use std::path::PathBuf;

use tempfile::TempDir;

use super::text::{date, safe, safe_json};
use super::{DeadLetters, command_line};
use crate::spool::{Durability, NewDead, NewRow, Spool, SpoolOptions};
use crate::wire::{Priority, StreamId, gzip};

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("spool")
    }

    fn spool(&self, letters: &[NewDead]) -> Spool {
        let mut spool = Spool::open(&SpoolOptions::new(self.root()), "app").unwrap();
        spool.put_dead(&[], letters, Durability::Process).unwrap();
        spool
    }

    fn ids(&self) -> Vec<String> {
        let letters = DeadLetters::open(self.root()).unwrap().list(None, 500).unwrap();
        letters.iter().map(|letter| letter.id().to_string()).collect()
    }

    /// Exit code, output and errors of a command line in which DIR is the root.
    fn run(&self, line: &str) -> (u8, String, String) {
        let root = self.root().into_os_string();
        let args = line.split_whitespace().map(|word| if word == "DIR" { root.clone() } else { word.into() });
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = command_line(args, &mut out, &mut err);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }
}

fn letter(seq: u64) -> NewDead {
    let batch = NewRow {
        stream: StreamId::from_bytes([1; 16]),
        first_seq: seq,
        last_seq: seq,
        priority: Priority::Basic,
        user: Some("eve\u{202e}\u{1b}[2J".to_owned()),
        session: None,
        events: 2,
        newest_at: 0,
        expires_at: 1,
        until: None,
        boot: "boot".to_owned(),
        body: gzip(b"{\"wire\":1,\"bidi\":\"\xe2\x80\xae\"}").into(),
    };
    NewDead { batch, at: 1_700_000_000_123, reason: "bad\nthing".to_owned(), status: Some(422), own: true }
}

#[test]
fn a_list_escapes_what_it_shows() {
    let place = Place::new();
    drop(place.spool(&[letter(1)]));
    let (code, out, err) = place.run("dead list DIR");
    assert_eq!((code, err.as_str()), (0, ""));
    let id = &place.ids()[0];
    assert_eq!(
        out,
        format!(
            "{id}  2023-11-14T22:13:20.123Z  basic  422  2 events  app  user eve\\u{{202e}}\\u{{1b}}[2J  \
             bad\\u{{a}}thing\n"
        )
    );
}

#[test]
fn json_is_a_line_a_letter_and_still_says_the_same() {
    let place = Place::new();
    drop(place.spool(&[letter(1), letter(2)]));
    let (code, out, _) = place.run("dead list DIR --json");
    assert_eq!((code, out.lines().count()), (0, 2));
    assert!(out.is_ascii(), "{out}");
    let line: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(line["user"], "eve\u{202e}\u{1b}[2J");
    assert_eq!((&line["status"], &line["events"]), (&422.into(), &2.into()));
}

#[test]
fn a_letter_is_shown_with_its_body() {
    let place = Place::new();
    drop(place.spool(&[letter(1)]));
    let (code, out, _) = place.run(&format!("dead show DIR {}", place.ids()[0]));
    assert_eq!(code, 0);
    assert!(out.ends_with("\n{\"wire\":1,\"bidi\":\"\\u202e\"}\n"), "{out}");
    let (code, _, err) = place.run("dead show DIR 0123456789ab-7");
    assert_eq!((code, err.as_str()), (1, "afterboot-beacon: there is no dead letter 0123456789ab-7\n"));
}

#[test]
fn letters_are_replayed_and_purged_by_name() {
    let place = Place::new();
    drop(place.spool(&[letter(1), letter(2), letter(3)]));
    let ids = place.ids();
    let (code, out, _) = place.run(&format!("dead replay DIR {0} {0}", ids[0]));
    assert_eq!((code, out.as_str()), (0, "replayed 1 dead letters of 2 events\n"));
    let (code, out, _) = place.run(&format!("dead purge DIR {}", ids[2]));
    assert_eq!((code, out.as_str()), (0, "purged 1 dead letters of 2 events\n"));
    assert_eq!(place.ids(), ids[1..2]);
    let (_, out, _) = place.run("spool DIR");
    assert!(out.contains("orphan  1 batches  2 events"), "{out}");
    assert!(out.ends_with("1 dead letters  oldest 1970-01-01T00:00:00.000Z\n"), "{out}");
}

#[test]
fn all_are_those_of_processes_that_are_gone_and_the_rest_is_told() {
    let place = Place::new();
    drop(place.spool(&(0..250).map(letter).collect::<Vec<_>>()));
    let living = place.spool(&[letter(300)]);
    let (code, _, err) = place.run("dead replay DIR --all");
    assert_eq!(code, 1);
    assert!(err.contains("use the dead letters of its beacon (250 dead letters were done)"), "{err}");
    assert_eq!(place.ids().len(), 1);
    drop(living);
    let (code, out, _) = place.run("dead purge DIR --all");
    assert_eq!((code, out.as_str()), (0, "purged 1 dead letters of 2 events\n"));
    assert_eq!(place.run("dead purge DIR --all").1, "purged 0 dead letters of 0 events\n");
}

#[test]
fn a_user_is_erased() {
    let place = Place::new();
    drop(place.spool(&[letter(1)]));
    assert_eq!(place.run("erase DIR --user nobody").1, "erased 0 events\n");
    let root = place.root().into_os_string();
    let args = ["erase".into(), "--user".into(), "eve\u{202e}\u{1b}[2J".into(), root];
    assert_eq!(command_line(args, &mut Vec::new(), &mut Vec::new()), 0);
    assert!(place.ids().is_empty());
}

#[test]
fn what_is_not_understood_is_named_with_what_is_allowed() {
    let place = Place::new();
    let commands = "dead, erase, spool, --help or --version";
    for (line, said) in [
        ("", format!("command is missing: {commands} is needed")),
        ("lsit DIR", format!("command is \"lsit\": {commands} is allowed")),
        ("dead", "dead is missing: list, show, replay or purge is needed".to_owned()),
        ("dead kill", "dead is \"kill\": list, show, replay or purge is allowed".to_owned()),
        ("dead list", "DIR is missing: DIR is needed".to_owned()),
        ("dead list DIR --jsno", "option is \"--jsno\": --json is allowed".to_owned()),
        ("dead list DIR more", "argument is \"more\": DIR is allowed".to_owned()),
        ("dead show DIR", "ID is missing: DIR ID is needed".to_owned()),
        (
            "dead show DIR 7",
            "ID is \"7\": 12 lower-case hex digits, a dash and a number are allowed".to_owned(),
        ),
        ("dead replay", "DIR is missing: DIR (ID... | --all) is needed".to_owned()),
        ("dead replay DIR", "ID is missing: ID... or --all is needed".to_owned()),
        ("dead purge DIR --all 0123456789ab-7", "both --all and an ID: one of the two is allowed".to_owned()),
        ("erase DIR", "--user is missing: --user USER is needed".to_owned()),
        ("erase DIR --user", "--user is missing: a user's name is needed".to_owned()),
        ("spool DIR --json", "option is \"--json\": no option is allowed".to_owned()),
    ] {
        let (code, out, err) = place.run(line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}");
        assert_eq!(err.lines().next().unwrap(), format!("afterboot-beacon: {said}"), "{line}");
        assert!(err.contains("usage: "), "{line}");
    }
    assert_eq!(place.run("--help").0, 0);
    assert!(place.run("--version").1.starts_with("afterboot-beacon "));
}

#[test]
fn a_root_that_is_not_there_is_a_failure() {
    let place = Place::new();
    let (code, _, err) = place.run("spool DIR");
    assert_eq!(code, 1);
    assert!(err.starts_with("afterboot-beacon: cannot look at "), "{err}");
}

#[test]
fn a_reader_that_has_gone_is_no_fault() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(command_line(["--help".into()], &mut Gone, &mut Vec::new()), 0);
}

#[test]
fn escapes_cannot_be_mistaken_and_json_stays_json() {
    assert_eq!(safe("a\u{7f}b\u{9b}c\\u{1b}"), "a\\u{7f}b\\u{9b}c\\\\u{1b}");
    assert_eq!(safe("Zoë 日本 🦀"), "Zoë 日本 🦀");
    assert_eq!(safe_json("\"\u{e0041}\u{2066}\""), "\"\\udb40\\udc41\\u2066\"");
    let read: String = serde_json::from_str(&safe_json("\"\u{e0041}\u{2066}é\"")).unwrap();
    assert_eq!(read, "\u{e0041}\u{2066}é");
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(date(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(date(951_782_400_000), "2000-02-29T00:00:00.000Z");
    assert_eq!(date(1_798_761_599_999), "2026-12-31T23:59:59.999Z");
    assert_eq!(date(1_798_761_600_000), "2027-01-01T00:00:00.000Z");
    assert!(date(u64::MAX).ends_with('Z'));
}
