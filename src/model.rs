//! Plain data types of the public API, used by all other layers.

pub(crate) mod id;
pub(crate) mod name;
pub(crate) mod queue;
pub(crate) mod outcome;
pub(crate) mod error;
#[cfg(feature = "replay")]
pub(crate) mod replay_error;
pub(crate) mod profile;
pub(crate) mod monkey;
pub(crate) mod gate_rules;
pub(crate) mod gate_state;
pub(crate) mod event;
