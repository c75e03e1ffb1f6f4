//! The integration tests: claims about the running governor, each citing an invariant of `DESIGN.md`.

mod common;
mod gate;
mod panics;
mod run;
mod demand;
mod limits;
mod order;
mod shutdown;
mod holds;
mod lane;
mod pulse;
mod laws;
mod blocking;
mod program;
mod wakers;
mod quiet;
mod local;
mod monkey;
mod report;
mod stress;
mod settled;
mod at_start;
mod deadlines;
mod story;
#[cfg(feature = "serde")]
mod trace;
