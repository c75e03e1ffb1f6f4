//! A governor's current state, for a readiness endpoint.

use std::fmt;
use std::time::Duration;

use crate::base::text::Plain;
use crate::core::table::{Record, Status};
use crate::model::gate_state::{GateState, WaitReason};
use crate::model::queue::Queue;
use crate::report::{Starved, fit};
use crate::shell::shared::Shared;

/// The state of a governor at one moment. Returned by [`Governor::snapshot`](crate::Governor::snapshot). All times are
/// since `build()`.
///
/// `Display` prints one line.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The governor's name.
    pub governor: String,
    /// When the snapshot was taken.
    pub taken: Duration,
    /// Whether [`Governor::ready`](crate::Governor::ready) was called or the `ready_when` future has resolved.
    pub ready: bool,
    /// Whether no further task starts, because of a shutdown or the loss of the runtime.
    pub closed: bool,
    /// The state of the idle queue's gate, with the reason.
    pub gate: GateState,
    /// Why the next idle start is held although the gate is open.
    pub held_by: Option<WaitReason>,
    /// The number of tasks declared so far.
    pub declared: u64,
    /// The number of tasks in the normal queue.
    pub normal: usize,
    /// The number of tasks in the idle queue.
    pub idle: usize,
    /// The first task of the normal queue, once no task of that queue has got a slot for a minute.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub starved: Option<Starved>,
    /// The number of tasks that wait for a predecessor.
    pub waiting: usize,
    /// The number of tasks between two attempts.
    pub resting: usize,
    /// The number of demanded tasks that have not started.
    pub demanded: usize,
    /// The task that the monkey currently delays.
    pub delayed: Option<String>,
    /// Running tasks, in order of declaration.
    pub running: Vec<RunningTask>,
    /// The number of requests in flight.
    pub in_flight: usize,
}

/// A running task in a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RunningTask {
    /// Its name, as shown in the report.
    pub name: String,
    /// The queue it was declared for.
    pub queue: Queue,
    /// How long it has been running.
    pub running_for: Duration,
    /// Whether its handle is resolved although its code may still be running, as for a blocking closure after its
    /// timeout.
    pub detached: bool,
}

impl Snapshot {
    pub(crate) fn of(shared: &Shared) -> Snapshot {
        let state = shared.lock();
        let now = shared.clock.now();
        let core = &state.core;
        let table = core.table();
        let (normal, idle) = core.queued();
        let mut running: Vec<&Record> = table.running().iter().filter_map(|id| table.get(*id)).collect();
        running.sort_unstable_by_key(|record| record.number);
        Snapshot {
            governor: shared.name.to_string(),
            taken: now.as_duration(),
            ready: core.gate().is_ready(),
            closed: core.is_closed(),
            gate: core.gate().state(now),
            held_by: core.held_by().cloned(),
            declared: table.declared(),
            normal,
            idle,
            starved: core.starved_now().map(Starved::of),
            waiting: table.count(Status::Waiting),
            resting: table.count(Status::Resting),
            demanded: table.count(Status::Demanded),
            delayed: core.delayed().map(|record| record.name.to_string()),
            running: running
                .into_iter()
                .map(|record| RunningTask {
                    name: record.name.to_string(),
                    queue: record.queue,
                    running_for: record.started.map_or(Duration::ZERO, |started| now.since(started)),
                    detached: record.status() == Status::Detached,
                })
                .collect(),
            in_flight: core.in_flight(),
        }
    }

    /// Returns whether every declared task has ended.
    pub fn is_over(&self) -> bool {
        self.normal + self.idle + self.waiting + self.resting + self.demanded + self.running.len() == 0
            && self.delayed.is_none()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot { governor, normal, idle, waiting, demanded, running, in_flight, gate, .. } = self;
        write!(
            f,
            "{}: {} running, {normal} normal and {idle} idle queued, {waiting} waiting, {demanded} demanded, \
             {in_flight} in flight; gate {gate}",
            Plain(governor, 40),
            running.len()
        )?;
        for task in running {
            write!(f, "; {:?} for {}", task.name, fit(task.running_for))?;
        }
        if let Some(starved) = &self.starved {
            write!(f, "; {}", starved.words())?;
        }
        Ok(())
    }
}
