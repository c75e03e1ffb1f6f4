//! `afterboot-beacon` measured against other event clients, on the same events and the same sink.
//!
//! Every client runs in a process of its own: its heap, its threads and its processor time are then its own, and one that
//! does not come back is killed at a bound. The sink is in the parent.

mod args;
mod child;
mod clients;
mod event;
mod measure;
mod parent;
mod saving;
mod sink;
mod table;

use std::process::ExitCode;

use args::{Args, Task};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    let result = Args::read(std::env::args().skip(1)).and_then(|args| match args.task {
        Task::Compare => parent::compare(&args),
        Task::Saving => saving::table(&args),
        Task::Measure => child::measure(&args),
        Task::Heap => child::heap(&args),
        Task::Save => saving::child(&args),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
