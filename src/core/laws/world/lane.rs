//! What the lane and the watchdog do, event by event, and what each of their steps must hold.

use std::time::Duration;

use super::World;
use crate::core::laws::Verdict;
use crate::core::{Actions, AfterPoll, Work};
use crate::model::outcome::{CancelReason, Outcome};
use crate::model::queue::Queue;

impl World {
    /// What `Lane::work` does.
    pub(super) fn look(&mut self) {
        if self.polling.is_some() || !self.lane {
            return;
        }
        self.let_time_pass();
        let (could, earliest) = (self.could_start(), self.earliest());
        let work = self.core.work(self.now);
        let over = self.tasks.iter().all(|task| task.outcome.is_some() && !task.live);
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
        self.alarm = if let Work::At(at) = work { Some(at) } else { None };
        self.awake = false;
        let woken = self.turns.anyone_woken();
        assert!(!woken || work == Work::Now, "asleep while somebody is woken");
        self.ticking = work == Work::Now;
        self.lane = !over;
    }

    fn let_time_pass(&mut self) {
        let mut actions = Actions::default();
        self.deadlines_pass();
        self.core.advance(self.now, &mut actions);
        self.a_piece_is_cancelled();
        self.take(actions);
        self.gate_opens_rightly();
        self.gate_keeps_its_timeout();
        self.promote_starved();
        self.limits_are_kept();
    }

    /// What `Lane::turn` does up to the poll.
    pub(super) fn pick(&mut self, actions: &mut Actions) {
        if self.polling.is_some() || !std::mem::take(&mut self.ticking) {
            return;
        }
        // Where nothing is picked, the lane looks again.
        self.awake = true;
        self.who_jumped();
        let could = self.could_be_polled();
        let turn = self.core.next(self.now, actions);
        let picked = turn.map(|turn| self.place(turn.id));
        self.check_turn(&could, turn.zip(picked).map(|(turn, i)| (i, turn.starts)));
        let Some((turn, i)) = turn.zip(picked) else { return };
        if turn.starts {
            self.starts(i);
        }
        self.core.poll_begins(turn.id, None, self.now);
        (self.polling, self.poll_began) = (Some(i), self.now);
    }

    fn starts(&mut self, i: usize) {
        let now = self.now;
        assert!(self.closed.is_none(), "task {i} starts after the shutdown");
        assert!(self.tasks[i].waits(), "task {i} starts twice, or after its end");
        assert!(self.settled(i), "task {i} starts before its predecessors have settled");
        let line = self.tasks[i].line;
        if self.is_demanded(i) {
            let first = (0..self.tasks.len()).filter(|&j| self.stands_demanded(j));
            let first = first.filter_map(|j| self.tasks[j].jumped).min();
            assert_eq!(self.tasks[i].jumped, first, "who was demanded first starts first");
        } else {
            assert_eq!(self.first(line), Some(i), "first declared, first started");
            let normal = self.first(Queue::Normal).is_some();
            assert!(
                line == Queue::Normal || (self.gate_is_open() && !normal),
                "an idle task before its time"
            );
            assert!(self.running() - self.lending() < self.concurrency(), "more in flight than allowed");
            assert!(self.rested().is_some_and(|at| at <= now), "no rest before task {i}");
            let delay = self.settings.profile.monkey.as_ref().map(|monkey| monkey.delay);
            let held = self.tasks[i].delayed.zip(delay).is_some_and(|(from, delay)| now < from.after(delay));
            assert!(!held, "the monkey lets task {i} go too early");
        }
        if line == Queue::Normal && !self.is_demanded(i) {
            self.queue_moved = Some(now);
        }
        let task = &mut self.tasks[i];
        task.started = Some(now);
        (task.begun, task.live) = (true, true);
        task.deadline = task.timeout.map(|timeout| now.after(timeout));
        task.no_later = None;
        self.watch_idle_starvation();
    }

    pub(super) fn poll_ends(&mut self, verdict: Verdict) {
        let Some(i) = self.polling.take() else { return };
        self.turns.charge(self.now.since(self.poll_began));
        self.poll_of_ends(i, verdict);
        self.let_time_pass();
        self.ticking = self.core.work(self.now) == Work::Now;
        self.awake = true;
    }

    /// Another lane goes on; the task gives up its slot.
    pub(super) fn give_up_stuck(&mut self, limit: Duration) {
        let mut actions = Actions::default();
        let given_up = self.core.give_up_stuck(limit, self.now, &mut actions);
        let lasted = self.now.since(self.poll_began);
        let i = self.polling.take_if(|_| lasted >= limit);
        assert_eq!(given_up, i.map(|i| (self.tasks[i].id, lasted)), "whose poll is given up");
        let Some(i) = i else { return };
        self.tasks[i].stuck = true;
        self.turns.charge(lasted);
        self.turns.leaves(i);
        self.stuck.push(i);
        if self.tasks[i].polls == 0 {
            self.last_first_poll = Some(self.now);
        }
        self.take(actions);
        (self.lane, self.awake, self.ticking) = (true, true, false);
        self.let_time_pass();
    }

    pub(super) fn stuck_returns(&mut self, n: usize, verdict: Verdict) {
        if self.stuck.is_empty() {
            return;
        }
        let i = self.stuck.swap_remove(n % self.stuck.len());
        self.tasks[i].stuck = false;
        self.poll_of_ends(i, verdict);
        // The old lane tells the one that goes on.
        self.awake = true;
    }

    fn poll_of_ends(&mut self, i: usize, verdict: Verdict) {
        let mut actions = Actions::default();
        let task = &mut self.tasks[i];
        // Its condition is asked before its first poll.
        let verdict = if task.polls == 0 { verdict } else { verdict.of_a_later_poll() };
        let outcome = verdict.outcome();
        let past = task.deadline.is_some_and(|at| at <= self.now);
        let lost = self.closed == Some(CancelReason::RuntimeGone);
        let expected = match &outcome {
            None if task.blocking && !(lost && task.outcome.is_some()) => AfterPoll::Keep,
            _ if task.outcome.is_some() => AfterPoll::Release,
            Some(outcome) => AfterPoll::Resolve(outcome.clone()),
            None if task.cancel_asked => AfterPoll::Resolve(Outcome::Cancelled(CancelReason::Requested)),
            None if past => AfterPoll::Resolve(Outcome::TimedOut { still_running: false }),
            None => AfterPoll::Keep,
        };
        let after_poll = self.core.poll_ended(task.id, Duration::ZERO, outcome, self.now, &mut actions);
        assert_eq!(after_poll, expected, "what becomes of task {i}");
        task.polls += 1;
        if task.polls == 1 {
            self.last_first_poll = Some(self.now);
        }
        if matches!(verdict, Verdict::Skipped) {
            task.started = None;
        }
        if task.line == Queue::Idle {
            self.quiet.idle_polls_ended = Some(self.now);
        }
        match after_poll {
            AfterPoll::Keep => {}
            AfterPoll::Resolve(outcome) => self.ends(i, outcome, false),
            AfterPoll::Release => self.leaves(i),
            AfterPoll::Rest => unreachable!("no event of this model is a failed attempt"),
        }
        self.take(actions);
    }
}
