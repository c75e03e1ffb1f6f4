//! The locks of the parts that are modelled: the standard library's, or under `--cfg loom` the model checker's.

#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
