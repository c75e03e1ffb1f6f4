//! A task with its value type erased.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::model::id::Id;
use crate::model::name::Name;
use crate::model::outcome::Outcome;

/// What a poll came to.
pub(crate) enum Ended {
    /// The task is over.
    With(Outcome),
    /// An attempt is; the next one comes after this time.
    #[cfg_attr(not(feature = "retry"), expect(dead_code, reason = "made by the feature `retry`"))]
    Again(Duration),
}

/// A task whose value type is not known: what lane, shutdown and guard work with.
pub(crate) trait Governed: Send + Sync {
    fn id(&self) -> Id;
    /// The address of the governor that the task belongs to.
    fn governor(&self) -> usize;
    /// How it ended, where its handle is resolved.
    fn outcome(&self) -> Option<Outcome>;
    /// Makes the task's span, before its first poll: a root that follows from the span in which the task was
    /// declared. A child would keep that one open for the whole boot.
    fn begin_span(&self, governor: &str, name: &Name);
    /// Polls the body. Its value is kept back until [`settle`](Governed::settle): by then the core knows.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Ended>;
    /// Drops what is left of the body and resolves the handle, unless that has been done.
    fn settle(&self, outcome: Outcome, name: Name);
    /// Resolves the handle while the body goes on.
    fn resolve_early(&self, outcome: Outcome, name: Name);
}

/// A handle that [`Task::after`](crate::Task::after) accepts: a [`TaskHandle`](crate::TaskHandle) or a
/// [`LocalTaskHandle`](crate::LocalTaskHandle). This trait is sealed.
pub trait Predecessor: sealed::Sealed {}

pub(crate) mod sealed {
    use super::{Arc, Governed};

    /// The task behind a handle.
    pub struct Link(pub(crate) Arc<dyn Governed>);

    impl std::fmt::Debug for Link {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_tuple("Link").field(&self.0.id()).finish()
        }
    }

    pub trait Sealed {
        fn governed(&self) -> Link;
    }
}
