//! The server, which answers as it likes and remembers everything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use afterboot_beacon::Response;
use afterboot_beacon::testing::{Reply, Seen};
use afterboot_beacon::wire::{Ack, MAX_BODY, MAX_EVENTS, Verdict};
use serde_json::Value;
use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mood {
    Well,
    Down,
    Anything,
    Partial,
    Small,
    Slow,
}

/// The other side: what it took, and whatever it saw that should not be.
#[derive(Debug)]
pub(super) struct Far {
    pub(super) mood: Mood,
    random: u64,
    /// By key: the event's own name and its id.
    keys: BTreeMap<(String, u64), (String, String)>,
    pub(super) taken: BTreeSet<String>,
    pub(super) judged: BTreeSet<String>,
    /// Numbers of other streams that will not come: nobody's ledger here has them.
    pub(super) elsewhere: BTreeSet<(String, u64)>,
    /// Names that were erased, and since when.
    pub(super) erased: BTreeMap<String, Instant>,
    pub(super) offline: Option<Instant>,
    pub(super) wrong: Vec<String>,
    pub(super) requests: u64,
}

impl Far {
    pub(super) fn new(seed: u64) -> Far {
        Far {
            mood: Mood::Well,
            random: seed | 1,
            keys: BTreeMap::new(),
            taken: BTreeSet::new(),
            judged: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            erased: BTreeMap::new(),
            offline: None,
            wrong: Vec::new(),
            requests: 0,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn see(&mut self, seen: &Seen) -> Vec<String> {
        self.requests += 1;
        let head = &seen.batch.head;
        let mut names = Vec::new();
        if seen.batch.events.len() > MAX_EVENTS || seen.inflated_len > MAX_BODY && seen.batch.events.len() > 1
        {
            self.wrong.push(format!("{} events, {} bytes", seen.batch.events.len(), seen.inflated_len));
        }
        if self.offline.is_some_and(|since| seen.at > since) {
            self.wrong.push("a request left while offline".to_owned());
        }
        if !seen.headers.counters.balances() {
            self.wrong.push(format!("{:?}", seen.headers.counters));
        }
        for gap in head.gaps.iter().filter(|gap| gap.stream != seen.headers.sender) {
            self.elsewhere.extend((gap.first..=gap.last).map(|seq| (gap.stream.to_string(), seq)));
        }
        for event in &seen.batch.events {
            let data: Value = serde_json::from_str(event.data.get()).unwrap_or_default();
            let name = data["name"].as_str().unwrap_or_default().to_owned();
            if data["user"].as_str() != head.user.as_deref() {
                self.wrong.push(format!("{name} came as {:?}", head.user));
            }
            if self.erased.get(&name).is_some_and(|since| seen.at > *since) {
                self.wrong.push(format!("{name} was erased"));
            }
            let known = (name.clone(), event.id.to_string());
            let key = (head.stream.to_string(), event.seq);
            if self.keys.entry(key.clone()).or_insert_with(|| known.clone()) != &known {
                self.wrong.push(format!("{key:?} is {:?} and {known:?}", self.keys[&key]));
            }
            names.push(name);
        }
        names
    }

    pub(super) fn answer(&mut self, seen: &Seen) -> Reply {
        let names = self.see(seen);
        let reply = match self.mood {
            Mood::Well => Reply::Accept,
            Mood::Down => Reply::Broken,
            Mood::Slow => Reply::After(Duration::from_millis(self.random(15_000)), Box::new(Reply::Accept)),
            Mood::Small if seen.inflated_len > 900 => Reply::Status(413),
            Mood::Small => Reply::Accept,
            Mood::Partial => self.partial(&names),
            Mood::Anything => match self.random(14) {
                0 => Reply::Status(413),
                1 => Reply::Status(400),
                2 => Reply::Status(503),
                3 => Reply::Status(401),
                4 => Reply::Status(200),
                5 => Reply::RetryAfter(429, "99999999999999999999".to_owned()),
                6 => Reply::RetryAfter(503, "2".to_owned()),
                7 => Reply::Hang,
                8 => Reply::Broken,
                9 => Reply::Response(response(&Ack::all_accepted(names.len() + 1))),
                10 => self.partial(&names),
                _ => Reply::Accept,
            },
        };
        match reply {
            Reply::Accept | Reply::After(..) => self.taken.extend(names),
            Reply::Status(_) => self.judged.extend(names),
            _ => {}
        }
        reply
    }

    fn partial(&mut self, names: &[String]) -> Reply {
        let mut verdicts = Vec::new();
        for name in names {
            verdicts.push(match self.random(8) {
                0 => {
                    self.judged.insert(name.clone());
                    Verdict::Rejected("no".to_owned())
                }
                1..4 => Verdict::Retry,
                _ => {
                    self.taken.insert(name.clone());
                    Verdict::Accepted
                }
            });
        }
        Reply::Response(response(&Ack::from_verdicts(&verdicts)))
    }
}

fn response(ack: &Ack) -> Response {
    Response::new(202).with_body(serde_json::to_vec(ack).unwrap())
}
