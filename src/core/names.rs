//! Which names are taken: each task is told apart from all others that its governor knows.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use crate::model::name::Name;

/// From here on the names are spread over [`SHARDS`], so that a set of a million never grows as a whole under the lock.
const WHOLE: usize = 4_096;
const SHARDS: usize = 128;

/// Knows names by their hashes: two names of one hash, one pair in 10^19, would be taken for one.
#[derive(Debug)]
pub(super) struct Names {
    seed: u64,
    first: Shard,
    /// None while there are few names.
    shards: Vec<Shard>,
    len: usize,
    /// How many of the names end in a number as it is given to the second of a name: `a#2`.
    numbered: usize,
}

#[derive(Debug, Default)]
struct Shard {
    /// Names of one task.
    once: HashSet<u64, AsIs>,
    /// Names that were declared again, or could not be had unnumbered.
    again: HashMap<u64, Again, AsIs>,
}

#[derive(Debug)]
struct Again {
    /// How many tasks of that name are known.
    tasks: u32,
    /// The number of the next one.
    next: u32,
}

impl Default for Names {
    fn default() -> Names {
        Names {
            seed: RandomState::new().hash_one(()),
            first: Shard::default(),
            shards: Vec::new(),
            len: 0,
            numbered: 0,
        }
    }
}

impl Names {
    /// A name that no other known task has.
    pub(super) fn take(&mut self, declared: Cow<'static, str>) -> Name {
        let hash = self.hash(&declared);
        let nth = self.enter(&declared, hash);
        Name::new(declared, nth)
    }

    fn enter(&mut self, declared: &str, hash: u64) -> u32 {
        if self.is_first(declared, hash) {
            self.shard(hash).once.insert(hash);
            return 1;
        }
        let skipped = if self.numbered > 0 { self.skipped(declared, hash) } else { 0 };
        let again = self.shard(hash).again.entry(hash).or_insert(Again { tasks: 0, next: 2 });
        let nth = again.next.saturating_add(skipped);
        again.tasks += 1;
        // Four thousand million tasks later the numbers begin anew.
        again.next = nth.checked_add(1).unwrap_or(2);
        nth
    }

    /// Whether the name is new here and may stand unnumbered.
    fn is_first(&mut self, declared: &str, hash: u64) -> bool {
        let shard = self.shard(hash);
        if shard.again.contains_key(&hash) {
            return false;
        }
        if shard.once.remove(&hash) {
            shard.again.insert(hash, Again { tasks: 1, next: 2 });
            return false;
        }
        self.len += 1;
        self.numbered += usize::from(number(declared).is_some());
        self.spread();
        !self.is_given(declared)
    }

    /// How many of the next numbers somebody has declared with the name in so many words.
    fn skipped(&mut self, name: &str, hash: u64) -> u32 {
        let next = self.shard(hash).again.get(&hash).map_or(2, |again| again.next);
        (0..).find(|n| !self.is_declared(&format!("{name}#{}", next.saturating_add(*n)))).unwrap_or(0)
    }

    /// The task is forgotten.
    pub(super) fn give_back(&mut self, name: &Name) {
        let hash = self.hash(name.declared());
        let shard = self.shard(hash);
        let gone = match shard.again.get_mut(&hash) {
            Some(again) => {
                again.tasks -= 1;
                again.tasks == 0 && shard.again.remove(&hash).is_some()
            }
            None => shard.once.remove(&hash),
        };
        if gone {
            self.len -= 1;
            self.numbered -= usize::from(number(name.declared()).is_some());
        }
    }

    /// Whether `a#2` has been given to the second task named `a`.
    fn is_given(&mut self, text: &str) -> bool {
        let Some((name, number)) = number(text) else { return false };
        let hash = self.hash(name);
        self.shard(hash).again.get(&hash).is_some_and(|again| again.next > number)
    }

    fn is_declared(&mut self, text: &str) -> bool {
        let hash = self.hash(text);
        let shard = self.shard(hash);
        shard.once.contains(&hash) || shard.again.contains_key(&hash)
    }

    fn hash(&self, text: &str) -> u64 {
        let words = text.as_bytes().chunks_exact(8);
        let rest =
            words.remainder().iter().fold(text.len() as u64, |rest, byte| rest << 8 | u64::from(*byte));
        let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        words.chain([rest]).fold(self.seed, mix)
    }

    fn shard(&mut self, hash: u64) -> &mut Shard {
        if self.shards.is_empty() { &mut self.first } else { &mut self.shards[shard_of(hash)] }
    }

    fn spread(&mut self) {
        if self.len < WHOLE || !self.shards.is_empty() {
            return;
        }
        self.shards.resize_with(SHARDS, Shard::default);
        self.shards.iter_mut().for_each(|shard| shard.once.reserve(2 * WHOLE / SHARDS));
        let Shard { once, again } = std::mem::take(&mut self.first);
        once.into_iter().for_each(|hash| _ = self.shards[shard_of(hash)].once.insert(hash));
        again.into_iter().for_each(|(hash, names)| _ = self.shards[shard_of(hash)].again.insert(hash, names));
    }
}

/// Both halves of a product: each bit of either side moves about half of the others.
fn mix(hash: u64, word: u64) -> u64 {
    let wide = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
    (wide as u64) ^ (wide >> 64) as u64
}

/// Bits in the middle: the set inside looks at both ends.
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}

/// Name and number of `a#2`, as such a number is written.
fn number(text: &str) -> Option<(&str, u32)> {
    if !text.ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    let (name, digits) = text.rsplit_once('#')?;
    let number = digits.parse().ok().filter(|number| *number >= 2)?;
    digits.starts_with(|first: char| ('1'..='9').contains(&first)).then_some((name, number))
}

type AsIs = BuildHasherDefault<Same>;

/// What is hashed is a hash already.
#[derive(Debug, Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole hashes are looked up")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn take(names: &mut Names, text: &str) -> String {
        names.take(text.to_owned().into()).to_string()
    }

    /// I39: whoever declares `a#2` in so many words keeps it, unless it was given before.
    #[test]
    fn the_next_free_number_is_given() {
        let mut names = Names::default();
        let shown = ["a#2", "a", "a", "a", "a#3", "a#2", "a#2"].map(|text| take(&mut names, text));
        assert_eq!(shown, ["a#2", "a", "a#3", "a#4", "a#3#2", "a#2#2", "a#2#3"]);
        let shown = ["b#02", "b#1", "b#+2", "b", "b", "#2", "", "", ""].map(|text| take(&mut names, text));
        assert_eq!(shown, ["b#02", "b#1", "b#+2", "b", "b#2", "#2", "", "#3", "#4"]);
    }

    /// I29, I39: a service forgets names with its tasks, and a number does not come again while one of its name is known.
    #[test]
    fn a_name_is_free_again_when_the_last_of_it_is_forgotten() {
        let mut names = Names::default();
        let [first, second] = [(); 2].map(|()| names.take("a".into()));
        names.give_back(&first);
        assert_eq!(take(&mut names, "a"), "a#3");
        names.give_back(&second);
        names.give_back(&second);
        assert_eq!((take(&mut names, "a"), names.len), ("a".to_owned(), 1));
        let many: Vec<Name> = (0..10_000).map(|n| names.take(format!("n#{n}").into())).collect();
        assert_eq!((names.len, names.numbered, names.shards.len()), (10_001, 9_998, SHARDS));
        many.iter().for_each(|name| names.give_back(name));
        assert_eq!((names.len, names.numbered), (1, 0));
        assert_eq!(take(&mut names, "a"), "a#2", "found again among the many");
    }

    proptest! {
        /// I39: whatever is declared and forgotten, in whatever order.
        #[test]
        fn no_two_known_tasks_have_one_name(
            steps in prop::collection::vec(("a(#[123]){0,2}", any::<bool>(), 0_usize..8), 1..60)
        ) {
            let mut names = Names::default();
            let mut known: BTreeMap<String, Name> = BTreeMap::new();
            for (text, forgets, which) in steps {
                if forgets && let Some(shown) = known.keys().nth(which).cloned() {
                    names.give_back(&known.remove(&shown).unwrap());
                } else {
                    let name = names.take(text.into());
                    let shown = name.to_string();
                    prop_assert!(name.is(&shown));
                    prop_assert!(known.insert(shown.clone(), name).is_none(), "{shown} twice: {known:?}");
                }
            }
            known.values().for_each(|name| names.give_back(name));
            prop_assert_eq!((names.len, names.numbered), (0, 0));
        }
    }
}
