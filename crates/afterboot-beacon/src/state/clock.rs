//! Three clocks, read together: tokio's, the wall's, and the machine's time since its start.

use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::engine::Now;
#[cfg(feature = "spool")]
use crate::spool::Stamp;
use crate::state::identity;

/// Where an event's wall time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wall {
    /// The system's clock, read anew each time: it may be set, and the machine may sleep.
    System,
    /// The system's clock at the start, then tokio's: a paused clock drives it.
    Tokio,
}

/// How long ago the machine started, times included in which it slept: a process that starts after a sleep and one that
/// slept must not differ. `None` where no such clock can be asked.
#[cfg(all(feature = "spool", any(target_os = "linux", target_os = "android")))]
fn since_start() -> Option<Duration> {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Some(Duration::new(since.tv_sec.try_into().ok()?, since.tv_nsec.try_into().ok()?))
}

#[cfg(not(all(feature = "spool", any(target_os = "linux", target_os = "android"))))]
fn since_start() -> Option<Duration> {
    None
}

fn millis(time: Duration) -> u64 {
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
                let id = format!("process-{:032x}", u128::from_be_bytes(identity::random()));
                Boot { id: id.into(), up: Duration::ZERO, asked }
            }
        }
    })
}

pub(crate) fn system_ms() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a stamp on an event, which nothing is scheduled by")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    base: Instant,
    wall_at_base: u64,
    mono_at_base: u64,
    wall: Wall,
}

impl Clock {
    pub(crate) fn start(wall: Wall) -> Clock {
        Clock { base: Instant::now(), wall_at_base: system_ms(), mono_at_base: mono_ms(), wall }
    }

    pub(crate) fn now(&self) -> Now {
        let at = self.base.elapsed();
        let counted = self.mono_at_base + at.as_millis() as u64;
        let (wall, mono) = match self.wall {
            Wall::System => (system_ms(), since_start().map_or(counted, millis)),
            Wall::Tokio => (self.wall_at_base + at.as_millis() as u64, counted),
        };
        Now { at, wall, mono }
    }

    pub(crate) fn instant(&self, at: Duration) -> Option<Instant> {
        self.base.checked_add(at)
    }
}

/// Milliseconds since the machine started, where there is no beacon yet.
pub(crate) fn mono_ms() -> u64 {
    millis(since_start().unwrap_or_else(|| {
        let boot = boot();
        boot.up + boot.asked.elapsed()
    }))
}

/// Now, where there is no beacon.
#[cfg(feature = "spool")]
pub(crate) fn stamp() -> Stamp {
    Stamp { wall: system_ms(), mono: mono_ms(), boot: boot_id() }
}

/// Which start of the machine these milliseconds count from.
pub(crate) fn boot_id() -> Arc<str> {
    Arc::clone(&boot().id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B29: processes of one start of the machine count from one moment, and none counts by itself from when it began.
    #[cfg(all(feature = "spool", target_os = "linux"))]
    #[tokio::test(start_paused = true)]
    async fn the_machines_time_is_the_systems_own() {
        let clock = Clock::start(Wall::System);
        // Time that this process knows of, and the machine does not.
        tokio::time::advance(Duration::from_secs(10_000)).await;
        let (mono, system) = (clock.now().mono, since_start().map(millis).unwrap_or_default());
        assert!(mono <= system && mono + 60_000 > system, "{mono} ms, the system says {system}");
        assert!(Clock::start(Wall::Tokio).now().mono.abs_diff(mono) < 60_000);
    }
}
