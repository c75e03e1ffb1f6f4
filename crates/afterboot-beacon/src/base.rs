//! Tools and bounds that know nothing of batches.

pub(crate) mod bounds;
pub(crate) mod faults;
pub(crate) mod lock;
pub(crate) mod machine;
pub(crate) mod quiet;
pub(crate) mod random;
pub(crate) mod wall;
pub(crate) mod within;
