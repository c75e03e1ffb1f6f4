//! SplitMix64: the same numbers for the same seed whatever becomes of a dependency, so that a seed stays a program.

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a usize")
    }

    /// One of them.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// True in `percent` of all cases.
    pub(crate) fn often(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn sometimes<T>(&mut self, percent: usize, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
        self.often(percent).then(|| value(self))
    }
}
