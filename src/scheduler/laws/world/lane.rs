//! What the lane does, event by event, and what each of its steps must hold.

use std::time::Duration;

use super::World;
use crate::outcome::{CancelReason, Outcome};
use crate::queue::Queue;
use crate::scheduler::laws::Verdict;
use crate::scheduler::{Actions, Fate, Work};
use crate::table::Id;

impl World {
    /// What `Lane::work`, `Lane::pick` and the beginning of `Lane::turn` do.
    pub(super) fn turn(&mut self, start_first: bool) {
        if self.polling.is_some() || !self.lane {
            return;
        }
        let mut actions = Actions::default();
        self.core.advance(self.now, &mut actions);
        self.take(actions);
        self.gate_timeout();
        let (could, earliest) = (self.could_start(), self.earliest());
        let work = self.core.work(self.now);
        let over = self.tasks.iter().all(|task| task.outcome.is_some() && !task.slot);
        assert_eq!(work == Work::Over, over, "over is when all have ended");
        match work {
            Work::Over | Work::Now => {}
            Work::At(at) => {
                assert!(at > self.now, "a moment that has passed is no reason to sleep");
                assert!(!could, "asleep until {at:?} while something could start");
                assert!(earliest.is_none_or(|earliest| at <= earliest), "asleep beyond {earliest:?}");
            }
            Work::Event => assert!(!could && earliest.is_none(), "asleep for ever beyond {earliest:?}"),
        }
        let any_woken = self.woken.iter().any(|&i| self.tasks[i].slot);
        self.alarm = if let Work::At(at) = work { Some(at) } else { None };
        self.awake = work == Work::Now || any_woken;
        self.lane = !over;
        if !self.awake {
            return;
        }
        let place = |world: &World, id: Id| world.tasks.iter().position(|task| task.id == id).unwrap();
        let picked = match self.core.start_demanded(self.now).map(|id| (place(self, id), true)) {
            None if start_first || !any_woken => {
                self.core.start_ordinary(self.now).map(|id| (place(self, id), false))
            }
            demanded => demanded,
        };
        let picked = match picked {
            Some((i, by_demand)) => {
                self.starts(i, by_demand);
                Some(i)
            }
            None => {
                assert!(!could || (!start_first && any_woken), "something could start and did not");
                std::iter::from_fn(|| self.woken.pop_front()).find(|&i| self.tasks[i].slot)
            }
        };
        if let Some(i) = picked {
            self.woken.retain(|&woken| woken != i);
            self.core.poll_begins(self.tasks[i].id, self.now);
            (self.polling, self.poll_began) = (Some(i), self.now);
        }
    }

    fn starts(&mut self, i: usize, by_demand: bool) {
        assert!(!self.closed, "task {i} starts after the shutdown");
        assert!(self.tasks[i].waits(), "task {i} starts twice, or after its end");
        assert!(self.settled(i), "task {i} starts before its predecessors have completed");
        assert_eq!(by_demand, self.tasks[i].demanded, "task {i} starts from the wrong line");
        if !by_demand {
            let queue = self.tasks[i].queue;
            let passed = (0..self.tasks.len()).find(|&j| self.may_start(j) && self.tasks[j].queue == queue);
            assert_eq!(passed, Some(i), "first declared, first started");
            let normal =
                (0..self.tasks.len()).any(|j| self.may_start(j) && self.tasks[j].queue == Queue::Normal);
            assert!(
                queue == Queue::Normal || (self.gate_is_open() && !normal),
                "an idle task before its time"
            );
            assert!(self.running() < self.settings.profile.concurrency, "more in flight than allowed");
            assert!(self.rested().is_some_and(|at| at <= self.now), "no rest before task {i}");
        }
        let now = self.now;
        let task = &mut self.tasks[i];
        task.started = Some(now);
        task.slot = true;
        task.deadline = task.timeout.map(|timeout| now.after(timeout));
    }

    pub(super) fn poll_ends(&mut self, verdict: Verdict, actions: &mut Actions) {
        let Some(i) = self.polling.take() else { return };
        let outcome = verdict.outcome();
        let task = &mut self.tasks[i];
        let past = task.deadline.is_some_and(|at| at <= self.now);
        let expected = match &outcome {
            None if task.blocking => Fate::Keep,
            _ if task.outcome.is_some() => Fate::Release,
            Some(outcome) => Fate::Resolve(outcome.clone()),
            None if task.cancel_asked => Fate::Resolve(Outcome::Cancelled(CancelReason::Asked)),
            None if past => Fate::Resolve(Outcome::TimedOut { still_running: false }),
            None => Fate::Keep,
        };
        let fate = self.core.poll_ended(task.id, Duration::ZERO, outcome, self.now, actions);
        assert_eq!(fate, expected, "what becomes of task {i}");
        task.polls += 1;
        if task.polls == 1 {
            self.last_first_poll = Some(self.now);
        }
        if task.queue == Queue::Idle {
            self.idle_polls.push((self.poll_began, self.now));
        }
        if let Fate::Resolve(outcome) = &fate {
            assert!(task.outcome.replace(outcome.clone()).is_none(), "task {i} resolved twice");
        }
        task.slot = fate == Fate::Keep;
        self.awake = true;
    }

    pub(super) fn take(&mut self, actions: Actions) {
        for resolve in actions.resolve {
            let task = self.tasks.iter_mut().find(|task| task.id == resolve.id).unwrap();
            assert!(task.outcome.replace(resolve.outcome).is_none(), "{:?} resolved twice", resolve.id);
            assert_eq!(
                resolve.still_running,
                task.slot && resolve.still_running,
                "code that never started runs on"
            );
            task.slot &= resolve.still_running;
        }
        for id in actions.poke {
            self.woken.extend(self.tasks.iter().position(|task| task.id == id && task.slot));
            self.awake = true;
        }
        if actions.probe {
            self.probe.get_or_insert(self.now);
        }
        self.awake |= actions.lane;
        self.lane |= actions.lane && self.core.has_work();
        self.announced |= actions.announce;
    }
}
