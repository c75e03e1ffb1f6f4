//! The time since the machine's start, and which start that was.

use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::random::random;

/// How long ago the machine started, times included in which it slept: a process that starts after a sleep and one that
/// slept must not differ. `None` where no such clock can be asked.
#[cfg(all(feature = "spool", any(target_os = "linux", target_os = "android")))]
pub(crate) fn since_start() -> Option<Duration> {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Some(Duration::new(since.tv_sec.try_into().ok()?, since.tv_nsec.try_into().ok()?))
}

#[cfg(not(all(feature = "spool", any(target_os = "linux", target_os = "android"))))]
pub(crate) fn since_start() -> Option<Duration> {
    None
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Which start of the machine, and how long ago it was when this process first asked.
#[derive(Debug)]
struct Boot {
    id: Arc<str>,
    up: Duration,
    asked: std::time::Instant,
}

/// Read once a process, so that two beacons agree.
fn boot() -> &'static Boot {
    static BOOT: OnceLock<Boot> = OnceLock::new();
    BOOT.get_or_init(|| {
        let read = |path| fs::read_to_string(path).ok();
        let id = read("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned());
        let up = read("/proc/uptime")
            .and_then(|uptime| uptime.split(' ').next()?.parse().ok())
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        #[expect(clippy::disallowed_methods, reason = "ages of events, which tests do not schedule by")]
        let asked = std::time::Instant::now();
        match (id, up) {
            (Some(id), Some(up)) => Boot { id: id.into(), up, asked },
            // A system that does not say: ages are known within this process.
            _ => {
                let id = format!("process-{:032x}", u128::from_be_bytes(random()));
                Boot { id: id.into(), up: Duration::ZERO, asked }
            }
        }
    })
}

/// Milliseconds since the machine started, where there is no beacon yet.
pub(crate) fn mono_ms() -> u64 {
    millis(since_start().unwrap_or_else(|| {
        let boot = boot();
        boot.up + boot.asked.elapsed()
    }))
}

/// Which start of the machine these milliseconds count from.
pub(crate) fn boot_id() -> Arc<str> {
    Arc::clone(&boot().id)
}
