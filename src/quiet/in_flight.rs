//! Requests in flight: named guards, counted. No ids that an error path could mix up.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::context;
use crate::shared::Shared;

/// How many guards are held, by name. Apart from the core, because every request of the application passes here.
#[derive(Debug)]
pub(crate) struct InFlight {
    max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    total: usize,
    /// A handful of names; looked through in order.
    names: Vec<(Cow<'static, str>, usize)>,
}

impl InFlight {
    pub(crate) fn new(max: usize) -> InFlight {
        InFlight { max, held: Mutex::new(Held::default()) }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn total(&self) -> usize {
        self.lock().total
    }
}

impl Held {
    fn describe(&self) -> Arc<str> {
        let names: Vec<String> = self.names.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        format!("{} ({})", self.total, names.join(", ")).into()
    }
}

/// Counts as one request in flight until it is dropped, however that happens.
///
/// Made by [`Governor::in_flight`](crate::Governor::in_flight).
#[must_use = "a guard that is dropped at once counts nothing"]
pub struct InFlightGuard {
    /// None where it was made inside a governed poll: the application's own requests count, not the boot's.
    counted: Option<(Weak<Shared>, Cow<'static, str>)>,
}

impl InFlightGuard {
    pub(crate) fn enter(shared: &Arc<Shared>, name: Cow<'static, str>) -> InFlightGuard {
        if context::inside_a_governed_poll() {
            return InFlightGuard { counted: None };
        }
        let mut held = shared.in_flight.lock();
        held.total += 1;
        match held.names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => held.names.push((name.clone(), 1)),
        }
        // Told under this lock, so that going over and coming back reach the core in their order.
        if held.total == shared.in_flight.max + 1 {
            let described = held.describe();
            shared.apply(|core, now, _| core.in_flight(Some(described), now));
        }
        InFlightGuard { counted: Some((Arc::downgrade(shared), name)) }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let Some((shared, name)) = self.counted.take() else { return };
        let Some(shared) = shared.upgrade() else { return };
        let mut held = shared.in_flight.lock();
        held.total -= 1;
        if let Some(place) = held.names.iter().position(|(known, _)| *known == name) {
            held.names[place].1 -= 1;
            if held.names[place].1 == 0 {
                held.names.swap_remove(place);
            }
        }
        if held.total == shared.in_flight.max {
            shared.apply(|core, now, _| core.in_flight(None, now));
        }
    }
}

impl fmt::Debug for InFlightGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.counted.as_ref().map(|(_, name)| name);
        f.debug_struct("InFlightGuard").field("counted", &name).finish()
    }
}
