//! Is the application quiet? What is seen is a loop that has not come round, whoever kept it.

pub(crate) mod in_flight;
#[cfg(feature = "tracing-layer")]
pub(crate) mod layer;
pub(crate) mod observe;
pub(crate) mod probe;
mod record;
mod rounds;
pub(crate) mod sampler;
pub(crate) mod stalls;
pub(crate) mod stops;
#[cfg(feature = "tower")]
pub(crate) mod tower;
pub(crate) mod window;
pub(crate) mod witness;
pub(crate) mod workers;

pub use record::Quiet;
