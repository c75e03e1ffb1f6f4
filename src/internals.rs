//! Doors into the core for this repository's own benchmarks. Not part of the API; anything here may change or go.

use std::time::Duration;

use crate::base::clock::Stamp;
use crate::core::ready_queue::{ReadyQueue, Ticket};
use crate::core::table::Spec;
use crate::core::{Actions, AfterPoll, Core, Turn};
use crate::model::gate_rules::GateRules;
use crate::model::id::Id;
use crate::model::outcome::Outcome;
use crate::model::profile::Profile;
use crate::model::queue::Queue;

fn id(number: u32) -> Id {
    Id::new(number, 0)
}

/// Fills a queue with `tasks` in order of declaration and empties it; gives how many came out.
pub fn queue_in_order(tasks: u32) -> u32 {
    queue(tasks, |number| number)
}

/// The same with every task coming out of its order, as after a predecessor of all of them.
pub fn queue_out_of_order(tasks: u32) -> u32 {
    queue(tasks, |number| tasks - number)
}

fn queue(tasks: u32, number: impl Fn(u32) -> u32) -> u32 {
    let mut line = ReadyQueue::default();
    for task in 0..tasks {
        let number = number(task);
        line.push(Ticket::new(false, u64::from(number), id(number)));
    }
    let mut out = 0;
    while let Some(first) = line.first() {
        line.remove(Ticket::new(false, u64::from(first.index), first));
        out += 1;
    }
    out
}

/// Looks `looks` times at a gate that a stall keeps shut; gives how often it was open.
pub fn gate_looks(looks: u64) -> u64 {
    let mut core = Core::new(Profile::default(), GateRules::defaults(), 0);
    let mut actions = Actions::default();
    core.declare(spec(Queue::Idle), Stamp::from_duration(Duration::ZERO), &mut actions);
    let mut open = 0;
    for look in 0..looks {
        let now = Stamp::from_duration(Duration::from_millis(look % 4_000));
        core.probe_tick(now, &mut actions);
        open += u64::from(core.gate().is_open());
    }
    open
}

/// Declares `tasks` no-ops and decides over each of them what the lane asks: what is due, who starts, what its only
/// poll means. Gives how many completed.
pub fn decisions(tasks: u32) -> u32 {
    let profile = Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO);
    let mut core = Core::new(profile, GateRules::defaults(), 0);
    let mut actions = Actions::default();
    let now = Stamp::from_duration(Duration::ZERO);
    for _ in 0..tasks {
        core.declare(spec(Queue::Normal), now, &mut actions);
    }
    let mut completed = 0;
    while core.has_work() {
        core.advance(now, &mut actions);
        let Some(Turn { id, .. }) = core.next(now, &mut actions) else { break };
        core.poll_begins(id, None, now);
        let after_poll = core.poll_ended(id, Duration::ZERO, Some(Outcome::Completed), now, &mut actions);
        completed += u32::from(after_poll == AfterPoll::Resolve(Outcome::Completed));
    }
    completed
}

fn spec(queue: Queue) -> Spec {
    Spec {
        name: "task".into(),
        queue,
        condition: true,
        blocking: false,
        timeout: None,
        no_later_than: None,
        never_delay: false,
        after: Vec::new(),
        declared_in: None,
        invalid: None,
    }
}
