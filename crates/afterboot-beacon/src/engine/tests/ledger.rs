//! Whatever happens, the ledger balances, and every number that was given is somewhere.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::engine::batch::Batch;
use crate::engine::endpoint::HeldReason;
use crate::engine::exchange::{EvictedRow, ReplayedRow};
use crate::engine::ledger::DropReason;
use crate::wire;

#[derive(Debug, Clone)]
enum Step {
    Post { vital: bool, key: Option<u8>, urgent: bool, durable: bool, size: u16, keep: u16 },
    Wait(u16),
    Take,
    Settle { which: u8, how: u8, verdicts: Vec<u8> },
    Abort,
    User(u8),
    ForDisk,
    DiskDone { well: bool, evict: bool },
    List,
    Offline,
    Online,
    Hurry,
    Expire,
    Erase(u8),
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<bool>(), prop::option::of(0..3u8), prop::bool::weighted(0.1), prop::bool::weighted(0.1), 0..2000u16, 1..20_000u16)
            .prop_map(|(vital, key, urgent, durable, size, keep)| Step::Post { vital, key, urgent, durable, size, keep }),
        3 => (0..7000u16).prop_map(Step::Wait),
        4 => Just(Step::Take),
        4 => (any::<u8>(), 0..6u8, prop::collection::vec(0..3u8, 10)).prop_map(|(which, how, verdicts)| Step::Settle { which, how, verdicts }),
        1 => Just(Step::Abort),
        1 => (0..3u8).prop_map(Step::User),
        3 => Just(Step::ForDisk),
        3 => (prop::bool::weighted(0.8), prop::bool::weighted(0.2)).prop_map(|(well, evict)| Step::DiskDone { well, evict }),
        2 => Just(Step::List),
        1 => Just(Step::Offline),
        1 => Just(Step::Online),
        1 => Just(Step::Hurry),
        1 => Just(Step::Expire),
        1 => (0..3u8).prop_map(Step::Erase),
        1 => Just(Step::End),
    ]
}

struct Row {
    seqs: Vec<u64>,
    /// Numbers that the row declares.
    gaps: Vec<u64>,
    expires: u64,
    body: Vec<u8>,
}

/// The world around the core: a server that remembers, and a disk.
struct World {
    core: Core,
    now: u64,
    flying: Vec<Outgoing>,
    writing: Vec<Batch>,
    disk: BTreeMap<i64, Row>,
    next_row: i64,
    /// Numbers that were settled by the server or became dead.
    done: BTreeMap<u64, u32>,
    declared: BTreeMap<u64, u32>,
}

impl World {
    fn now(&self) -> Now {
        at(self.now)
    }

    fn note(numbers: &mut BTreeMap<u64, u32>, batch: &Batch, index: usize) {
        *numbers.entry(batch.slots()[index].seq).or_default() += 1;
    }

    fn settle(&mut self, which: u8, how: u8, choice: &[u8]) {
        if self.flying.is_empty() {
            return;
        }
        let outgoing = self.flying.remove(which as usize % self.flying.len());
        let now = self.now();
        let events = outgoing.batch.len();
        let outcome = match how {
            0 => Outcome::Retry { retry_after: None },
            1 => Outcome::Held(HeldReason::Status(403)),
            2 => Outcome::TooLarge,
            3 => Outcome::Refused { status: 400 },
            _ => {
                let verdict = |n: usize| match choice[n % choice.len()] {
                    0 => Verdict::Retry,
                    1 => Verdict::Rejected("no".to_owned()),
                    _ => Verdict::Accepted,
                };
                Outcome::Settled((0..events).map(verdict).collect())
            }
        };
        if let Outcome::Settled(verdicts) = &outcome {
            for (index, verdict) in verdicts.iter().enumerate() {
                if *verdict != Verdict::Retry {
                    World::note(&mut self.done, &outgoing.batch, index);
                }
            }
            if verdicts.iter().any(|verdict| *verdict != Verdict::Retry) || verdicts.is_empty() {
                for gap in &outgoing.batch.head.gaps {
                    for seq in gap.first..=gap.last {
                        *self.declared.entry(seq).or_default() += 1;
                    }
                }
            }
        }
        self.core.settle(outgoing, outcome, now);
        // A dead letter is kept; its numbers are declared.
        self.core.take_dead();
    }

    fn disk_done(&mut self, well: bool, evict: bool) {
        let batches = std::mem::take(&mut self.writing);
        let now = self.now();
        if !well {
            return self.core.not_spooled(batches, "full");
        }
        let mut rows = Vec::new();
        for mut batch in batches {
            let row = self.next_row;
            self.next_row += 1;
            let seqs = batch.slots().iter().map(|slot| slot.seq).collect();
            let gaps = batch.head.gaps.iter().flat_map(|gap| gap.first..=gap.last).collect();
            let body = wire::gunzip(&batch.body(), 1 << 20).unwrap();
            self.disk.insert(row, Row { seqs, gaps, expires: batch.expires, body });
            rows.push((batch, row));
        }
        self.core.spooled(rows, now);
        if evict && let Some((row, Row { seqs, gaps, .. })) = self.disk.pop_first() {
            // An evicted row's own declarations go with it: the server counts a little more as lost than was.
            for seq in gaps {
                *self.declared.entry(seq).or_default() += 1;
            }
            let gone = EvictedRow {
                row,
                stream: STREAM,
                first: seqs.iter().min().copied().unwrap_or(0),
                last: seqs.iter().max().copied().unwrap_or(0),
                events: seqs.len() as u64,
                reason: DropReason::SpoolFull,
            };
            self.core.evicted(&[gone]);
        }
    }

    fn list(&mut self) {
        let skip = self.core.resident_rows();
        let now = self.now();
        let user = self.core.user().map(str::to_owned);
        let mut listed = Vec::new();
        for (row, Row { expires, body, .. }) in &self.disk {
            let parsed = wire::Batch::parse(body).unwrap();
            let whose = parsed.head.user.is_none() || parsed.head.user == user;
            if !skip.contains(row) && whose && listed.len() < 3 {
                let mut batch = Batch::read(parsed, Arc::from("boot"), now.at);
                batch.expires = *expires;
                listed.push(ReplayedRow { row: *row, batch });
            }
        }
        self.core.read_back(listed, now);
    }

    fn take(&mut self, step: &Step) {
        let now = self.now();
        match step {
            Step::Post { vital, key, urgent, durable, size, keep } => {
                let key = key.map(|key| key.to_string());
                let receipt = durable.then(super::receipt);
                let wish = Wish {
                    priority: if *vital || *urgent { Priority::Vital } else { Priority::Basic },
                    merge: key.as_deref().filter(|_| !durable),
                    urgent: *urgent,
                    receipt,
                    keep: u64::from(*keep),
                };
                let _ = post(&mut self.core, &"x".repeat(usize::from(*size)), wish, now);
            }
            Step::Wait(milliseconds) => self.now += u64::from(*milliseconds),
            Step::Take => self.flying.extend(self.core.take(now)),
            Step::Settle { which, how, verdicts } => self.settle(*which, *how, verdicts),
            Step::Abort => {
                for outgoing in self.flying.drain(..) {
                    self.core.abort(outgoing);
                }
            }
            Step::User(user) => {
                let user = (*user > 0).then(|| format!("user {user}"));
                self.core.set_user(user, now);
            }
            Step::ForDisk => {
                if self.writing.is_empty() {
                    self.writing = self.core.take_for_disk(now);
                }
            }
            Step::DiskDone { well, evict } => self.disk_done(*well, *evict),
            Step::List => self.list(),
            Step::Offline => self.core.offline(),
            Step::Online => self.core.endpoint.online(now.at),
            Step::Hurry => {
                self.core.make_all_due(now);
            }
            Step::Expire => self.core.expire(now),
            Step::Erase(user) => {
                self.core.erase_user(&format!("user {user}"), now);
            }
            Step::End => self.core.end_stream(now),
        }
        for row in self.core.take_settled_rows() {
            self.disk.remove(&row);
        }
    }

    /// The books balance, and no number is lost or in two places.
    fn check(&self) {
        let flying = self.flying.iter().map(|outgoing| &outgoing.batch);
        let held: Vec<&Batch> = flying.chain(&self.writing).collect();
        let in_flight = self.flying.iter().map(|outgoing| outgoing.batch.events()).sum();
        self.core.audit(&held, in_flight);

        let mut numbers = self.core.numbers(&held);
        let resident = self.core.resident_rows();
        for (row, Row { seqs, gaps, .. }) in &self.disk {
            if !resident.contains(row) {
                for seq in seqs.iter().chain(gaps) {
                    *numbers.entry(*seq).or_default() += 1;
                }
            }
        }
        for (seq, times) in self.done.iter().chain(&self.declared) {
            *numbers.entry(*seq).or_default() += times;
        }
        for seq in 0..self.core.given() {
            assert!(numbers.contains_key(&seq), "number {seq} is nowhere");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// B6, B28: whatever happens, in whatever order.
    #[test]
    fn the_ledger_balances_and_no_number_is_lost_after_any_steps(
        steps in prop::collection::vec(step(), 1..150),
        limit in 5..40usize,
        spool in any::<bool>(),
    ) {
        let mut world = World {
            core: core(limit, spool),
            now: 0,
            flying: Vec::new(),
            writing: Vec::new(),
            disk: BTreeMap::new(),
            next_row: 1,
            done: BTreeMap::new(),
            declared: BTreeMap::new(),
        };
        for step in &steps {
            world.take(step);
            world.check();
        }
    }
}
