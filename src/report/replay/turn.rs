//! The lane's turns; see `lane.rs`.

use std::time::Duration;

use crate::core::{Fate, Turn, Work};
use crate::model::id::Id;

use super::script::What;
use super::steps::{Step, Wait};
use super::timer::Timer;
use super::world::{LastPoll, World};

impl World<'_> {
    /// The lane looks, and takes its turn where there is something to do.
    pub(super) fn lane(&mut self) {
        self.looks = false;
        self.timer = None;
        let now = self.stamp();
        self.core.advance(now, &mut self.actions);
        self.carry();
        match self.core.work(now) {
            Work::Over | Work::Event => {}
            Work::At(at) => {
                let late = self.paced.filter(|_| self.core.next_start() == Some(at));
                self.timer = Some(Timer { at: at.as_duration(), late });
            }
            Work::Now => {
                let began = *self.busy_since.get_or_insert(self.now);
                self.now = self.now.saturating_add(self.turn_takes());
                self.come_round();
                self.turn();
                self.longest_stretch = self.longest_stretch.max(self.now - began);
                self.looks = true;
            }
        }
    }

    /// Until the next poll: right after one, or after the wake or the declaration that ended the lane's rest.
    fn turn_takes(&self) -> Duration {
        let gap = self.last_poll.gap.filter(|_| self.last_poll.end == self.now);
        let wakes = || {
            let place = self.declared_at(self.core.next_woken()?);
            let run = &self.runs[place];
            self.script.tasks[place].steps.get(run.step)?.turn.filter(|_| run.asked == self.now)
        };
        let declared = || self.last_declared.turn.filter(|_| self.last_declared.at == self.now);
        gap.or_else(wakes).or_else(declared).unwrap_or(self.script.turn)
    }

    /// One governed poll.
    fn turn(&mut self) {
        let now = self.stamp();
        let turn = self.core.next(now, &mut self.actions);
        self.carry();
        let Some(Turn { id, starts, .. }) = turn else { return };
        let place = self.declared_at(id);
        if starts {
            if self.runs[place].step == 0 {
                self.started.push(place);
            }
            self.runs[place].asked = self.last_declared.at;
        }
        self.poll(place);
    }

    fn poll(&mut self, place: usize) {
        let Some(id) = self.runs[place].id else { return };
        let script = self.script;
        let part = &script.tasks[place];
        if let Some(lag) = part.steps.get(self.runs[place].step).and_then(|step| step.lag) {
            let since = self.last_poll.end.max(self.runs[place].asked);
            self.now = self.now.max(since.saturating_add(lag));
        }
        self.core.poll_begins(id, None, self.stamp());
        let began = self.now;
        let mut busy = Duration::ZERO;
        if let Some(step) = part.steps.get(self.runs[place].step) {
            busy = step.busy;
            for (since, declared) in &step.declares {
                let at = began.saturating_add(*since);
                if *since <= busy {
                    self.now = at;
                    self.declare(*declared);
                } else {
                    self.schedule(at, What::Declare(*declared));
                }
            }
        }
        // Nothing else happens on this thread meanwhile.
        self.now = began.saturating_add(busy);
        let step = part.steps.get(self.runs[place].step);
        self.last_poll = LastPoll {
            end: self.now,
            gap: step.and_then(|step| step.gap),
            stall: step.and_then(|step| step.stall),
        };
        self.runs[place].step += 1;
        let next = part.steps.get(self.runs[place].step);
        // A task that was asked to end is polled once more and dropped.
        let outcome = next.is_none().then(|| part.outcome.clone());
        let now = self.stamp();
        let due = self.core.next_start();
        let fate = match step.and_then(|step| step.rests).filter(|_| next.is_some()) {
            Some(rest) => self.core.attempt_failed(id, busy, rest, now, &mut self.actions),
            None => self.core.poll_ended(id, busy, outcome, now, &mut self.actions),
        };
        if self.core.next_start() != due {
            self.paced = step.and_then(|step| step.pulse);
        }
        self.core.advance(now, &mut self.actions);
        match (fate, next) {
            (Fate::Keep, Some(step)) => self.wait(place, id, step),
            (Fate::Keep | Fate::Rest, _) => {}
            (Fate::Resolve(_) | Fate::Release, _) => self.ended(place),
        }
        self.carry();
    }

    fn wait(&mut self, place: usize, id: Id, step: &Step) {
        match step.wait {
            Wait::Own(waited) => {
                let at = self.now.saturating_add(waited);
                match step.round {
                    Some(round) => self.schedule_together(at, round, What::Wake(place)),
                    None => self.schedule(at, What::Wake(place)),
                }
            }
            Wait::For { task, demands, then } => {
                let Some(target) = self.runs[task].id.filter(|_| !self.runs[task].ended) else {
                    return self.schedule(self.now.saturating_add(then), What::Wake(place));
                };
                if demands {
                    self.core.demand(
                        target,
                        crate::base::clock::Stamp::from_duration(self.now),
                        &mut self.actions,
                    );
                }
                // Its slot is lent meanwhile; a cycle cannot have been recorded.
                let now = self.stamp();
                drop(self.core.wait_begins(id, target, now, &mut self.actions));
                self.runs[task].waiters.push((place, then));
            }
        }
    }
}
