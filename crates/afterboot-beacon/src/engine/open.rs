//! The batch that is being filled. Its events have no numbers yet, so they may be merged and dropped without a trace in
//! the stream.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

use super::batch::Batch;
use super::time::Moment;

/// For how long a later event of the same key replaces an earlier one: 10 s, from Facebook's Banzai client.
pub(crate) const MERGE_WINDOW: Duration = Duration::from_secs(10);

/// From this size on, the bytes of merged and displaced events are removed from the buffer.
const MAX_GARBAGE: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) batch: Batch,
    keys: HashMap<Key, Mergeable>,
    garbage: usize,
}

/// A route and a merge key, by two hashes with random seeds: 128 bits, so that a long key costs what a short one
/// does.
type Key = (u64, u64);

fn key(route: &str, key: &str) -> Key {
    static HASHERS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    let [first, second] = &*HASHERS;
    (first.hash_one((route, key)), second.hash_one((route, key)))
}

/// What a key costs in memory: its place in a table that doubles as it grows.
pub(crate) const KEY_BYTES: usize = 2 * size_of::<(Key, Mergeable)>();

#[derive(Debug, Clone, Copy)]
struct Mergeable {
    /// Where in the buffer, which names the slot.
    start: u32,
    posted: Moment,
}

impl Open {
    pub(crate) fn new(batch: Batch) -> Open {
        Open { batch, keys: HashMap::new(), garbage: 0 }
    }

    /// What it costs in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.batch.bytes() + self.key_bytes()
    }

    /// The part of it that is freed when it is sealed.
    pub(crate) fn key_bytes(&self) -> usize {
        self.keys.len() * KEY_BYTES
    }

    /// Returns the size of the event that a new one with this key would replace.
    pub(crate) fn replaceable(&self, route: &str, key: &str, now: Moment) -> Option<usize> {
        let entry = self.entry(route, key, now)?;
        self.batch.slots().iter().find(|slot| slot.start == entry.start).map(|slot| slot.len as usize)
    }

    fn entry(&self, route: &str, key: &str, now: Moment) -> Option<Mergeable> {
        let entry = *self.keys.get(&self::key(route, key))?;
        (now.saturating_sub(entry.posted) <= MERGE_WINDOW).then_some(entry)
    }

    /// Removes the event of this key. Was there one?
    pub(crate) fn replace(&mut self, route: &str, key: &str, now: Moment) -> bool {
        let Some(entry) = self.entry(route, key, now) else { return false };
        let Some(index) = self.batch.slots().iter().position(|slot| slot.start == entry.start) else {
            return false;
        };
        let bytes = self.batch.remove(index);
        self.leave_garbage(bytes);
        true
    }

    /// Its first event goes. Was there one?
    pub(crate) fn displace(&mut self) -> bool {
        let Some(slot) = self.batch.pop_first() else { return false };
        self.leave_garbage(slot.len as usize);
        true
    }

    fn leave_garbage(&mut self, bytes: usize) {
        self.garbage += bytes;
        if self.garbage > MAX_GARBAGE {
            self.clear_garbage();
        }
    }

    fn clear_garbage(&mut self) {
        let before: Vec<u32> = self.batch.slots().iter().map(|slot| slot.start).collect();
        self.batch.shrink();
        let after: HashMap<u32, u32> =
            before.into_iter().zip(self.batch.slots().iter().map(|slot| slot.start)).collect();
        self.keys.retain(|_, entry| match after.get(&entry.start) {
            Some(start) => {
                entry.start = *start;
                true
            }
            None => false,
        });
        self.garbage = 0;
    }

    pub(crate) fn push(&mut self, encoded: &[u8], merge: Option<(&str, &str)>, now: Moment) {
        self.batch.push(0, encoded);
        if let Some((route, name)) = merge
            && let Some(slot) = self.batch.slots().last()
        {
            self.keys.insert(key(route, name), Mergeable { start: slot.start, posted: now });
        }
    }
}
