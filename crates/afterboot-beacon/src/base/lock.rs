//! A mutex that a panic does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under the lock is a bug of ours; the application's events are still worth sending.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
