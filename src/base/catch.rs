//! The only place where panics are caught.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs user code; a panic becomes its text.
///
/// Unwind safety is asserted: what a panic may have left half-done is dropped, never used again.
pub(crate) fn catch<R>(run: impl FnOnce() -> R) -> Result<R, Arc<str>> {
    catch_unwind(AssertUnwindSafe(run)).map_err(text)
}

/// Runs a destructor or a waker of the user's; a panic in it is told in a warning and changes nothing.
pub(crate) fn catch_quietly(what: &'static str, run: impl FnOnce()) {
    if let Err(text) = catch(run) {
        logged(|| tracing::warn!(target: "afterboot", %text, "a panic in {what} was caught"));
    }
}

/// Calls the application's subscriber. That is user code too: whatever it does, it decides no task's end and stops no lane.
pub(crate) fn logged<R>(log: impl FnOnce() -> R) -> Option<R> {
    catch(log).ok()
}

/// A payload that is no string is forgotten: its own destructor may panic, and nothing would catch that.
fn text(payload: Box<dyn Any + Send>) -> Arc<str> {
    match payload.downcast::<String>() {
        Ok(text) => (*text).into(),
        Err(payload) => match payload.downcast::<&'static str>() {
            Ok(text) => (*text).into(),
            Err(payload) => {
                std::mem::forget(payload);
                "a payload that is not a string".into()
            }
        },
    }
}
