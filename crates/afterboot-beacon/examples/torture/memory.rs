//! What events cost in memory.

use std::alloc::System;
use std::fs;
use std::time::Duration;

use afterboot_beacon::Beacon;
use afterboot_beacon::testing::ScriptedTransport;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::floor::{DATA, EVENT, USER};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn live() -> f64 {
    let stats = GLOBAL.stats();
    stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
}

/// By how much the heap grows with each event that is queued, while nothing can leave.
pub(crate) fn bytes_per_event(events: u64) -> Result<f64, String> {
    let builder = Beacon::builder("shop").user(USER).max_events(2_000_000).max_bytes(1 << 30);
    let beacon =
        builder.transport(ScriptedTransport::accepting()).build().map_err(|error| error.to_string())?;
    beacon.notify_offline();
    beacon.post(EVENT, &DATA);
    let before = live();
    for _ in 0..events {
        beacon.post(EVENT, &DATA);
    }
    let grown = live() - before;
    let queued = beacon.counters().queued;
    beacon.shutdown_blocking(Duration::ZERO);
    if queued != events + 1 {
        return Err(format!("{queued} are queued: {} were posted", events + 1));
    }
    Ok(grown / events as f64)
}

/// The most that the process ever had in memory, the server and its ledger included. Zero where the system does not say,
/// which is everywhere but on Linux.
pub(crate) fn max_rss_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 =
        line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}
