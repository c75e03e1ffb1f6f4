//! The integration tests: claims about schedules, limits and the parts that wait. The figures are those that the README
//! and the docs publish; numbers such as R7 are invariants of the crate's `DESIGN.md`.

mod common;
#[path = "../../examples/herd/rivals.rs"]
mod rivals;
#[path = "../../examples/herd/schedules.rs"]
mod schedules;
#[path = "../../examples/herd/sim.rs"]
mod sim;

mod budget;
mod classify;
mod documents;
mod figures;
mod jitter;
mod limits;
mod policies;
mod properties;
mod throttle;
mod wire;

#[cfg(feature = "tokio")]
mod gate;
#[cfg(feature = "tokio")]
mod gate_herd;
#[cfg(feature = "tokio")]
mod interop;
#[cfg(feature = "tokio")]
mod nesting;
#[cfg(feature = "tokio")]
mod poller;
#[cfg(feature = "tokio")]
mod retry_loop;
