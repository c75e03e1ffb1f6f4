//! The locks of the parts that are modelled: the standard library's, or under `--cfg afterboot_loom` the model checker's.

#[cfg(not(afterboot_loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(afterboot_loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
