//! What a listener is told, against what happened.

use super::World;
use crate::core::Note;
use crate::core::laws::Event;
use crate::core::laws::millis;
use crate::model::outcome::{Outcome, SkipReason};

/// What was told once.
#[derive(Debug, Default)]
pub(super) struct Told {
    declared: usize,
    gate: bool,
    closing: bool,
}

impl World {
    /// Each is told once, in an order in which it can have happened, and nothing is left out.
    pub(super) fn check_told(&mut self) {
        for note in self.core.take_notes() {
            match note {
                Note::Declared(id) => {
                    assert_eq!(self.place(id), self.told.declared, "told in the order of declaration");
                    self.told.declared += 1;
                }
                Note::Started(id) => {
                    let i = self.place(id);
                    let first = !std::mem::replace(&mut self.tasks[i].told_start, true);
                    assert!(first && !self.tasks[i].told_end && i < self.told.declared);
                    let after = &self.tasks[i].after;
                    assert!(after.iter().all(|&(p, _)| self.tasks[p].told_end), "task {i} before its end");
                }
                Note::Ended(id, outcome) => {
                    let i = self.place(id);
                    let task = &mut self.tasks[i];
                    assert!(!std::mem::replace(&mut task.told_end, true) && i < self.told.declared);
                    assert_eq!(task.outcome, Some(outcome.clone()), "what is told of task {i}");
                    assert_eq!(task.told_start, task.begun, "task {i} ends before it starts");
                    if let Outcome::Skipped(SkipReason::Predecessor(_)) = outcome {
                        let after = &self.tasks[i].after;
                        assert!(after.iter().any(|&(p, _)| self.tasks[p].told_end), "skipped for nothing");
                    }
                }
                Note::Delayed(id) => {
                    let i = self.place(id);
                    assert_eq!(
                        self.core.delay_injector().and_then(|delay_injector| delay_injector.victim),
                        Some(id)
                    );
                    let first = self.tasks[i].delayed.replace(self.now).is_none();
                    assert!(first && !self.tasks[i].told_start, "task {i} is delayed once, before it starts");
                }
                Note::Stuck(id) => {
                    let i = self.place(id);
                    assert!(matches!(self.cause, Event::GiveUpStuck) && self.stuck.last() == Some(&i));
                }
                Note::Slow(id) => {
                    let i = self.place(id);
                    let task = &mut self.tasks[i];
                    let first = !std::mem::replace(&mut task.slow, true);
                    let due = World::slow_at(task).is_some_and(|at| at <= self.now);
                    assert!(first && due && task.live, "task {i} is named for running long");
                }
                Note::Starved(starved) => {
                    let i = (0..self.tasks.len()).find(|&i| starved.name.is(&World::name(i))).unwrap();
                    let first = !std::mem::replace(&mut self.tasks[i].told_starved, true);
                    assert!(
                        first
                            && self.tasks[i].waits()
                            && self.running() - self.lending() >= self.concurrency()
                    );
                    assert!(!starved.behind.is_empty(), "behind nobody");
                    let moved = self.queue_moved.is_some_and(|at| at.after(millis(60_000)) > self.now);
                    assert!(!moved, "the queue moved a short while ago");
                }
                Note::GateOpened => {
                    assert!(!std::mem::replace(&mut self.told.gate, true) && self.gate_is_open());
                }
                Note::ShuttingDown => {
                    let closes = matches!(self.cause, Event::Close { .. });
                    assert!(!std::mem::replace(&mut self.told.closing, true) && closes);
                }
                Note::Stopped { .. } => panic!("no program stops the process"),
                Note::LongTask { length, .. } => {
                    let told = matches!(self.cause, Event::LongTask(told) | Event::Stall(told) if length <= millis(told));
                    assert!(told, "a long task of {length:?}");
                }
            }
        }
        assert_eq!(self.told.declared, self.tasks.len());
        assert_eq!(self.told.gate, self.gate_is_open(), "whether it was told that the gate opened");
        assert_eq!(self.told.closing, self.closed.is_some());
        for (i, task) in self.tasks.iter().enumerate() {
            assert_eq!(task.told_start, task.begun, "whether it was told that task {i} started");
            assert_eq!(task.told_end, task.outcome.is_some(), "whether it was told that task {i} ended");
        }
    }
}
