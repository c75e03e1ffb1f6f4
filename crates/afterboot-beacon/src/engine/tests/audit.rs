//! Counts everything again, from what there is.

use std::collections::BTreeMap;

use crate::engine::batch::Batch;
use crate::engine::core::Core;
use crate::engine::open::Open;

impl Core {
    /// Panics where the books and the goods differ. `held`: batches that the test has, as the driver would.
    pub(crate) fn audit(&self, held: &[&Batch], in_flight: u64) {
        let open = self.open.iter().flatten().map(|open: &Open| &open.batch);
        let queued = self.queues.iter().flatten().chain(&self.replay).chain(&self.for_disk);
        let all: Vec<&Batch> = open.chain(queued).chain(held.iter().copied()).collect();
        let counters = self.ledger.counters();
        assert!(counters.balances(), "{counters:?}");
        let events: u64 = all.iter().map(|batch| batch.events()).sum();
        assert_eq!(counters.queued + counters.in_flight, events, "{counters:?}");
        assert_eq!(counters.in_flight, in_flight);
        let bytes: usize = all.iter().map(|batch| batch.bytes()).sum();
        let keys: usize = self.open.iter().flatten().map(Open::key_bytes).sum();
        assert_eq!(self.bytes, bytes + keys);
        for queue in &self.queues {
            let places: Vec<_> = queue.iter().map(Batch::place).collect();
            assert!(places.is_sorted(), "{places:?}");
            assert!(queue.iter().is_sorted_by_key(|batch| batch.due), "the front is the first to be due");
        }
    }

    /// Which of the numbers that were given are in memory or declared, each how often.
    pub(crate) fn numbers(&self, held: &[&Batch]) -> BTreeMap<u64, u32> {
        let queued = self.queues.iter().flatten().chain(&self.replay).chain(&self.for_disk);
        let mut numbers = BTreeMap::new();
        for batch in queued.chain(held.iter().copied()) {
            for slot in batch.slots() {
                *numbers.entry(slot.seq).or_default() += 1;
            }
            for gap in &batch.head.gaps {
                for seq in gap.first..=gap.last {
                    *numbers.entry(seq).or_default() += 1;
                }
            }
        }
        for gap in self.gaps.ranges() {
            for seq in gap.first..=gap.last {
                *numbers.entry(seq).or_default() += 1;
            }
        }
        numbers
    }

    pub(crate) fn given(&self) -> u64 {
        self.next_seq
    }
}
