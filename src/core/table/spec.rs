//! What a declaration asks for.

use std::borrow::Cow;
use std::time::Duration;

use crate::model::id::Id;
use crate::model::outcome::Outcome;
use crate::model::queue::Queue;

/// What the declaration asks for and the core needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) name: Cow<'static, str>,
    pub(crate) queue: Queue,
    pub(crate) condition: bool,
    pub(crate) blocking: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) no_later_than: Option<Duration>,
    /// The monkey must leave it alone.
    pub(crate) never_delay: bool,
    pub(crate) after: Vec<After>,
    /// The governed task that declares this one.
    pub(crate) declared_in: Option<Id>,
    /// What is wrong with the declaration.
    pub(crate) invalid: Option<Box<str>>,
}

/// A predecessor as it is declared.
#[derive(Debug, Clone)]
pub(crate) struct After {
    pub(crate) id: Id,
    /// How it had ended when the task was declared, if it had.
    pub(crate) outcome: Option<Outcome>,
    /// It need not complete, only end.
    pub(crate) accepts_any_outcome: bool,
}
