//! Futures of the application's that tell the gate something: `ready_when` and `interactive_when`.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;

use crate::base::catch::{catch, catch_quietly, logged};
use crate::model::error::BoxError;
use crate::shell::shared::Shared;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// They are spawned with the first task: nothing is spawned before it.
#[derive(Default)]
pub(crate) struct Signals {
    pub(crate) ready: Option<Boxed<()>>,
    pub(crate) interactive: Option<Boxed<Result<(), BoxError>>>,
}

impl Signals {
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_none() && self.interactive.is_none()
    }

    /// Spawns what there is.
    pub(crate) fn spawn(self, shared: &Arc<Shared>) {
        if let Some(ready) = self.ready {
            let weak = Arc::downgrade(shared);
            let task = async move {
                let (given, dropped) = survive(ready).await;
                if let Err(why) = given.and(dropped) {
                    logged(
                        || tracing::warn!(target: "afterboot", %why, "ready_when panicked; ready is not given"),
                    );
                } else if let Some(shared) = weak.upgrade() {
                    shared.apply(|core, now, _| core.ready(now));
                }
            };
            shared.runtime.spawn(task);
        }
        if let Some(interactive) = self.interactive {
            let mut answer = Answer { shared: Arc::downgrade(shared), given: false };
            let task = async move {
                let why = match survive(interactive).await {
                    (Ok(Ok(())), Ok(())) => None,
                    (Ok(Err(error)), _) => {
                        let text = catch(|| error.to_string()).map_or_else(|text| text, Arc::from);
                        catch_quietly("the destructor of an error", || drop(error));
                        Some(text)
                    }
                    (Err(text), _) | (_, Err(text)) => Some(format!("panicked: {text}").into()),
                };
                answer.give(why);
            };
            shared.runtime.spawn(task);
        }
    }
}

/// Polls a future of the user's; a panic becomes its text. What it came to, and how it was dropped.
async fn survive<T>(mut future: Boxed<T>) -> (Result<T, Arc<str>>, Result<(), Arc<str>>) {
    let result = poll_fn(|cx| match catch(|| future.as_mut().poll(cx)) {
        Ok(polled) => polled.map(Ok),
        Err(text) => Poll::Ready(Err(text)),
    })
    .await;
    (result, catch(|| drop(future)))
}

/// Tells the gate exactly once, also where the future is dropped before it has an answer.
struct Answer {
    shared: Weak<Shared>,
    given: bool,
}

impl Answer {
    fn give(&mut self, failed: Option<Arc<str>>) {
        self.given = true;
        if let Some(why) = &failed {
            logged(
                || tracing::warn!(target: "afterboot", %why, "interactive_when gave no answer; the quiet window takes over"),
            );
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.apply(|core, now, actions| core.interactive(failed, now, actions));
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.given {
            self.give(Some("dropped before it resolved".into()));
        }
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals")
            .field("ready", &self.ready.is_some())
            .field("interactive", &self.interactive.is_some())
            .finish()
    }
}
