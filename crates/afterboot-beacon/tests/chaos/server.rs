//! The server, which answers as it likes and remembers everything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use afterboot_beacon::Response;
use afterboot_beacon::testing::{Reply, Seen};
use afterboot_beacon::wire::{Ack, MAX_BODY, MAX_EVENTS, Verdict};
use serde_json::Value;
use tokio::time::Instant;

use crate::program::Mood;
use crate::random::Random;

type Key = (String, u64);

/// What it took, and whatever it saw that should not be.
pub(crate) struct Server {
    pub(crate) mood: Mood,
    random: Random,
    /// By key: the event's own name and its id.
    keys: BTreeMap<Key, (String, String)>,
    names: BTreeMap<String, Key>,
    pub(crate) taken: BTreeSet<String>,
    /// Answered in a way that may end an event.
    pub(crate) judged: BTreeSet<String>,
    /// How many events all answers that were given called accepted, and rejected.
    pub(crate) said_accepted: u64,
    pub(crate) said_rejected: u64,
    /// Numbers of streams that are not the sender's, which will not come: nobody's ledger here has them.
    pub(crate) elsewhere: BTreeSet<Key>,
    /// Names that were erased, and since when.
    pub(crate) erased: BTreeMap<String, Instant>,
    pub(crate) offline: Option<Instant>,
    /// The streams of processes that were killed: whatever they would still say is not heard.
    pub(crate) killed: BTreeSet<String>,
    last: Option<Response>,
    pub(crate) wrong: Vec<String>,
    pub(crate) requests: u64,
}

impl Server {
    pub(crate) fn new(seed: u64) -> Server {
        Server {
            mood: Mood::Well,
            random: Random::new(!seed),
            keys: BTreeMap::new(),
            names: BTreeMap::new(),
            taken: BTreeSet::new(),
            judged: BTreeSet::new(),
            said_accepted: 0,
            said_rejected: 0,
            elsewhere: BTreeSet::new(),
            erased: BTreeMap::new(),
            offline: None,
            killed: BTreeSet::new(),
            last: None,
            wrong: Vec::new(),
            requests: 0,
        }
    }

    /// The names of its events.
    fn see(&mut self, seen: &Seen) -> Vec<String> {
        self.requests += 1;
        let head = &seen.batch.head;
        let (events, bytes) = (seen.batch.events.len(), seen.inflated_len);
        if events > MAX_EVENTS || bytes > MAX_BODY && events > 1 {
            self.wrong.push(format!("{events} events, {bytes} bytes"));
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
        let mut names = Vec::new();
        for event in &seen.batch.events {
            let data: Value = serde_json::from_str(event.data.get()).unwrap_or_default();
            let name = data["name"].as_str().unwrap_or_default().to_owned();
            if data["user"].as_str() != head.user.as_deref() {
                self.wrong.push(format!("{name} came as {:?}", head.user));
            }
            if self.erased.get(&name).is_some_and(|since| seen.at > *since) {
                self.wrong.push(format!("{name} was erased"));
            }
            let key = (head.stream.to_string(), event.seq);
            let known = (name.clone(), event.id.to_string());
            if self.keys.entry(key.clone()).or_insert_with(|| known.clone()) != &known {
                self.wrong.push(format!("{key:?} is {:?} and {known:?}", self.keys[&key]));
            }
            if self.names.entry(name.clone()).or_insert_with(|| key.clone()) != &key {
                self.wrong.push(format!("{name} is {:?} and {key:?}", self.names[&name]));
            }
            names.push(name);
        }
        names
    }

    pub(crate) fn answer(&mut self, seen: &Seen) -> Reply {
        if self.killed.contains(&seen.headers.sender.to_string()) {
            return Reply::Broken;
        }
        let names = self.see(seen);
        let mood = match self.mood {
            Mood::Anything => self.random.one(&[
                Mood::Well,
                Mood::Well,
                Mood::Broken,
                Mood::Hangs,
                Mood::Slow,
                Mood::Partial,
                Mood::Small,
                Mood::Twice,
                Mood::Wrong,
                Mood::Status,
            ]),
            mood => mood,
        };
        match mood {
            Mood::Well | Mood::Anything => self.take(seen, &names),
            Mood::Small if seen.inflated_len > 900 => self.status(413, &names),
            Mood::Small => self.take(seen, &names),
            Mood::Broken => {
                if self.random.often(30) {
                    self.taken.extend(names);
                }
                Reply::Broken
            }
            Mood::Hangs => Reply::Hang,
            Mood::Slow => {
                let reply = self.take(seen, &names);
                Reply::After(Duration::from_millis(self.random.below(15_000) as u64), Box::new(reply))
            }
            Mood::Partial => self.partial(seen, &names),
            Mood::Twice => match self.last.take() {
                Some(last) => Reply::After(Duration::from_millis(30), Box::new(Reply::Response(last))),
                None => self.take(seen, &names),
            },
            Mood::Wrong => self.wrong_answer(seen, names.len()),
            Mood::Status => {
                let status =
                    self.random.one(&[200, 204, 302, 400, 401, 403, 404, 408, 413, 415, 429, 500, 503]);
                match status {
                    429 | 503 => {
                        let after = self.random.one(&["2", "90", "99999999999999999999", "soon"]);
                        Reply::RetryAfter(status, after.to_owned())
                    }
                    status => self.status(status, &names),
                }
            }
        }
    }

    fn status(&mut self, status: u16, names: &[String]) -> Reply {
        self.judged.extend(names.iter().cloned());
        Reply::Status(status)
    }

    fn take(&mut self, seen: &Seen, names: &[String]) -> Reply {
        self.settle(seen, names, &vec![Verdict::Accepted; names.len()])
    }

    fn partial(&mut self, seen: &Seen, names: &[String]) -> Reply {
        let mut verdicts = Vec::new();
        for _ in names {
            verdicts.push(match self.random.below(8) {
                0 => Verdict::Rejected("no".to_owned()),
                1..4 => Verdict::Retry,
                _ => Verdict::Accepted,
            });
        }
        self.settle(seen, names, &verdicts)
    }

    fn settle(&mut self, seen: &Seen, names: &[String], verdicts: &[Verdict]) -> Reply {
        for (name, verdict) in names.iter().zip(verdicts) {
            match verdict {
                Verdict::Accepted => {
                    self.said_accepted += 1;
                    self.taken.insert(name.clone());
                }
                Verdict::Rejected(_) => {
                    self.said_rejected += 1;
                    self.judged.insert(name.clone());
                }
                Verdict::Retry => {}
            }
        }
        let response = response(&Ack::from_verdicts(verdicts).of(&seen.headers));
        self.last = Some(response.clone());
        Reply::Response(response)
    }

    fn wrong_answer(&mut self, seen: &Seen, events: usize) -> Reply {
        let ack = |events| Ack::all_accepted(events).of(&seen.headers);
        let response = match self.random.below(5) {
            0 => response(&ack(events + 1)),
            1 => response(&Ack { accepted: vec![(0, usize::MAX)], ..ack(events) }),
            2 => response(&Ack { wire: 2, ..ack(events) }),
            3 => Response::new(200).with_body(b"<!doctype html>".to_vec()),
            _ => {
                let mut cut = response(&ack(events));
                cut.body.pop();
                cut
            }
        };
        Reply::Response(response)
    }
}

fn response(ack: &Ack) -> Response {
    Response::new(202).with_body(serde_json::to_vec(ack).expect("JSON"))
}
