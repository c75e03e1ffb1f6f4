//! What the application's handles and the driver have in common.

pub(crate) mod clock;
pub(crate) mod command;
pub(crate) mod identity;
pub(crate) mod privacy;
pub(crate) mod quality;
pub(crate) mod reply;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod signal;
pub(crate) mod token_source;
