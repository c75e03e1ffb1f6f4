//! The gate: while a dependency is down one caller probes it, the rest wait and are let back in over a ramp.

mod core;

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use self::core::{Admission, Core, Phase, Ticket, Turn, Wake};
use crate::gate_policy::GatePolicy;
use crate::later::later;
use crate::random::JitterRng;

/// A circuit breaker for the callers of one dependency in one process: while it is down, one caller probes and the others
/// wait. Clones share the gate.
///
/// The gate is open until a call is reported as [`failed`](Pass::failed). Then the dependency is considered down: one
/// caller at a time holds the seat and probes, with growing delays; all others wait. When a probe succeeds, the waiting
/// callers are released at moments drawn uniformly from the ramp of [`GatePolicy::ramp`]. New callers that never waited
/// pass at once.
///
/// A waiting caller that is dropped, a probe that is dropped and a probe that panics free the seat. A probe that does not
/// end, or a waiting future that is not polled, loses the seat after [`GatePolicy::probe_lease`]. The result of a call that
/// passed before the last change of state is ignored.
///
/// Report only failures that mean "down" as failed: a single report closes the gate for all callers. Keep one gate for
/// each dependency, in a `static` or in the application's state.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// # async fn call() -> Result<u32, std::io::Error> { Ok(1) }
/// use afterboot_retry::RetryGate;
///
/// let gate = RetryGate::default();
/// let pass = gate.enter().await;
/// match call().await {
///     Ok(_) => pass.succeeded(),
///     Err(_) => pass.failed(), // then: gate.reenter().await
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct RetryGate(Arc<Shared>);

struct Shared {
    core: Mutex<Core>,
    changed: Notify,
    origin: Instant,
}

/// The state of a [`RetryGate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateState {
    /// All calls pass.
    Open,
    /// A call failed and no probe has succeeded since.
    #[non_exhaustive]
    Down {
        /// Time since that failure.
        outage: Duration,
        /// Probes scheduled so far, the next one included.
        probes: u32,
        /// Time until the next probe is due; zero if it is running or due now.
        next_probe_in: Duration,
    },
    /// A probe succeeded; the callers that waited are being released.
    #[non_exhaustive]
    Ramp {
        /// Time until the last of them is released.
        over_in: Duration,
    },
}

impl RetryGate {
    /// Creates an open gate with jitter seeded by the operating system.
    pub fn new(policy: GatePolicy) -> RetryGate {
        RetryGate::with_rng(policy, JitterRng::from_system())
    }

    /// Creates an open gate with the given source of jitter.
    pub fn with_rng(policy: GatePolicy, rng: JitterRng) -> RetryGate {
        let core = Mutex::new(Core::new(policy, rng));
        RetryGate(Arc::new(Shared { core, changed: Notify::new(), origin: Instant::now() }))
    }

    /// Waits until a first attempt may be made. Returns at once while the gate is open or in its ramp.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. A dropped future frees the seat if it held it; its place is not kept.
    pub async fn enter(&self) -> Pass {
        self.wait(Ticket::default()).await
    }

    /// Waits until a retry may be made after a failed attempt. During the ramp it waits for its release.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. A dropped future frees the seat if it held it; its place is not kept.
    pub async fn reenter(&self) -> Pass {
        self.wait(Ticket::again()).await
    }

    /// Passes in any state, for a call that cannot wait. Its success opens the gate; its failure closes an open gate and
    /// does not delay the next probe.
    pub fn bypass(&self) -> Pass {
        self.pass(self.0.lock().bypass())
    }

    /// Returns the current state.
    pub fn state(&self) -> GateState {
        let now = self.0.now();
        match self.0.lock().phase(now) {
            Phase::Up => GateState::Open,
            Phase::Down { since, probes, next_probe, .. } => GateState::Down {
                outage: now.saturating_sub(since),
                probes,
                next_probe_in: next_probe.saturating_sub(now),
            },
            Phase::Ramp { until, .. } => GateState::Ramp { over_in: until.saturating_sub(now) },
        }
    }

    async fn wait(&self, ticket: Ticket) -> Pass {
        let shared = &self.0;
        let mut place = Place { shared, ticket };
        loop {
            // Registered before the state is read, so that no change falls between the two.
            let mut changed = pin!(shared.changed.notified());
            changed.as_mut().enable();
            let turn = shared.lock().ask(&mut place.ticket, shared.now());
            match turn {
                Turn::Go(admission) => return self.pass(admission),
                // Whether time or a change comes first, the core is asked again.
                Turn::Until(at) | Turn::Parked { lease: at } => {
                    drop(timeout_at(later(shared.origin, at), changed).await);
                }
            }
        }
    }

    fn pass(&self, admission: Admission) -> Pass {
        Pass { gate: self.clone(), admission, reported: false }
    }
}

impl Default for RetryGate {
    fn default() -> RetryGate {
        RetryGate::new(GatePolicy::default())
    }
}

impl fmt::Debug for RetryGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RetryGate").field(&self.state()).finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wake(&self, wake: Wake) {
        match wake {
            Wake::None => {}
            Wake::One => self.changed.notify_one(),
            Wake::All => self.changed.notify_waiters(),
        }
    }
}

/// Frees the seat, if it holds it, when the waiting future is dropped before its turn.
struct Place<'a> {
    shared: &'a Shared,
    ticket: Ticket,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let wake = self.shared.lock().left(&self.ticket);
        self.shared.wake(wake);
    }
}

/// Permission to make one call. Report its result with [`succeeded`](Pass::succeeded) or [`failed`](Pass::failed). Dropped
/// without a report, a probe frees the seat, and the state of the gate does not change.
#[must_use = "a pass that is dropped at once reports nothing about the dependency"]
pub struct Pass {
    gate: RetryGate,
    admission: Admission,
    reported: bool,
}

impl Pass {
    /// Reports that the dependency answered. If it was down, the waiting callers are released over the ramp.
    pub fn succeeded(mut self) {
        self.reported = true;
        let shared = &self.gate.0;
        let wake = shared.lock().succeeded(self.admission, shared.now());
        shared.wake(wake);
    }

    /// Reports that the dependency is down.
    pub fn failed(mut self) {
        self.fail(false);
    }

    /// Returns whether this call is the probe.
    pub fn is_probe(&self) -> bool {
        self.admission.seat.is_some()
    }

    fn fail(&mut self, dropped: bool) {
        self.reported = true;
        let shared = &self.gate.0;
        let wake = shared.lock().failed(self.admission, dropped, shared.now());
        shared.wake(wake);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.reported {
            self.fail(true);
        }
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("probe", &self.is_probe()).finish_non_exhaustive()
    }
}
