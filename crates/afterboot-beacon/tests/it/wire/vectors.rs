//! The examples of `WIRE.md` are read from there: a reader who implements the format can trust each byte of them.

use std::collections::HashMap;

use afterboot_beacon::wire::{
    Ack, Batch, BatchWriter, Headers, MAX_BODY, MAX_EVENTS, Verdict, WIRE_VERSION, encode_event, names,
};
use afterboot_beacon::{MAX_RESPONSE, wire};

const WIRE_MD: &str = include_str!("../../../WIRE.md");

/// The words behind the fence, and the block without its line breaks and what they are followed by.
fn blocks(kind: &str) -> Vec<(Vec<&'static str>, String)> {
    let mut blocks = Vec::new();
    let mut lines = WIRE_MD.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let words: Vec<&str> = info.split(' ').collect();
        if words.get(1) == Some(&kind) {
            blocks.push((words, block.iter().map(|line| line.trim_start()).collect()));
        }
    }
    assert!(!blocks.is_empty(), "there is a {kind}");
    blocks
}

fn sent(words: &[&str]) -> usize {
    let sent = words.iter().find_map(|word| word.strip_prefix("sent="));
    sent.and_then(|sent| sent.parse().ok()).expect("sent=NUMBER behind the fence")
}

#[test]
fn each_batch_is_read_and_written_again_to_the_byte() {
    for (_, block) in blocks("batch") {
        let batch = Batch::parse(block.as_bytes()).expect(&block);
        assert_eq!(serde_json::to_string(&batch).expect("JSON"), block);
        let mut writer = BatchWriter::new(&batch.head);
        for event in &batch.events {
            assert_eq!(event.id.get_version_num(), 7);
            let mut encoded = Vec::new();
            encode_event(&mut encoded, event.id, &event.route, event.at, event.mono, &event.data)
                .expect("JSON");
            writer.event(event.seq, &encoded);
        }
        assert_eq!(String::from_utf8(writer.finish()).expect("text"), block);
    }
}

#[test]
fn each_ack_is_read_and_written_again_to_the_byte() {
    for (words, block) in blocks("ack") {
        let (ack, verdicts) = Ack::parse(block.as_bytes(), sent(&words)).expect(&block);
        assert_eq!(serde_json::to_string(&ack).expect("JSON"), block);
        let again = Ack { kill: ack.kill.clone(), batch: ack.batch.clone(), ..Ack::from_verdicts(&verdicts) };
        assert_eq!(again, ack);
    }
}

#[test]
fn the_verdicts_are_those_that_the_ack_names() {
    let (_, block) = blocks("ack").into_iter().find(|(words, _)| sent(words) == 3).expect("an ack of three");
    let (_, verdicts) = Ack::parse(block.as_bytes(), 3).expect("an ack");
    assert_eq!(verdicts, [Verdict::Accepted, Verdict::Retry, Verdict::Rejected("no such route".to_owned())]);
}

/// B25: an ack that does not account for each index is no ack.
#[test]
fn each_answer_that_is_no_ack_is_none_for_the_reason_given() {
    let blocks = blocks("no-ack");
    assert_eq!(blocks.len(), 6);
    for (words, block) in blocks {
        let error = Ack::parse(block.as_bytes(), sent(&words)).expect_err(&block);
        assert!(format!("{error:?}").starts_with(words[3]), "{block}: {error:?}");
    }
}

#[test]
fn what_a_newer_side_adds_is_ignored_and_null_is_absent() {
    for (_, block) in blocks("newer-batch") {
        let batch = Batch::parse(block.as_bytes()).expect(&block);
        assert_eq!((&batch.head.user, &batch.head.session, batch.head.gaps.len()), (&None, &None, 0));
        let old = serde_json::to_string(&batch).expect("JSON");
        assert_eq!(old, self::blocks("batch")[1].1);
    }
    for (words, block) in blocks("newer-ack") {
        let (ack, _) = Ack::parse(block.as_bytes(), sent(&words)).expect(&block);
        assert_eq!(ack, Ack::all_accepted(1));
    }
}

#[test]
fn the_headers_are_read_and_written_again() {
    let block = WIRE_MD.split("```http request\n").nth(1).and_then(|rest| rest.split("```").next());
    let lines = block.expect("a block of headers").lines();
    let all: HashMap<&str, &str> = lines.map(|line| line.split_once(": ").expect("a header")).collect();
    let headers = Headers::read(|name| all.get(name).copied()).expect("headers");
    assert!(headers.counters.balances());
    for (name, value) in headers.pairs() {
        assert_eq!(all.get(name), Some(&value.as_str()), "{name}");
        assert!(WIRE_MD.contains(&format!("| `{name}` |")), "{name} is explained");
    }
    assert_eq!(headers.batch.as_deref(), Some("9f3c1b7a5d2e4f608192a3b4c5d6e7f8-12"));
    assert_eq!(all.len(), headers.pairs().len() + 4);
    assert!(all.contains_key(names::COUNTERS));
}

#[test]
fn the_numbers_in_the_text_are_those_of_the_code() {
    let thousands = |number: usize| format!("{},{:03}", number / 1000, number % 1000);
    assert!(WIRE_MD.starts_with(&format!("# The wire format, version {WIRE_VERSION}\n")));
    assert!(WIRE_MD.contains(&format!("at most {MAX_EVENTS} events and {} bytes", thousands(MAX_BODY))));
    assert!(WIRE_MD.contains(&format!("up to {} bytes of an answer", thousands(MAX_RESPONSE))));
    for priority in [wire::Priority::Vital, wire::Priority::Basic] {
        assert!(WIRE_MD.contains(&format!("`{}`", priority.as_str())));
    }
}
