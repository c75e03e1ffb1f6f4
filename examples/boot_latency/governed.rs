//! The governed strategy: the same tasks, declared. Catching, skipping and chaining are the governor's
//! here.

use std::sync::Arc;
use std::time::Duration;

use afterboot::{Governor, Monkey, Profile, Report, Task, TaskHandle};

use crate::Failure;
use crate::ledger::Ledger;
use crate::tasks::{Queue, SideTask, Work};

pub(crate) fn governor(
    profile: Profile,
    monkey: Option<Monkey>,
    quiet: Duration,
) -> Result<Governor, Failure> {
    let mut builder = Governor::builder().name("boot").profile(profile).await_ready().quiet(quiet);
    if let Some(monkey) = monkey {
        builder = builder.monkey(monkey);
    }
    Ok(builder.build()?)
}

/// Declares the tasks, says that the service itself is up, and waits for the last of them.
pub(crate) async fn run(governor: &Governor, tasks: Vec<SideTask>, ledger: &Arc<Ledger>) -> Report {
    let mut handles: Vec<TaskHandle<()>> = Vec::with_capacity(tasks.len());
    for (number, side) in tasks.into_iter().enumerate() {
        let task = match side.work {
            Work::Async(body) => {
                let body = ledger.watch(number, body);
                Task::new(side.name, move || body)
            }
            Work::Blocking(body) => Task::blocking(side.name, ledger.watch_blocking(number, body)),
        };
        let task = task.when(side.when);
        let task = if side.queue == Queue::Idle { task.idle() } else { task };
        let task = match side.after {
            Some(place) => task.after(&handles[place]),
            None => task,
        };
        handles.push(governor.govern(task));
    }
    governor.ready();
    governor.report().finished().await
}
