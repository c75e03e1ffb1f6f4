//! Requests in flight: named guards, counted. No ids that an error path could mix up.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use crate::context;
use crate::shared::Shared;
use crate::text::Plain;

/// How many guards are held, by name. Pure.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    total: usize,
    /// A handful of names; looked through in order.
    names: Vec<(Cow<'static, str>, usize)>,
}

impl InFlight {
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn enter(&mut self, name: Cow<'static, str>) {
        self.total += 1;
        match self.names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.names.push((name, 1)),
        }
    }

    pub(crate) fn leave(&mut self, name: &str) {
        self.total -= 1;
        if let Some(place) = self.names.iter().position(|(known, _)| known == name) {
            self.names[place].1 -= 1;
            if self.names[place].1 == 0 {
                self.names.remove(place);
            }
        }
    }

    /// `3 in flight: GET /search (2), warm-up (1)`.
    pub(crate) fn describe(&self) -> Arc<str> {
        /// Longer names, and more of them, tell no more.
        const SHOWN: usize = 8;
        let mut names: Vec<String> = self
            .names
            .iter()
            .take(SHOWN)
            .map(|(name, count)| format!("{} ({count})", Plain(name, 40)))
            .collect();
        if self.names.len() > SHOWN {
            names.push("…".to_owned());
        }
        format!("{} in flight: {}", self.total, names.join(", ")).into()
    }
}

/// Counts as one request in flight until it is dropped, however that happens.
///
/// Made by [`Governor::in_flight`](crate::Governor::in_flight).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_named_with_its_count() {
        let mut in_flight = InFlight::default();
        for name in ["GET /search", "warm-up", "GET /search"] {
            in_flight.enter(Cow::Borrowed(name));
        }
        assert_eq!(&*in_flight.describe(), "3 in flight: GET /search (2), warm-up (1)");
        in_flight.leave("GET /search");
        in_flight.leave("warm-up");
        assert_eq!((&*in_flight.describe(), in_flight.total()), ("1 in flight: GET /search (1)", 1));
    }
}
