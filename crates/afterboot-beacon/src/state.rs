//! What the application's handles and the driver have in common.

pub(crate) mod clock;
pub(crate) mod identity;
pub(crate) mod privacy;
pub(crate) mod reply;
pub(crate) mod shared;
pub(crate) mod token;
