use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use afterboot_beacon::wire::{Batch, Event, Gap, Head, Headers, Priority, StreamId, Verdict};
use serde_json::Value;
use tokio::time::Instant;

use super::connection::Raw;
use super::contract::Valid;

/// What names an event for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) app: String,
    pub(crate) stream: StreamId,
    pub(crate) seq: u64,
}

/// An event that the server has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    pub(crate) id: String,
    pub(crate) user: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) priority: Priority,
    pub(crate) route: String,
    pub(crate) at: u64,
    pub(crate) mono: u64,
    pub(crate) data: Value,
    /// How many came before it, duplicates not counted.
    pub(crate) place: usize,
}

/// One request that was read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Which connection, from 1.
    pub(crate) connection: usize,
    pub(crate) at: Instant,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// As the wire defines them, where they are valid.
    pub(crate) parsed: Option<Headers>,
    /// The head of the batch, where it is valid.
    pub(crate) head: Option<Head>,
    /// The numbers of its events.
    pub(crate) seqs: Vec<u64>,
    /// The body's size as it came.
    pub(crate) bytes: usize,
    /// The body's size once inflated.
    pub(crate) inflated: usize,
    /// Of the answer; 0 where there is none.
    pub(crate) status: u16,
}

impl Seen {
    pub(crate) fn new(
        connection: usize,
        at: Instant,
        raw: Raw,
        checked: &Result<Valid, String>,
        status: u16,
    ) -> Seen {
        let valid = checked.as_ref().ok();
        let events = valid.map_or(&[][..], |valid| &valid.batch.events);
        Seen {
            connection,
            at,
            target: raw.target,
            headers: raw.headers,
            parsed: valid.map(|valid| valid.headers.clone()),
            head: valid.map(|valid| valid.batch.head.clone()),
            seqs: events.iter().map(|event| event.seq).collect(),
            bytes: raw.body.len(),
            inflated: valid.map_or(0, |valid| valid.inflated),
            status,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// What the server knows, by its own count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// Each once, by its key.
    pub(crate) accepted: BTreeMap<Key, Stored>,
    /// With the reason that was given.
    pub(crate) rejected: BTreeMap<Key, String>,
    /// How often an event came that the server had already.
    pub(crate) duplicates: u64,
    /// Keys that came with another id than before: a client must never do that.
    pub(crate) conflicts: Vec<Key>,
    /// Numbers that will never come, as declared.
    pub(crate) gaps: Vec<(String, Gap)>,
    /// Ends of streams, as declared: app, stream, how many numbers were given.
    pub(crate) ends: BTreeMap<(String, StreamId), u64>,
    pub(crate) requests: Vec<Seen>,
    pub(crate) connections: usize,
    /// Connections that ended inside a request.
    pub(crate) aborted: usize,
    /// What broke the contract: a test's last line asserts that there is none.
    pub(crate) wrong: Vec<String>,
    pub(super) asked_again: BTreeSet<Key>,
}

impl Ledger {
    pub(super) fn take(&mut self, batch: &Batch, judge: fn(&mut Ledger, &Key) -> Verdict) -> Vec<Verdict> {
        let head = &batch.head;
        for gap in &head.gaps {
            let declared = (head.app.clone(), gap.clone());
            if !self.gaps.contains(&declared) {
                self.gaps.push(declared);
            }
        }
        if let Some(end) = head.end {
            let before = self.ends.insert((head.app.clone(), head.stream), end);
            if before.is_some_and(|before| before != end) {
                self.wrong.push(format!("stream {} ends at {end}, and at {before:?} before", head.stream));
            }
        }
        batch.events.iter().map(|event| self.take_event(head, event, judge)).collect()
    }

    fn take_event(&mut self, head: &Head, event: &Event, judge: fn(&mut Ledger, &Key) -> Verdict) -> Verdict {
        let key = Key { app: head.app.clone(), stream: head.stream, seq: event.seq };
        let verdict = judge(self, &key);
        let place = self.accepted.len();
        match (&verdict, self.accepted.entry(key.clone())) {
            (_, Entry::Occupied(had)) => {
                if had.get().id != event.id.to_string() {
                    self.conflicts.push(key);
                    return Verdict::Rejected("conflict".to_owned());
                }
                self.duplicates += 1;
                return Verdict::Accepted;
            }
            (Verdict::Accepted, Entry::Vacant(room)) => {
                room.insert(Stored::new(head, event, place));
            }
            (Verdict::Rejected(reason), _) => {
                self.rejected.insert(key, reason.clone());
            }
            (Verdict::Retry, _) => {}
        }
        verdict
    }

    /// Numbers of a stream that are neither accepted nor rejected nor in a gap, below its declared end, or below the
    /// largest that is known where no end was declared.
    pub(crate) fn missing(&self, app: &str, stream: StreamId) -> Vec<u64> {
        let of_stream = |key: &&Key| key.app == app && key.stream == stream;
        let known = self.accepted.keys().chain(self.rejected.keys()).filter(of_stream);
        let known: BTreeSet<u64> = known.map(|key| key.seq).collect();
        let gaps: Vec<&Gap> = self
            .gaps
            .iter()
            .filter(|(owner, gap)| owner == app && gap.stream == stream)
            .map(|(_, gap)| gap)
            .collect();
        let end = self.ends.get(&(app.to_owned(), stream)).copied();
        let end = end.unwrap_or_else(|| known.last().map_or(0, |last| last + 1));
        let lost =
            |seq: &u64| !known.contains(seq) && !gaps.iter().any(|gap| (gap.first..=gap.last).contains(seq));
        (0..end).filter(lost).collect()
    }

    /// The accepted events in the order in which they came.
    pub(crate) fn in_order(&self) -> Vec<(&Key, &Stored)> {
        let mut all: Vec<_> = self.accepted.iter().collect();
        all.sort_by_key(|(_, stored)| stored.place);
        all
    }

    /// In a line.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} requests on {} connections, {} accepted, {} rejected, {} duplicates, {} conflicts, {} gaps, {} ends, {} \
             aborted, wrong: {:?}",
            self.requests.len(),
            self.connections,
            self.accepted.len(),
            self.rejected.len(),
            self.duplicates,
            self.conflicts.len(),
            self.gaps.len(),
            self.ends.len(),
            self.aborted,
            self.wrong
        )
    }
}

impl Stored {
    fn new(head: &Head, event: &Event, place: usize) -> Stored {
        Stored {
            id: event.id.to_string(),
            user: head.user.clone(),
            session: head.session.clone(),
            priority: head.priority,
            route: event.route.clone(),
            at: event.at,
            mono: event.mono,
            // Numbers beyond f64 are compared as text by the tests of the wire itself.
            data: serde_json::from_str(event.data.get()).unwrap_or(Value::Null),
            place,
        }
    }
}
