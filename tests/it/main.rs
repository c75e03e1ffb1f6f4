//! The integration tests: claims about the running governor, each citing an invariant of `DESIGN.md`.

mod common;
