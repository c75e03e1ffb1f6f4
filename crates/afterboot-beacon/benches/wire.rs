//! What a batch costs, in bytes and in time: objects against tuples, and the levels of gzip. The numbers of `WIRE.md`:
//! `cargo bench -p afterboot-beacon --bench wire`. What is measured is checked first.
#![expect(clippy::print_stdout, reason = "its output is the table")]

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use afterboot_beacon::wire::{
    Batch, BatchWriter, Head, MAX_BODY, Priority, StreamId, encode_event, gunzip, gzip,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use uuid::Uuid;

const SIZES: [usize; 3] = [1, 10, 100];
const LEVELS: [u32; 4] = [1, 3, 6, 9];

/// Five properties, as a shop's page would say them.
#[derive(Serialize)]
struct Data {
    path: String,
    amount: u64,
    currency: &'static str,
    ok: bool,
    referrer: Option<&'static str>,
}

struct Posted {
    id: Uuid,
    route: &'static str,
    at: u64,
    mono: u64,
    data: Data,
}

fn main() {
    let all = events(100);
    println!("bytes of a batch of five properties an event\n");
    println!("| events | form | raw | gzip 1 | gzip 3 | gzip 6 | gzip 9 |");
    println!("| --: | :-- | --: | --: | --: | --: | --: |");
    for size in SIZES {
        let (objects, tuples) = (objects(&all[..size]), tuples(&all[..size]));
        check(&objects, &tuples, &all[..size]);
        let gain = deflate(&objects, 1).len() as f64 / deflate(&tuples, 1).len() as f64;
        assert!(gain < 1.1, "tuples are worth their trouble after all: {gain}");
        for (form, body) in [("objects", &objects), ("tuples", &tuples)] {
            let sizes = LEVELS.map(|level| deflate(body, level).len().to_string());
            println!("| {size} | {form} | {} | {} |", body.len(), sizes.join(" | "));
        }
    }
    println!("\ntime for a batch: medians\n");
    println!("| events | objects written | tuples written | gzip 1 | gzip 3 | gzip 6 | gzip 9 | parsed |");
    println!("| --: | --: | --: | --: | --: | --: | --: | --: |");
    for size in SIZES {
        let events = &all[..size];
        let body = objects(events);
        let mut row = vec![median(|| objects(events)), median(|| tuples(events))];
        row.extend(LEVELS.map(|level| median(|| deflate(&body, level))));
        row.push(median(|| Batch::parse(&body).expect("a batch")));
        let row: Vec<String> = row.into_iter().map(micros).collect();
        println!("| {size} | {} |", row.join(" | "));
    }
    one_event(&all);
}

/// Is it worth while to write integers otherwise than serde_json does?
fn one_event(events: &[Posted]) {
    let mut out = Vec::with_capacity(MAX_BODY);
    let crate_own = median(|| {
        out.clear();
        for event in events {
            encode(&mut out, event);
        }
        out.len()
    });
    let mut by_hand = Vec::with_capacity(MAX_BODY);
    let digits = median(|| {
        by_hand.clear();
        for event in events {
            encode_with_own_digits(&mut by_hand, event);
        }
        by_hand.len()
    });
    assert_eq!(out, by_hand);
    let each = |time: Duration| time.as_nanos() / events.len() as u128;
    println!("\none event: {} ns; with digits written by hand {} ns", each(crate_own), each(digits));
}

fn events(count: usize) -> Vec<Posted> {
    let mut random = StdRng::seed_from_u64(7);
    let routes = ["page_view", "add_to_cart", "order"];
    let currencies = ["EUR", "USD", "CZK"];
    let referrers = [None, Some("https://search.example/"), Some("https://news.example/today")];
    let mut at = 1_790_000_000_000;
    (0..count)
        .map(|_| {
            at += random.random_range(5..900);
            // Version 7: 48 bits of time, then random bits but for the version's and the variant's.
            let bits = u128::from(at) << 80 | random.random::<u128>() >> 48;
            let bits = bits & !(0xF << 76) | 0x7 << 76;
            Posted {
                id: Uuid::from_u128(bits & !(0x3 << 62) | 0x2 << 62),
                route: routes[random.random_range(0..3)],
                at,
                mono: at - 1_789_990_000_000,
                data: Data {
                    path: format!("/products/{}", random.random_range(1000..9999)),
                    amount: random.random_range(99..50_000),
                    currency: currencies[random.random_range(0..3)],
                    ok: random.random_bool(0.9),
                    referrer: referrers[random.random_range(0..3)],
                },
            }
        })
        .collect()
}

fn head() -> Head {
    Head {
        app: "shop".to_owned(),
        stream: StreamId::from_bytes([0x5A; 16]),
        user: Some("user-48151623".to_owned()),
        session: Some("c9bf9e57-1685-4c89-bafb-ff5af830be8a".to_owned()),
        priority: Priority::Basic,
        gaps: Vec::new(),
        end: None,
    }
}

fn encode(out: &mut Vec<u8>, event: &Posted) {
    encode_event(out, event.id, event.route, event.at, event.mono, &event.data).expect("JSON");
}

fn encode_with_own_digits(out: &mut Vec<u8>, event: &Posted) {
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    out.extend_from_slice(b"\"id\":\"");
    out.extend_from_slice(event.id.hyphenated().encode_lower(&mut text).as_bytes());
    out.extend_from_slice(b"\",\"route\":");
    serde_json::to_writer(&mut *out, event.route).expect("JSON");
    out.extend_from_slice(b",\"at\":");
    digits(out, event.at);
    out.extend_from_slice(b",\"mono\":");
    digits(out, event.mono);
    out.extend_from_slice(b",\"data\":");
    serde_json::to_writer(&mut *out, &event.data).expect("JSON");
    out.push(b'}');
}

fn digits(out: &mut Vec<u8>, mut number: u64) {
    let mut text = [0; 20];
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}

fn objects(events: &[Posted]) -> Vec<u8> {
    let mut writer = BatchWriter::new(&head());
    let mut encoded = Vec::with_capacity(512);
    for (seq, event) in (0..).zip(events) {
        encoded.clear();
        encode(&mut encoded, event);
        writer.event(seq, &encoded);
    }
    writer.finish()
}

/// The same without the names of an event's own fields: `[seq,id,route,at,mono,data]`.
fn tuples(events: &[Posted]) -> Vec<u8> {
    let mut body = BatchWriter::new(&head()).finish();
    body.truncate(body.len() - 2);
    for (seq, event) in events.iter().enumerate() {
        if seq > 0 {
            body.push(b',');
        }
        let row = (seq, event.id, event.route, event.at, event.mono, &event.data);
        serde_json::to_writer(&mut body, &row).expect("JSON");
    }
    body.extend_from_slice(b"]}");
    body
}

fn check(objects: &[u8], tuples: &[u8], events: &[Posted]) {
    assert!(objects.len() <= MAX_BODY);
    let batch = Batch::parse(objects).expect("a batch");
    let tuples: serde_json::Value = serde_json::from_slice(tuples).expect("JSON");
    assert_eq!(batch.events.len(), events.len());
    for (index, event) in batch.events.iter().enumerate() {
        let row = &tuples["events"][index];
        assert_eq!((event.id, event.at), (events[index].id, events[index].at));
        assert_eq!(row[1], event.id.to_string());
        assert_eq!(row[5].to_string().len(), event.data.get().len());
    }
    for level in LEVELS {
        assert_eq!(gunzip(&deflate(objects, level), MAX_BODY).expect("gzip"), objects);
    }
    assert_eq!(gunzip(&gzip(objects), MAX_BODY).expect("gzip"), objects);
}

fn deflate(body: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(body).expect("a Vec takes all");
    encoder.finish().expect("a Vec takes all")
}

#[expect(clippy::disallowed_methods, reason = "real time is the point")]
fn median<T>(mut run: impl FnMut() -> T) -> Duration {
    let mut sample = || {
        let began = Instant::now();
        for _ in 0..20 {
            black_box(run());
        }
        began.elapsed() / 20
    };
    sample();
    let mut samples: Vec<Duration> = (0..101).map(|_| sample()).collect();
    samples.sort();
    samples[samples.len() / 2]
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_nanos() as f64 / 1000.0)
}
