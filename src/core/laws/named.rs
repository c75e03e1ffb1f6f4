//! Laws by example: the inputs that found a fault, and those that show what a law means.

mod ends;
mod lending;
mod quiet;
mod records;
mod starts;
mod stuck;

use super::world::World;
use super::{Declaration, Event, Settings, Verdict, millis};
use crate::model::gate_rules::GateRules;
use crate::model::monkey::{Delivery, Monkey};
use crate::model::outcome::{CancelReason, Outcome, SkipReason};
use crate::model::profile::Profile;
use crate::model::queue::Queue;

const TURN: Event = Event::Turn;
const PENDING: Event = Event::PollEnds(Verdict::Pending);
const COMPLETED: Event = Event::PollEnds(Verdict::Completed);
const CLOSE: Event = Event::Close { lost: false };

/// The defaults of a builder.
fn plain() -> Settings {
    Settings {
        profile: Profile::default(),
        gate: GateRules {
            quiet: millis(500),
            gate_timeout: millis(45_000),
            max_in_flight: 2,
            await_ready: false,
            interactive: false,
            // Never holds a start: that has tests of its own.
            resume_quiet: std::time::Duration::ZERO,
            max_hold: millis(5_000),
        },
        seed: 7,
    }
}

/// One task at a time, and no rest between two.
fn narrow() -> Settings {
    let profile = Profile::default().concurrency(1).delay(millis(0)).pulse(millis(0));
    Settings { profile, ..plain() }
}

/// A minute for the task that was declared `index`-th.
fn monkey(index: usize) -> Settings {
    Settings { profile: Profile::default().monkey(Monkey::index(index, millis(60_000))), ..plain() }
}

fn normal() -> Declaration {
    Declaration {
        queue: Queue::Normal,
        condition: true,
        after: Vec::new(),
        timeout: None,
        no_later_than: None,
        blocking: false,
        never_delay: false,
        inside: false,
        invalid: false,
    }
}

fn idle() -> Declaration {
    Declaration { queue: Queue::Idle, ..normal() }
}

impl Declaration {
    fn after(self, predecessors: &[usize]) -> Event {
        Event::Declare(Declaration { after: predecessors.iter().map(|&p| (p, false)).collect(), ..self })
    }

    fn now(self) -> Event {
        Event::Declare(self)
    }
}

/// The world after these events, each of which has held every law.
fn after(settings: &Settings, events: impl IntoIterator<Item = Event>) -> World {
    let mut world = World::new(settings);
    world.go(events);
    world
}

impl World {
    fn go(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.step(&event);
        }
    }

    fn outcome(&self, i: usize) -> Option<&Outcome> {
        self.tasks[i].outcome.as_ref()
    }

    fn delivery(&self) -> &Delivery {
        &self.core.delay_injector().expect("there is a monkey").delivery
    }
}
