//! Three clocks, read together: tokio's, the wall's, and the machine's time since its start.

use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::core::Now;
use crate::identity;
#[cfg(feature = "spool")]
use crate::spool::Stamp;

/// Where an event's wall time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wall {
    /// The system's clock, read anew each time: it may be set, and the machine may sleep.
    System,
    /// The system's clock at the start, then tokio's: a paused clock drives it.
    Tokio,
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
        let boot = boot();
        let up = boot.up + boot.asked.elapsed();
        Clock {
            base: Instant::now(),
            wall_at_base: system_ms(),
            mono_at_base: u64::try_from(up.as_millis()).unwrap_or(u64::MAX),
            wall,
        }
    }

    pub(crate) fn now(&self) -> Now {
        let at = self.base.elapsed();
        let wall = match self.wall {
            Wall::System => system_ms(),
            Wall::Tokio => self.wall_at_base + at.as_millis() as u64,
        };
        Now { at, wall, mono: self.mono_at_base + at.as_millis() as u64 }
    }

    pub(crate) fn instant(&self, at: Duration) -> Option<Instant> {
        self.base.checked_add(at)
    }
}

/// Milliseconds since the machine started, where there is no beacon yet.
pub(crate) fn mono_ms() -> u64 {
    let boot = boot();
    u64::try_from((boot.up + boot.asked.elapsed()).as_millis()).unwrap_or(u64::MAX)
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
