//! The tasks that wait for the futures of [`Signals`].

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use crate::base::catch::{catch, catch_quietly, logged};
use crate::shell::shared::Shared;
use crate::shell::signals::{Boxed, Signals};

/// Spawns what there is.
pub(crate) fn spawn(signals: Signals, shared: &Arc<Shared>) {
    if let Some(ready) = signals.ready {
        let weak = Arc::downgrade(shared);
        let task = async move {
            let (given, dropped) = survive(ready).await;
            if let Err(why) = given.and(dropped) {
                logged(
                    || tracing::warn!(target: "afterboot", %why, "ready_when panicked; ready() is not called"),
                );
            } else if let Some(shared) = weak.upgrade() {
                shared.apply(|core, now, _| core.ready(now));
            }
        };
        shared.runtime.spawn(task);
    }
    if let Some(interactive) = signals.interactive {
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
                || tracing::warn!(target: "afterboot", %why, "interactive_when failed; the quiet window is used"),
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
