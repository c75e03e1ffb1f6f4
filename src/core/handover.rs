//! Which lane polls. Pure, and the same for the governor and for its models.
//!
//! Lanes are numbered in the order in which they become the current one. One that was left behind inside a poll ends when
//! that returns; unless its successor, which waits for a thread, has never looked. Then it goes on under a number of its own,
//! and the successor sees at its first look that it is not the current one.

/// Where a lane runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// As a task on the runtime's workers.
    Worker,
    /// On a thread of the blocking pool, while a stuck poll holds a worker.
    Pool,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    current: Option<Current>,
    made: u64,
}

#[derive(Debug)]
struct Current {
    number: u64,
    /// It is to run on a thread that has to be had first, and it has not looked yet.
    awaits_thread: bool,
}

impl Lanes {
    /// Makes another lane the current one.
    pub(crate) fn next(&mut self, awaits_thread: bool) -> u64 {
        self.made += 1;
        self.current = Some(Current { number: self.made, awaits_thread });
        self.made
    }

    pub(crate) fn is_current(&self, number: u64) -> bool {
        self.current.as_ref().is_some_and(|current| current.number == number)
    }

    /// The lane looks whether there is something to do. False where it has to end.
    pub(crate) fn looks(&mut self, number: u64) -> bool {
        match &mut self.current {
            Some(current) if current.number == number => {
                current.awaits_thread = false;
                true
            }
            _ => false,
        }
    }

    /// The poll of this lane has returned. Where another one was to go on without it and never looked, it gets the line back,
    /// under this number.
    pub(crate) fn takes_back(&mut self, number: u64) -> Option<u64> {
        let overtaken = self.current.as_ref().filter(|current| current.number != number)?;
        overtaken.awaits_thread.then(|| self.next(false))
    }

    pub(crate) fn awaits_thread(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.awaits_thread)
    }

    pub(crate) fn any(&self) -> bool {
        self.current.is_some()
    }

    pub(crate) fn ends(&mut self, number: u64) {
        self.current.take_if(|current| current.number == number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_that_has_looked_keeps_the_line_and_one_that_has_not_is_overtaken() {
        let mut lanes = Lanes::default();
        let first = lanes.next(false);
        assert_eq!(lanes.takes_back(first), None);
        let second = lanes.next(true);
        assert!(lanes.looks(second));
        assert_eq!(lanes.takes_back(first), None);
        let third = lanes.next(true);
        let back = lanes.takes_back(first).unwrap();
        assert!(lanes.is_current(back) && !lanes.looks(third));
        // The other one that was left behind comes too late.
        assert_eq!(lanes.takes_back(second), None);
        lanes.ends(third);
        assert!(lanes.any());
        lanes.ends(back);
        assert_eq!(lanes.takes_back(second), None);
    }
}
