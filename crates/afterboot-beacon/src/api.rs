//! The public API.

pub(crate) mod beacon;
pub(crate) mod builder;
#[cfg(feature = "spool")]
pub(crate) mod dead;
pub(crate) mod early;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod health;
mod intake;
pub(crate) mod launch;
pub(crate) mod post;
pub(crate) mod receipt;
pub(crate) mod signal;
pub mod testing;
