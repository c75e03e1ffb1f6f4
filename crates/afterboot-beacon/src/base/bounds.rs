//! Bounds that the engine and the spool share.

use std::time::Duration;

use crate::wire::MAX_BODY;

/// The default expiry of an event: 24 h, from Facebook's Banzai client.
pub(crate) const EXPIRY: Duration = Duration::from_secs(24 * 3600);

/// A larger event is not kept as a dead letter: no row is read that inflates to more.
pub(crate) const MAX_LETTER: usize = 4 * MAX_BODY;
