//! When each worker last returned to its event loop. Pure.
//!
//! tokio publishes a worker's counters when it parks and every 61 rounds of its loop. A worker that yields again and again
//! comes round every few milliseconds while its counters stand still, and would look as if one poll held it. So whoever
//! knows that a loop has come round says so: the lane before and after a poll, [`yield_if_due`](crate::yield_if_due) when
//! it goes on, the probe when it looks. Only what lies between two rounds can be a long task.

use std::collections::VecDeque;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::stalls::LONG_TASK;

/// How many stalls that a round ended wait for a probe's next look, at most 7 ms away.
const KEPT: usize = 64;

/// What a worker's own counters say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Even while the worker is awake.
    pub(crate) parks: u64,
    pub(crate) busy: Duration,
}

impl Counters {
    fn parked(self) -> bool {
        self.parks % 2 == 1
    }
}

/// A period in which a worker did not return to its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) worker: usize,
    pub(crate) start: Instant,
    /// None while it goes on.
    pub(crate) end: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    counters: Counters,
    /// Since when the counters have been like this and no round was told.
    since: Instant,
    /// The thread that told the last round. `block_in_place` hands a worker's loop to another thread; what lay between a
    /// round on one and a round on the other is not one stretch of anything.
    thread: Option<ThreadId>,
}

/// The workers of one runtime.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    seen: Vec<Seen>,
    /// Long gaps that a round ended, the last of them numbered `ended`.
    gaps: VecDeque<Gap>,
    ended: u64,
}

impl Rounds {
    /// Begins anew: nothing is known of what came before.
    pub(crate) fn reset(&mut self, counters: impl Iterator<Item = Counters>, now: Instant) {
        self.seen.clear();
        self.seen.extend(counters.map(|counters| Seen { counters, since: now, thread: None }));
        self.gaps.clear();
    }

    /// The loop of this worker has come round. A long gap that this ends is kept for the probes to judge: it would be
    /// forgotten with this round.
    pub(crate) fn came_round(&mut self, worker: usize, counters: Counters, thread: ThreadId, now: Instant) {
        let Some(seen) = self.seen.get_mut(worker) else { return };
        let last = std::mem::replace(seen, Seen { counters, since: now, thread: Some(thread) });
        let same_thread = last.thread.is_none_or(|last| last == thread);
        let still = last.counters == counters && !counters.parked();
        if still && same_thread && now.saturating_duration_since(last.since) >= LONG_TASK {
            if self.gaps.len() == KEPT {
                self.gaps.pop_front();
            }
            self.gaps.push_back(Gap { worker, start: last.since, end: Some(now) });
            self.ended += 1;
        }
    }

    /// The last gap's number, for a probe that begins to look.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// The long gaps that ended since the probe's last look and those that go on; `told` is the number of the last one that
    /// this probe knows.
    pub(crate) fn look(
        &mut self,
        counters: impl Iterator<Item = Counters>,
        told: &mut u64,
        now: Instant,
    ) -> Vec<Gap> {
        let new = usize::try_from(self.ended - *told).unwrap_or(KEPT).min(self.gaps.len());
        *told = self.ended;
        let mut gaps: Vec<Gap> = self.gaps.range(self.gaps.len() - new..).copied().collect();
        for (worker, (seen, counters)) in self.seen.iter_mut().zip(counters).enumerate() {
            if counters.parked() || counters != seen.counters {
                *seen = Seen { counters, since: now, thread: None };
            } else if now.saturating_duration_since(seen.since) >= LONG_TASK {
                gaps.push(Gap { worker, start: seen.since, end: None });
            }
        }
        gaps
    }

    /// When a worker that has not moved since the last look will have been still for long enough: looking just then sees
    /// short stalls that a look at fixed times would miss.
    pub(crate) fn look_again(&self, last: Instant) -> Option<Instant> {
        self.seen.iter().filter_map(|seen| seen.since.checked_add(LONG_TASK)).filter(|at| *at > last).min()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const AWAKE: Counters = Counters { parks: 4, busy: Duration::from_millis(3) };

    struct World {
        rounds: Rounds,
        origin: Instant,
        told: u64,
        counters: Counters,
    }

    impl World {
        fn new() -> World {
            let mut world = World {
                rounds: Rounds::default(),
                origin: tokio::time::Instant::now().into_std(),
                told: 0,
                counters: AWAKE,
            };
            world.rounds.reset([AWAKE].into_iter(), world.origin);
            world
        }

        fn at(&self, millis: u64) -> Instant {
            self.origin + Duration::from_millis(millis)
        }

        fn round(&mut self, millis: u64) {
            let now = self.at(millis);
            self.rounds.came_round(0, self.counters, thread::current().id(), now);
        }

        /// Start and end of each gap in milliseconds.
        fn look(&mut self, millis: u64) -> Vec<(u128, Option<u128>)> {
            let (origin, now) = (self.origin, self.at(millis));
            let gaps = self.rounds.look([self.counters].into_iter(), &mut self.told, now);
            let since = |at: Instant| at.duration_since(origin).as_millis();
            gaps.iter().map(|gap| (since(gap.start), gap.end.map(since))).collect()
        }
    }

    /// I33: tokio publishes counters every 61 rounds; what is told of the rounds decides.
    #[test]
    fn any_number_of_short_polls_with_a_round_behind_each_is_no_gap_though_the_counters_stand_still() {
        let mut world = World::new();
        for millis in 1..500 {
            world.round(millis);
            if millis % 6 == 0 {
                assert_eq!(world.look(millis), []);
            }
        }
        assert_eq!(world.look(540), []);
        assert_eq!(world.look(550), [(499, None)]);
    }

    /// I33: the round that ends a stall does not hide it, however late the probe looks.
    #[test]
    fn a_stall_directly_behind_a_round_is_told_though_another_round_ended_it_before_the_look() {
        let mut world = World::new();
        world.round(10);
        world.round(70);
        world.round(72);
        assert_eq!(world.look(75), [(10, Some(70))]);
        assert_eq!(world.look(81), [], "told once");
        world.round(119);
        world.round(168);
        assert_eq!(world.look(170), []);
    }

    #[test]
    fn a_worker_that_parked_meanwhile_was_not_held() {
        let mut world = World::new();
        world.round(10);
        world.counters.parks += 2;
        world.round(90);
        assert_eq!(world.look(92), []);
        world.counters.parks += 1;
        assert_eq!(world.look(99), []);
        assert_eq!(world.look(300), []);
        world.counters.parks += 1;
        assert_eq!(world.look(306), []);
        assert_eq!(world.look(356), [(306, None)]);
    }

    /// I33: `block_in_place` hands the worker's loop to another thread.
    #[test]
    fn what_lies_between_rounds_on_two_threads_is_no_gap() {
        let mut world = World::new();
        world.round(10);
        let (at, counters) = (world.at(90), world.counters);
        thread::scope(|scope| {
            scope.spawn(|| world.rounds.came_round(0, counters, thread::current().id(), at));
        });
        assert_eq!(world.look(92), []);
    }

    #[test]
    fn each_probe_is_told_of_each_gap_and_a_flood_keeps_the_last() {
        let mut world = World::new();
        for n in 1..=100 {
            world.round(n * 60);
        }
        assert_eq!(world.look(6_001).len(), KEPT);
        let mut second = 99;
        let now = world.at(6_002);
        assert_eq!(world.rounds.look([AWAKE].into_iter(), &mut second, now).len(), 1);
    }
}
