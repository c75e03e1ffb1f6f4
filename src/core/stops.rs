//! Stretches in which the whole process did not run: it was stopped, or the machine was. Pure.
//!
//! A poll that lay in such a stretch lasted longer than it held its worker. What is left of it is its own.

use std::collections::VecDeque;
use std::time::Duration;

use crate::base::clock::Stamp;

use super::stalls::LONG_TASK;

/// How many are kept; a long task is judged within moments of its end.
const KEPT: usize = 256;

/// From when to when, as far as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) start: Stamp,
    pub(crate) end: Stamp,
}

impl Stop {
    pub(crate) fn length(self) -> Duration {
        self.end.since(self.start)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stops {
    seen: VecDeque<Stop>,
}

impl Stops {
    /// The process did not run in this stretch. One that was told before, while it went on, is told again with its end.
    /// Gives the stop when it is first known to be as long as a long task.
    pub(crate) fn learn(&mut self, stop: Stop) -> Option<Stop> {
        if stop.end <= stop.start {
            return None;
        }
        let mut known = Duration::ZERO;
        let stop = match self.seen.back_mut().filter(|last| last.end >= stop.start) {
            Some(last) => {
                known = last.length();
                last.end = last.end.max(stop.end);
                *last
            }
            None => {
                if self.seen.len() == KEPT {
                    self.seen.pop_front();
                }
                self.seen.push_back(stop);
                stop
            }
        };
        (known < LONG_TASK && stop.length() >= LONG_TASK).then_some(stop)
    }

    pub(crate) fn any(&self) -> bool {
        !self.seen.is_empty()
    }

    /// How long the process ran between these moments.
    pub(crate) fn ran(&self, start: Stamp, end: Stamp) -> Duration {
        let stopped = self.seen.iter().rev().take_while(|stop| stop.end > start);
        let lost: Duration = stopped.map(|stop| stop.end.min(end).since(stop.start.max(start))).sum();
        end.since(start).saturating_sub(lost)
    }

    /// Those as long as a long task: shorter ones are what a busy machine does.
    pub(crate) fn seen(&self) -> impl Iterator<Item = &Stop> {
        self.seen.iter().filter(|stop| stop.length() >= LONG_TASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Stamp {
        Stamp::from_duration(Duration::from_millis(millis))
    }

    fn stop(start: u64, end: u64) -> Stop {
        Stop { start: at(start), end: at(end) }
    }

    /// I34: what is left of a poll is its own.
    #[test]
    fn a_stretch_lasted_as_long_as_the_process_ran_in_it() {
        let mut stops = Stops::default();
        stops.learn(stop(100, 5_000));
        stops.learn(stop(6_000, 6_030));
        let ran = |start, end| stops.ran(at(start), at(end)).as_millis();
        assert_eq!(ran(0, 90), 90);
        assert_eq!(ran(90, 5_010), 20);
        assert_eq!(ran(200, 4_000), 0);
        assert_eq!(ran(90, 6_100), 1_080);
        assert_eq!(ran(5_000, 5_400), 400);
    }

    #[test]
    fn a_stop_that_is_told_while_it_goes_on_is_one() {
        let mut stops = Stops::default();
        assert_eq!(stops.learn(stop(100, 130)), None, "what a busy machine does");
        assert_eq!(stops.learn(stop(100, 700)), Some(stop(100, 700)));
        assert_eq!(stops.learn(stop(100, 701)), None, "told");
        assert_eq!(stops.learn(stop(800, 900)), Some(stop(800, 900)));
        assert_eq!(stops.learn(stop(950, 950)), None);
        assert_eq!(stops.seen().copied().collect::<Vec<_>>(), [stop(100, 701), stop(800, 900)]);
        for n in 1..1_000 {
            stops.learn(stop(n * 1_000, n * 1_000 + 50));
        }
        assert_eq!(stops.seen().count(), KEPT);
    }
}
