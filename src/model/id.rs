//! Which task.

/// Which task: a place in the table, and the place's generation, so that an old id never names a new task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Id {
    pub(crate) fn new(index: u32, generation: u32) -> Id {
        Id { index, generation }
    }

    pub(crate) fn place(self) -> usize {
        self.index as usize
    }
}
