//! The side tasks: what the application wants done after it can answer, and before it is complete.

mod boot;
pub(crate) mod index;
pub(crate) mod listing;
pub(crate) mod pages;
pub(crate) mod symbols;
mod synthetic;
pub(crate) mod text;

use std::future::Future;
use std::pin::Pin;

pub(crate) use boot::boot;
pub(crate) use synthetic::{Block, synthetic};

use crate::Failure;

pub(crate) type BodyResult = Result<(), Failure>;
pub(crate) type Body = Pin<Box<dyn Future<Output = BodyResult> + Send>>;

/// Strategies other than the governed ones know one queue only; there it decides the column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Normal,
    Idle,
}

pub(crate) enum Work {
    /// Gives its worker back every few milliseconds, or holds it on purpose.
    Async(Body),
    /// Blocks its thread, so that every strategy puts it on tokio's blocking pool.
    Blocking(Box<dyn FnOnce() -> BodyResult + Send>),
}

/// One side task, the same under every strategy.
pub(crate) struct SideTask {
    pub(crate) name: &'static str,
    pub(crate) queue: Queue,
    pub(crate) when: bool,
    /// The place of its predecessor in the list, which comes earlier.
    pub(crate) after: Option<usize>,
    pub(crate) work: Work,
}

impl SideTask {
    pub(crate) fn new(name: &'static str, body: impl Future<Output = BodyResult> + Send + 'static) -> Self {
        Self { name, queue: Queue::Normal, when: true, after: None, work: Work::Async(Box::pin(body)) }
    }

    pub(crate) fn blocking(name: &'static str, body: impl FnOnce() -> BodyResult + Send + 'static) -> Self {
        Self { name, queue: Queue::Normal, when: true, after: None, work: Work::Blocking(Box::new(body)) }
    }

    pub(crate) fn idle(self) -> Self {
        Self { queue: Queue::Idle, ..self }
    }

    pub(crate) fn when(self, when: bool) -> Self {
        Self { when, ..self }
    }

    pub(crate) fn after(self, predecessor: usize) -> Self {
        Self { after: Some(predecessor), ..self }
    }
}

/// How many bodies must end in which way: each run is checked against it, or its figures mean nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    pub(crate) panicked: usize,
}
