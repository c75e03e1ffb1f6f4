//! The types that a task may return.

use crate::model::error::BoxError;

/// The types that a task's future may return: `()`, or a `Result` whose error can be boxed.
///
/// For any other value use [`Task::value`](crate::Task::value). This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a task returns `()` or a `Result` whose error can be boxed, not `{Self}`",
    note = "async code that gives any other value belongs in `Task::value`, an async fn in `Task::new`; a blocking closure may return `Ok::<_, std::convert::Infallible>(value)`; a closure that only panics needs a `()` at its end"
)]
pub trait TaskOutput: sealed::Sealed {
    /// The type of the value that the handle returns.
    type Value: 'static;

    #[doc(hidden)]
    fn settle(self) -> Result<Self::Value, Box<dyn std::error::Error + Send + Sync>>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl<T, E> Sealed for Result<T, E> {}
}

impl TaskOutput for () {
    type Value = ();

    fn settle(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<T, E> TaskOutput for Result<T, E>
where
    T: 'static,
    E: Into<BoxError>,
{
    type Value = T;

    fn settle(self) -> Result<T, BoxError> {
        self.map_err(Into::into)
    }
}
