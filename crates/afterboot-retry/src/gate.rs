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

/// Keeps the callers of one dependency in one process from asking after it all at once. Clones are the same gate.
///
/// The gate is open until a call is reported as [`failed`](Pass::failed). Then the dependency is taken for down: one
/// caller at a time holds the seat and probes, later each time; all others wait. When a probe succeeds, they are let
/// through at moments drawn evenly over the ramp of [`GatePolicy::ramp`]. New callers that were never held back go
/// through at once.
///
/// A caller that gives up while it waits, a probe that is dropped, a probe that panics: each frees the seat. A probe that
/// does not end, or a caller that nobody polls, loses it after [`GatePolicy::probe_lease`]. What a call
/// says that was let through before the last change is not believed.
///
/// Report only what means "down" as failed: a single report closes the gate for everybody. Keep one gate for each
/// dependency, in a `static` or in the application's state.
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

/// What a gate knows of its dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateState {
    /// All calls go through.
    Open,
    /// A call failed and no probe has succeeded since.
    Down {
        /// How long ago it failed.
        outage: Duration,
        /// Probes scheduled so far, the next one included.
        probes: u32,
        /// In how long the next probe is due; zero if it is under way or due now.
        next_probe_in: Duration,
    },
    /// A probe succeeded; those that waited are being let through.
    Ramp {
        /// In how long the last of them is.
        over_in: Duration,
    },
}

impl RetryGate {
    /// An open gate. The system's randomness.
    pub fn new(policy: GatePolicy) -> RetryGate {
        RetryGate::with_rng(policy, JitterRng::from_system())
    }

    /// An open gate with a source of jitter of the caller's.
    pub fn with_rng(policy: GatePolicy, rng: JitterRng) -> RetryGate {
        let core = Mutex::new(Core::new(policy, rng));
        RetryGate(Arc::new(Shared { core, changed: Notify::new(), origin: Instant::now() }))
    }

    /// Waits until a first try may be made: not at all while the gate is open or in its ramp.
    ///
    /// # Cancel safety
    ///
    /// Safe. A caller that gives up frees the seat if it held it; its place is not kept.
    pub async fn enter(&self) -> Pass {
        self.wait(Ticket::default()).await
    }

    /// Waits until another try may be made after one that failed. During the ramp it takes part in it.
    ///
    /// # Cancel safety
    ///
    /// Safe. A caller that gives up frees the seat if it held it; its place is not kept.
    pub async fn reenter(&self) -> Pass {
        self.wait(Ticket::again()).await
    }

    /// Passes whatever the state, for a call that somebody needs now. Its success counts, its failure does not close the
    /// gate further.
    pub fn bypass(&self) -> Pass {
        self.pass(self.0.lock().bypass())
    }

    /// What the gate knows now.
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
            // Registered before the state is looked at, so that no change falls between the look and the wait.
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
        Pass { gate: self.clone(), admission, told: false }
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

    fn wake(&self, whom: Wake) {
        match whom {
            Wake::Nobody => {}
            Wake::One => self.changed.notify_one(),
            Wake::All => self.changed.notify_waiters(),
        }
    }
}

/// Gives the seat back, if it has it, when its holder goes away before its turn.
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

/// Leave to make one call. Say how it went; dropped without a word, a probe frees the seat and the gate stays as it is.
#[must_use = "dropped at once, the pass says nothing about the dependency"]
pub struct Pass {
    gate: RetryGate,
    admission: Admission,
    told: bool,
}

impl Pass {
    /// The dependency answered. If it was down, those that wait are let through over the ramp.
    pub fn succeeded(mut self) {
        self.told = true;
        let shared = &self.gate.0;
        let wake = shared.lock().succeeded(self.admission, shared.now());
        shared.wake(wake);
    }

    /// The dependency is down.
    pub fn failed(mut self) {
        self.fail(false);
    }

    /// Whether this call is the probe.
    pub fn is_probe(&self) -> bool {
        self.admission.seat.is_some()
    }

    fn fail(&mut self, dropped: bool) {
        self.told = true;
        let shared = &self.gate.0;
        let wake = shared.lock().failed(self.admission, dropped, shared.now());
        shared.wake(wake);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.told {
            self.fail(true);
        }
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("probe", &self.is_probe()).finish_non_exhaustive()
    }
}
