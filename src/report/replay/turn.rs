//! The lane's turns; see `lane.rs`.

use std::time::Duration;

use crate::scheduler::{Fate, Work};
use crate::table::Id;

use super::script::What;
use super::steps::{Step, Wait};
use super::timer::Timer;
use super::world::World;

impl World<'_> {
    /// The lane looks, and takes its turn where there is something to do.
    pub(super) fn lane(&mut self) {
        self.looks = false;
        self.timer = None;
        let now = self.stamp();
        self.core.advance(now, &mut self.actions);
        self.carry();
        let work = if self.woken.is_empty() { self.core.work(now) } else { Work::Now };
        match work {
            Work::Over => self.start_first = true,
            Work::Event => {}
            Work::At(at) => {
                let late =
                    self.script.late.timer(self.paced_by).filter(|_| self.core.next_start() == Some(at));
                self.timer = Some(Timer { at: at.as_duration(), late });
            }
            Work::Now => {
                let began = *self.busy_since.get_or_insert(self.now);
                self.now = self.now.saturating_add(self.script.turn);
                self.come_round();
                self.turn();
                self.longest_stretch = self.longest_stretch.max(self.now - began);
                self.looks = true;
            }
        }
    }

    /// One governed poll, picked as the lane picks it.
    fn turn(&mut self) {
        let now = self.stamp();
        let mut start = self.core.start_demanded(now, &mut self.actions);
        if start.is_none() && self.start_first {
            let woken = *self.held_back.get_or_insert(self.woken.len());
            start = self.core.start_ordinary(woken > 0 && !self.woken.is_empty(), now, &mut self.actions);
        }
        if start.is_some() {
            self.held_back = None;
        }
        let mut woken = None;
        if start.is_none() {
            woken = std::iter::from_fn(|| self.woken.pop_front()).find(|place| {
                self.runs[*place].woken = false;
                !self.runs[*place].ended
            });
        }
        if start.is_none() && woken.is_none() && !self.start_first {
            start = self.core.start_ordinary(false, now, &mut self.actions);
        }
        if start.is_none() && woken.is_some() {
            self.held_back = self.held_back.map(|left| left.saturating_sub(1));
        }
        self.start_first = start.is_none();
        self.carry();
        if let Some(id) = start {
            self.started.push(self.declared_at(id));
        }
        let Some(place) = start.map(|id| self.declared_at(id)).or(woken) else { return };
        self.poll(place);
    }

    fn poll(&mut self, place: usize) {
        let Some(id) = self.runs[place].id else { return };
        let script = self.script;
        let part = &script.tasks[place];
        if let Some(lag) = part.steps.get(self.runs[place].step).and_then(|step| step.lag) {
            self.now = self.now.saturating_add(lag.saturating_sub(script.turn));
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
        self.last_poll = (self.now, part.steps.get(self.runs[place].step).and_then(|step| step.stall));
        self.runs[place].step += 1;
        let next = part.steps.get(self.runs[place].step);
        // A task that was asked to end is polled once more and dropped.
        let outcome = next.is_none().then(|| part.outcome.clone());
        let now = self.stamp();
        let paced = self.core.next_start();
        let fate = self.core.poll_ended(id, busy, outcome, now, &mut self.actions);
        if self.core.next_start() != paced {
            self.paced_by = Some(place);
        }
        self.core.advance(now, &mut self.actions);
        if fate != Fate::Keep {
            self.ended(place);
        } else if let Some(step) = next {
            self.wait(place, id, step);
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
                    self.core.demand(target, crate::clock::Stamp::from_duration(self.now), &mut self.actions);
                }
                // Its slot is lent meanwhile; a cycle cannot have been recorded.
                drop(self.core.wait_begins(id, target, &mut self.actions));
                self.runs[task].waiters.push((place, then));
            }
        }
    }
}
