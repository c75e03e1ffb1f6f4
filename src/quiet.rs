//! Is the application quiet? What is seen is a loop that has not come round, whoever kept it.

pub(crate) mod in_flight;
pub(crate) mod probe;
mod record;
pub(crate) mod stalls;
pub(crate) mod window;

pub use record::Quiet;
