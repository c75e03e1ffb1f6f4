//! The core alone, with a made-up clock: what it must hold after every step.

mod audit;
mod ledger;
mod orders;

use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::exchange::{Outgoing, Posting, Refusal};
use super::limits::Limits;
use super::receipt::ReceiptSender;
use super::time::{Moment, Now};
use super::verdict::Outcome;
use crate::wire::{MAX_BODY, Priority, StreamId, Verdict, encode_event};

const STREAM: StreamId = StreamId::from_bytes([7; 16]);
const DAY: u64 = 24 * 3_600_000;

fn core(events: usize, has_spool: bool) -> Core {
    let limits = Limits {
        events,
        bytes: 1 << 20,
        batch_events: 10,
        batch_bytes: MAX_BODY,
        replay_spread: Duration::ZERO,
        keeps_letters: true,
    };
    Core::new(limits, "shop".to_owned(), STREAM, Arc::from("boot"), 1, has_spool)
}

fn at(milliseconds: u64) -> Now {
    Now { at: Moment::from_millis(milliseconds), wall: 1_790_000_000_000 + milliseconds, mono: milliseconds }
}

fn encoded(data: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode_event(&mut out, uuid::Uuid::nil(), "r", 0, 0, data).unwrap();
    out
}

struct Wish<'a> {
    priority: Priority,
    merge: Option<&'a str>,
    urgent: bool,
    receipt: Option<ReceiptSender>,
    keep: u64,
}

impl Default for Wish<'_> {
    fn default() -> Self {
        Wish { priority: Priority::Basic, merge: None, urgent: false, receipt: None, keep: DAY }
    }
}

fn post(core: &mut Core, data: &str, wish: Wish<'_>, now: Now) -> Result<bool, Refusal> {
    let delay = match wish.priority {
        Priority::Vital => Duration::from_secs(1),
        Priority::Basic => Duration::from_secs(5),
    };
    let encoded = encoded(data);
    let posting = Posting {
        route: "r",
        encoded: &encoded,
        priority: wish.priority,
        delay,
        merge: wish.merge,
        urgent: wish.urgent,
        receipt: wish.receipt,
        expiry: Duration::from_millis(wish.keep),
    };
    core.post(posting, now)
}

/// Nobody listens.
fn receipt() -> ReceiptSender {
    ReceiptSender::new(drop)
}

fn datas(outgoing: &Outgoing) -> Vec<String> {
    let event = |slot: &super::batch::Slot| {
        let text = format!("{{{}", String::from_utf8_lossy(outgoing.batch.event(*slot)));
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["data"].as_str().unwrap().to_owned()
    };
    outgoing.batch.slots().iter().map(event).collect()
}

fn accept(core: &mut Core, outgoing: Outgoing, now: Now) {
    let verdicts = vec![Verdict::Accepted; outgoing.batch.len()];
    core.settle(outgoing, Outcome::Settled(verdicts), now);
}

fn fail(core: &mut Core, outgoing: Outgoing, now: Now) {
    core.settle(outgoing, Outcome::Retry { retry_after: None }, now);
}
