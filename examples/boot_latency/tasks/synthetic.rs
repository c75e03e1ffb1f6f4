//! Ten tasks that hold a worker for 60 ms each, in one poll: the published demo of the governor this one
//! follows.

use std::time::Duration;

use super::{Expected, SideTask};
use crate::clock;

const TASKS: [&str; 10] =
    ["ten 0", "ten 1", "ten 2", "ten 3", "ten 4", "ten 5", "ten 6", "ten 7", "ten 8", "ten 9"];
const HOLD: Duration = Duration::from_millis(60);

/// How a task holds its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Without using a core: shows what the strategy does, whatever else the machine does.
    Sleep,
    /// By using a core: shows what is left for the service on this machine.
    Burn,
}

impl Block {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Burn => "burn",
        }
    }
}

/// The last `idle` of the ten are idle.
pub(crate) fn synthetic(block: Block, idle: usize) -> (Vec<SideTask>, Expected) {
    let task = |(number, name): (usize, &'static str)| {
        let task = SideTask::new(name, async move {
            match block {
                Block::Sleep => clock::hold(HOLD),
                Block::Burn => clock::burn(HOLD),
            }
            Ok(())
        });
        if number + idle >= TASKS.len() { task.idle() } else { task }
    };
    let tasks = TASKS.into_iter().enumerate().map(task).collect();
    (tasks, Expected { completed: TASKS.len(), failed: 0, panicked: 0 })
}
