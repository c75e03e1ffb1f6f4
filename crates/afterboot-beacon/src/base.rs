//! Tools that know nothing of events.

pub(crate) mod quiet;
pub(crate) mod within;
