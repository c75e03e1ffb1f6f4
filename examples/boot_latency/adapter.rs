//! What the governor does for every task, done by hand for the other strategies, so that all run the same
//! bodies: catch a panic, skip on a false condition, wait for a predecessor. It starts nothing: that is the
//! strategy's part.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::{Semaphore, watch};

use crate::ledger::Ledger;
use crate::tasks::{BodyResult, SideTask, Work};

/// A task with all that is between its start and its end, ready for any executor.
pub(crate) type Adapted = Pin<Box<dyn Future<Output = ()> + Send>>;

/// With `slots`, each task takes one inside its own future, once its predecessor has ended.
pub(crate) fn adapt(
    tasks: Vec<SideTask>,
    ledger: &Arc<Ledger>,
    slots: Option<&Arc<Semaphore>>,
) -> Vec<Adapted> {
    let mut completed: Vec<watch::Receiver<Option<bool>>> = Vec::new();
    let mut adapted: Vec<Adapted> = Vec::new();
    for (number, task) in tasks.into_iter().enumerate() {
        let (end, ended) = watch::channel(None);
        completed.push(ended);
        let predecessor = task.after.map(|place| completed[place].clone());
        let (ledger, slots) = (ledger.clone(), slots.cloned());
        adapted.push(Box::pin(async move {
            let go = task.when && predecessor_completed(predecessor).await;
            let result = if go { attempt(number, task.work, &ledger, slots).await } else { None };
            end.send_replace(Some(matches!(result, Some(Ok(())))));
        }));
    }
    adapted
}

async fn predecessor_completed(predecessor: Option<watch::Receiver<Option<bool>>>) -> bool {
    let Some(mut ended) = predecessor else { return true };
    // A sender that is gone never reported its end: not completed.
    ended.wait_for(Option::is_some).await.is_ok_and(|completed| *completed == Some(true))
}

/// `None`: the body panicked.
async fn attempt(
    number: usize,
    work: Work,
    ledger: &Arc<Ledger>,
    slots: Option<Arc<Semaphore>>,
) -> Option<BodyResult> {
    // Never closed.
    let _slot = match slots {
        Some(slots) => slots.acquire_owned().await.ok(),
        None => None,
    };
    match work {
        Work::Blocking(body) => tokio::task::spawn_blocking(ledger.watch_blocking(number, body)).await.ok(),
        Work::Async(body) => {
            let mut body = ledger.watch(number, body);
            poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut body).poll(context))) {
                Ok(polled) => polled.map(Some),
                Err(_) => Poll::Ready(None),
            })
            .await
        }
    }
}
