//! The application's futures that act on the gate: `ready_when` and `interactive_when`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::model::error::BoxError;

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

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
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals")
            .field("ready", &self.ready.is_some())
            .field("interactive", &self.interactive.is_some())
            .finish()
    }
}
