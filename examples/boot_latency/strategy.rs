//! The strategies: one small function for each way to start a list of tasks. The governed one has its own
//! file.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::Failure;
use crate::adapter::{Adapted, adapt};
use crate::ledger::Ledger;
use crate::tasks::SideTask;

/// Permits of the semaphore: as many as the governor's default `concurrency`.
const PERMITS: usize = 3;
/// The usual guess at when the application will be quiet.
pub(crate) const LATER: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    Nothing,
    JoinAll,
    SpawnAll,
    Semaphore,
    SpawnBlocking,
    SpawnLater,
    Governed,
    /// Synthetic only: four of the ten tasks are idle.
    GovernedIdle,
}

impl Strategy {
    /// In the order in which a round runs them.
    pub(crate) fn list(all: bool, synthetic: bool) -> Vec<Self> {
        let mut list =
            vec![Self::Nothing, Self::JoinAll, Self::SpawnAll, Self::Semaphore, Self::SpawnBlocking];
        list.extend(all.then_some(Self::SpawnLater));
        list.push(Self::Governed);
        list.extend(synthetic.then_some(Self::GovernedIdle));
        list
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::JoinAll => "join_all",
            Self::SpawnAll => "spawn_all",
            Self::Semaphore => "semaphore",
            Self::SpawnBlocking => "spawn_blocking",
            Self::SpawnLater => "spawn_later",
            Self::Governed => "governed",
            Self::GovernedIdle => "governed_idle",
        }
    }

    pub(crate) fn is_governed(self) -> bool {
        matches!(self, Self::Governed | Self::GovernedIdle)
    }

    /// Starts the tasks at once and returns when all have ended.
    ///
    /// # Panics
    /// For a governed strategy, which starts its tasks itself.
    pub(crate) async fn run(self, tasks: Vec<SideTask>, ledger: &Arc<Ledger>) -> Result<(), Failure> {
        match self {
            Self::Nothing => Ok(()),
            Self::JoinAll => {
                let all = join_all(adapt(tasks, ledger, None));
                tokio::spawn(all).await?;
                Ok(())
            }
            Self::SpawnAll => ended(spawn(adapt(tasks, ledger, None))).await,
            Self::Semaphore => {
                let permits = Arc::new(Semaphore::new(PERMITS));
                ended(spawn(adapt(tasks, ledger, Some(&permits)))).await
            }
            Self::SpawnBlocking => {
                let block = |task| tokio::task::spawn_blocking(|| Handle::current().block_on(task));
                ended(adapt(tasks, ledger, None).into_iter().map(block).collect()).await
            }
            Self::SpawnLater => {
                tokio::time::sleep(LATER).await;
                ended(spawn(adapt(tasks, ledger, None))).await
            }
            Self::Governed | Self::GovernedIdle => unreachable!("governed tasks are started by the governor"),
        }
    }
}

fn spawn(tasks: Vec<Adapted>) -> Vec<JoinHandle<()>> {
    tasks.into_iter().map(tokio::spawn).collect()
}

async fn ended(tasks: Vec<JoinHandle<()>>) -> Result<(), Failure> {
    for task in tasks {
        task.await?;
    }
    Ok(())
}
