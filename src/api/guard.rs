//! The guard that counts a request in flight.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use crate::shell::context;
use crate::shell::shared::Shared;

/// Counts one request as in flight until it is dropped.
///
/// Returned by [`Governor::in_flight`](crate::Governor::in_flight).
#[must_use = "a guard that is dropped at once counts nothing"]
pub struct InFlightGuard {
    /// None where it was made inside a governed task: the application's own requests count, not the boot's.
    counted: Option<(Weak<Shared>, Cow<'static, str>)>,
}

impl InFlightGuard {
    pub(crate) fn enter(shared: &Arc<Shared>, name: Cow<'static, str>) -> InFlightGuard {
        if context::inside_a_governed_poll() {
            return InFlightGuard { counted: None };
        }
        shared.apply(|core, now, _| core.request_enters(name.clone(), now));
        InFlightGuard { counted: Some((Arc::downgrade(shared), name)) }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        if let Some((shared, name)) = self.counted.take()
            && let Some(shared) = shared.upgrade()
        {
            shared.apply(|core, now, actions| core.request_leaves(&name, now, actions));
        }
    }
}

impl fmt::Debug for InFlightGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.counted.as_ref().map(|(_, name)| name);
        f.debug_struct("InFlightGuard").field("counted", &name).finish()
    }
}
