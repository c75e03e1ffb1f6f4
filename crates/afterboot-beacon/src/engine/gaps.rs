//! Gaps: numbers that will never arrive, until a batch declares them.

use crate::wire::{Gap, StreamId};

/// From so many ranges on they are put in order and joined.
const JOIN_AT: usize = 1024;

#[derive(Debug)]
pub(super) struct Gaps {
    ranges: Vec<Gap>,
    join_at: usize,
}

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps { ranges: Vec::new(), join_at: JOIN_AT }
    }
}

impl Gaps {
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    #[cfg(test)]
    pub(super) fn ranges(&self) -> &[Gap] {
        &self.ranges
    }

    /// The first of them, to be declared.
    pub(super) fn take(&mut self, ranges: usize) -> impl Iterator<Item = Gap> {
        self.ranges.drain(..ranges)
    }

    pub(super) fn add(&mut self, stream: StreamId, seq: u64, why: &str) {
        add(&mut self.ranges, stream, seq, why);
        self.join_many();
    }

    pub(super) fn declare(&mut self, gaps: impl IntoIterator<Item = Gap>) {
        for gap in gaps {
            join(&mut self.ranges, gap);
        }
        self.join_many();
    }

    /// A batch takes some ranges with it and, where it is given up itself, gives them back out of order. While nothing
    /// can be sent they would be more and more.
    fn join_many(&mut self) {
        if self.ranges.len() < self.join_at {
            return;
        }
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.sort_unstable_by_key(|gap| (gap.stream, gap.first));
        for gap in ranges {
            join(&mut self.ranges, gap);
        }
        self.join_at = JOIN_AT.max(2 * self.ranges.len());
    }
}

fn join(ranges: &mut Vec<Gap>, gap: Gap) {
    match ranges.last_mut() {
        Some(last) if last.stream == gap.stream && last.why == gap.why && last.last + 1 == gap.first => {
            last.last = gap.last;
        }
        _ => ranges.push(gap),
    }
}

/// Adds one number, growing the last range where it continues it.
pub(super) fn add(ranges: &mut Vec<Gap>, stream: StreamId, seq: u64, why: &str) {
    match ranges.last_mut() {
        Some(gap) if gap.stream == stream && gap.last + 1 == seq && gap.why == why => gap.last = seq,
        _ => ranges.push(Gap { stream, first: seq, last: seq, why: why.to_owned() }),
    }
}
