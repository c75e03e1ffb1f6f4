//! The integration tests: claims about the running governor, each citing an invariant of `DESIGN.md`.

mod common;
mod gate;
mod panics;
mod rounds;
mod run;
mod demand;
mod urgency;
mod limits;
mod order;
mod shutdown;
mod lane;
mod pulse;
mod laws;
mod blocking;
mod program;
mod woken_stuck;
mod waits;
mod clocks;
mod subscribers;
mod wakers;
mod quiet;
mod local;
mod monkey;
mod report;
mod stress;
mod settled;
mod at_start;
mod deadlines;
mod far_away;
mod starving;
mod signals;
mod lists;
mod env;
mod bounded;
mod events;
mod snapshot;
mod spans;
mod outcomes;
mod handles;
mod names;
mod observe;
mod holds;
#[cfg(feature = "replay")]
mod replay;
#[cfg(feature = "replay")]
mod what_if;
#[cfg(feature = "replay")]
mod fidelity;
#[cfg(all(feature = "replay", feature = "serde"))]
mod recordings;
mod stuck;
mod take_over;
mod threads;
mod telemetry;
mod leave;
mod lending;
mod cycles;
mod slow;
mod crowded;
mod loss;
mod nets;
#[cfg(all(unix, feature = "serde"))]
mod stops;
mod story;
#[cfg(feature = "serde")]
mod trace;
#[cfg(feature = "retry")]
mod retryable;
