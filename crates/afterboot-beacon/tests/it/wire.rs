//! The wire format: what is written is read back, and nothing that is read can hurt.

mod vectors;

use std::collections::{BTreeMap, HashMap};

use afterboot_beacon::wire::{
    Ack, AckError, Batch, BatchWriter, BodyError, Counters, Gap, Head, Headers, InflateError, MAX_BODY,
    MAX_EVENTS, Priority, StreamId, Verdict, encode_event, gunzip, gzip, names,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

type Posted = (u128, String, u64, u64, Value);

fn stream() -> impl Strategy<Value = StreamId> {
    any::<[u8; 16]>().prop_map(StreamId::from_bytes)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..1000_u64, Just(u64::MAX), Just(1 << 53)]
}

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

fn head() -> impl Strategy<Value = Head> {
    let gap = (stream(), number(), number(), any::<String>());
    let gap = gap.prop_map(|(stream, first, last, why)| Gap { stream, first, last, why });
    let who = (any::<String>(), option::of(any::<String>()), option::of(any::<String>()));
    let priority = prop_oneof![Just(Priority::Vital), Just(Priority::Basic)];
    (who, stream(), priority, vec(gap, 0..3), option::of(number())).prop_map(
        |((app, user, session), stream, priority, gaps, end)| Head {
            app,
            stream,
            user,
            session,
            priority,
            gaps,
            end,
        },
    )
}

fn posted() -> impl Strategy<Value = Posted> {
    (any::<u128>(), any::<String>(), number(), number(), data())
}

fn encoded(event: &Posted) -> Vec<u8> {
    let (id, route, at, mono, data) = event;
    let mut out = Vec::new();
    encode_event(&mut out, Uuid::from_u128(*id), route, *at, *mono, data).expect("JSON");
    out
}

fn body(head: &Head, first: u64, events: &[Posted]) -> Vec<u8> {
    let mut writer = BatchWriter::new(head);
    for (index, event) in (0..).zip(events) {
        writer.event(first.saturating_add(index), &encoded(event));
    }
    writer.finish()
}

fn simple_head() -> Head {
    Head {
        app: "shop".to_owned(),
        stream: StreamId::from_bytes([7; 16]),
        user: None,
        session: None,
        priority: Priority::Vital,
        gaps: Vec::new(),
        end: None,
    }
}

fn verdicts() -> impl Strategy<Value = Vec<Verdict>> {
    let verdict = prop_oneof![
        4 => Just(Verdict::Accepted),
        1 => Just(Verdict::Retry),
        1 => any::<String>().prop_map(Verdict::Rejected),
    ];
    vec(verdict, 0..=MAX_EVENTS)
}

/// Changes, inserts or cuts at places that are drawn.
fn corrupt(bytes: &[u8], faults: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for &(place, kind, value) in faults {
        let place = place % (bytes.len() + 1);
        match kind % 4 {
            0 => bytes.truncate(place),
            1 => bytes.insert(place, value),
            _ => match bytes.get_mut(place) {
                Some(byte) => *byte ^= value,
                None => bytes.push(value),
            },
        }
    }
    bytes
}

fn faults() -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6)
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(head in head(), first in number(), events in vec(posted(), 0..8)) {
        let written = body(&head, first, &events);
        let read = Batch::parse(&gunzip(&gzip(&written), written.len()).expect("gzip")).expect("a batch");
        prop_assert_eq!(&read.head, &head);
        prop_assert_eq!(read.events.len(), events.len());
        for (index, (read, (id, route, at, mono, data))) in (0..).zip(read.events.iter().zip(&events)) {
            prop_assert_eq!(read.seq, first.saturating_add(index));
            prop_assert_eq!((read.id.as_u128(), &read.route), (*id, route));
            prop_assert_eq!((read.at, read.mono), (*at, *mono));
            // As text: a number is not to lose a digit on the way.
            prop_assert_eq!(read.data.get(), data.to_string());
        }
        prop_assert_eq!(serde_json::to_vec(&read).expect("JSON"), written);
    }

    #[test]
    fn no_body_is_larger_than_its_overhead_and_room_for_each_event(
        head in head(), first in number(), events in vec(posted(), 0..8),
    ) {
        let room = |event: &Posted| encoded(event).len() + BatchWriter::SEQ_ROOM;
        let most = BatchWriter::overhead(&head) + events.iter().map(room).sum::<usize>();
        prop_assert!(body(&head, first, &events).len() <= most);
        prop_assert_eq!(body(&head, 0, &[]).len(), BatchWriter::overhead(&head));
    }

    #[test]
    fn every_ack_is_read_back(verdicts in verdicts()) {
        let ack = Ack::from_verdicts(&verdicts);
        let (read, said) = Ack::parse(&serde_json::to_vec(&ack).expect("JSON"), verdicts.len()).expect("an ack");
        prop_assert_eq!(read, ack);
        prop_assert_eq!(said, verdicts);
    }

    #[test]
    fn no_corruption_panics(
        head in head(), events in vec(posted(), 0..3), verdicts in verdicts(), faults in faults(),
    ) {
        let written = body(&head, 0, &events);
        let _ = Batch::parse(&corrupt(&written, &faults));
        let _ = Ack::parse(&corrupt(&serde_json::to_vec(&Ack::from_verdicts(&verdicts)).expect("JSON"), &faults), verdicts.len());
        if let Ok(inflated) = gunzip(&corrupt(&gzip(&written), &faults), MAX_BODY) {
            prop_assert!(inflated.len() <= MAX_BODY);
        }
    }

    /// B25: whatever is taken for an ack gives each index exactly one verdict.
    #[test]
    fn an_ack_accounts_for_each_index_or_is_none(
        sent in 0..12_usize,
        accepted in vec((0..14_usize, 0..14_usize), 0..4),
        retry in vec((0..14_usize, 0..14_usize), 0..3),
        rejected in vec(0..14_usize, 0..3),
    ) {
        let rejected: Vec<_> = rejected.iter().map(|index| json!({ "index": index, "reason": "r" })).collect();
        let ack = json!({ "wire": 1, "events": sent, "accepted": accepted, "retry": retry, "rejected": rejected });
        let mut times = [0; 14];
        accepted.iter().chain(&retry).for_each(|&(first, last)| (first..=last).for_each(|at| times[at] += 1));
        rejected.iter().for_each(|entry| times[entry["index"].as_u64().expect("a number") as usize] += 1);
        let ordered = accepted.iter().chain(&retry).all(|(first, last)| first <= last);
        let exact = times[..sent].iter().all(|&times| times == 1) && times[sent..].iter().all(|&times| times == 0);
        let read = Ack::parse(ack.to_string().as_bytes(), sent);
        prop_assert_eq!(read.is_ok(), ordered && exact, "{} {:?}", ack, read);
    }

    #[test]
    fn headers_are_read_back(
        sent_at in number(), mono in number(), attempt in 1..=u32::MAX, sender in stream(),
        numbers in any::<[u64; 9]>(), dropped in number(),
    ) {
        let [posted, adopted, acked, rejected, merged, dead, spooled, queued, in_flight] = numbers;
        let dropped = BTreeMap::from([("queue_full".to_owned(), dropped)]);
        let mut counters = Counters::default();
        (counters.posted, counters.adopted, counters.acked) = (posted, adopted, acked);
        (counters.rejected, counters.dropped, counters.merged) = (rejected, dropped, merged);
        (counters.dead, counters.spooled) = (dead, spooled);
        (counters.queued, counters.in_flight) = (queued, in_flight);
        let headers = Headers {
            sent_at, mono, boot: "b-1".to_owned(), events_boot: "b-0".to_owned(), attempt, sender, counters,
            batch: (attempt % 2 == 0).then(|| format!("{sender}-{mono}")),
        };
        let pairs = headers.pairs().into_iter().collect::<HashMap<_, _>>();
        prop_assert!(pairs.values().all(|value| value.bytes().all(|byte| (b' '..=b'~').contains(&byte))));
        prop_assert_eq!(Headers::read(|name| pairs.get(name).map(String::as_str)), Ok(headers.clone()));
        // Sums of numbers that anyone may have sent.
        let _ = (headers.counters.balances(), headers.counters.dropped_in_all());
    }

    #[test]
    fn no_header_panics(values in vec(any::<String>(), 7)) {
        let _ = Headers::read(|name| values.get(name.len() % 7).map(String::as_str));
    }
}

fn ack_error(ack: Value, sent: usize) -> AckError {
    Ack::parse(ack.to_string().as_bytes(), sent).expect_err("no ack")
}

/// B25: spans that a hostile server draws cost no more than the batch has events.
#[test]
fn a_span_up_to_the_largest_number_ends_at_the_batchs_end() {
    let span = |first: u64, last: u64| json!({ "wire": 1, "events": 3, "accepted": [[first, last]] });
    assert!(matches!(ack_error(span(0, u64::MAX), 3), AckError::OutOfRange(3)));
    assert!(matches!(ack_error(span(u64::MAX, u64::MAX), 3), AckError::OutOfRange(_)));
    assert!(matches!(ack_error(span(2, 1), 3), AckError::OutOfRange(2)));
    let huge = json!({ "wire": 1, "events": u64::MAX, "accepted": [[0, u64::MAX]] });
    assert!(matches!(ack_error(huge, 3), AckError::Count { answered: usize::MAX, sent: 3 }));
}

#[test]
fn another_version_says_so_whatever_else_it_holds() {
    assert!(matches!(Batch::parse(br#"{"wire":2,"rows":[]}"#), Err(BodyError::Version(2))));
    assert!(ack_error(json!({ "wire": 2, "ok": true }), 1).is_version());
    assert!(!ack_error(json!({ "ok": true }), 1).is_version());
}

#[test]
fn a_batch_of_more_events_than_allowed_is_refused() {
    let event: Posted = (1, "r".to_owned(), 1, 1, json!({}));
    let events = |count| vec![event.clone(); count];
    assert!(Batch::parse(&body(&simple_head(), 0, &events(MAX_EVENTS))).is_ok());
    let error = Batch::parse(&body(&simple_head(), 0, &events(MAX_EVENTS + 1))).expect_err("one too many");
    assert_eq!(error.to_string(), "events holds 101: at most 100 are allowed");
}

#[test]
fn a_number_that_json_does_not_know_becomes_null_and_a_key_that_is_no_text_is_an_error() {
    let mut out = Vec::new();
    encode_event(&mut out, Uuid::nil(), "r", 0, 0, &[f64::NAN, f64::INFINITY]).expect("JSON");
    assert!(out.ends_with(br#""data":[null,null]}"#));
    let no_text = HashMap::from([((1, 2), 3)]);
    assert!(encode_event(&mut out, Uuid::nil(), "r", 0, 0, &no_text).is_err());
}

#[test]
fn data_keeps_its_spelling_however_deep_or_long_its_numbers() {
    let deep = "[".repeat(5000) + &"]".repeat(5000);
    for data in ["1.10", "123456789012345678901234567890", "{\"b\":1,\"a\":1,\"b\":2}", deep.as_str()] {
        let event = format!(r#""id":"{}","route":"r","at":1,"mono":1,"data":{data}}}"#, Uuid::nil());
        let mut writer = BatchWriter::new(&simple_head());
        writer.event(0, event.as_bytes());
        let written = writer.finish();
        let read = Batch::parse(&written).expect("a batch");
        assert_eq!(read.events[0].data.get(), data);
        assert_eq!(serde_json::to_vec(&read).expect("JSON"), written);
    }
}

#[test]
fn gzip_of_any_shape_is_inflated_up_to_the_limit_and_nothing_else_is() {
    let bomb = gzip(&vec![0; 8 << 20]);
    assert!(bomb.len() < 64 << 10);
    assert!(matches!(gunzip(&bomb, MAX_BODY), Err(InflateError::TooLarge(MAX_BODY))));
    let two = [gzip(b"ab"), gzip(b"cd")].concat();
    assert_eq!(gunzip(&two, 4).expect("two members"), b"abcd");
    assert!(matches!(gunzip(&two, 3), Err(InflateError::TooLarge(3))));
    let whole = gzip(b"abcd");
    for cut in [0, 1, 10, whole.len() - 1] {
        assert!(matches!(gunzip(&whole[..cut], 10), Err(InflateError::Corrupt(_))), "{cut}");
    }
    assert!(matches!(gunzip(b"{\"wire\":1}", 10), Err(InflateError::Corrupt(_))));
    assert_eq!(gunzip(&gzip(b""), 0).expect("nothing"), b"");
}

#[test]
fn a_header_that_is_wrong_is_named_with_what_is_allowed() {
    let good = Headers {
        sent_at: 1,
        mono: 1,
        boot: "b".to_owned(),
        events_boot: "b".to_owned(),
        attempt: 1,
        batch: Some("b-1".to_owned()),
        sender: StreamId::from_bytes([1; 16]),
        counters: Counters::default(),
    };
    let read = |name: &str, value: Option<&str>| {
        let mut pairs = good.pairs().into_iter().collect::<HashMap<_, _>>();
        match value {
            Some(value) => pairs.insert(names::ATTEMPT, value.to_owned()),
            None => pairs.remove(name),
        };
        Headers::read(|name| pairs.get(name).map(String::as_str)).map_err(|error| error.to_string())
    };
    assert_eq!(
        read(names::SENDER, None),
        Err("afterboot-sender is missing: it must be 32 hex digits".into())
    );
    let wrong = r#"afterboot-attempt is "0": a whole number from 1 is allowed"#;
    assert_eq!(read(names::ATTEMPT, Some("0")), Err(wrong.into()));
    let wrong = r#"afterboot-attempt is "-1": a whole number is allowed"#;
    assert_eq!(read(names::ATTEMPT, Some("-1")), Err(wrong.into()));
}
