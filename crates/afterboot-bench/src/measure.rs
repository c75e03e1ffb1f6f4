//! Clocks, the heap, and what the kernel counts. All of this process.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use stats_alloc::INSTRUMENTED_SYSTEM;

#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the thread that posts at a steady rate waits in between")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Processor time of all threads so far, also of those that have ended.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}

/// Bytes that are allocated now.
pub(crate) fn heap() -> i64 {
    let stats = INSTRUMENTED_SYSTEM.stats();
    // A growing reallocation counts as an allocation of the difference already, a shrinking one as a deallocation.
    let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    signed(stats.bytes_allocated) - signed(stats.bytes_deallocated)
}

/// The largest resident set so far, in KiB.
pub(crate) fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    number_after(&status, "VmHWM:").unwrap_or_default()
}

/// How often a thread of this process other than the first went to sleep, so was woken after. Of threads that live.
pub(crate) fn wakeups_of_other_threads() -> u64 {
    let first = std::process::id().to_string();
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0 };
    threads
        .flatten()
        .filter(|thread| thread.file_name().to_string_lossy() != first)
        .filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok())
        .filter_map(|status| number_after(&status, "voluntary_ctxt_switches:"))
        .sum()
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The value below which this share of the sorted values lies.
pub(crate) fn percentile(sorted: &[u32], share: f64) -> u32 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}
