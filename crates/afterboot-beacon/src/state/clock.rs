//! Three clocks, read together: tokio's, the wall's, and the machine's time since its start.

use std::time::Duration;

use tokio::time::Instant;

use crate::base::faults::Machine;
#[cfg(feature = "spool")]
use crate::base::machine::boot_id;
use crate::base::machine::{millis, mono_ms, since_start};
use crate::base::wall::system_ms;
use crate::engine::Now;
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

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    base: Instant,
    wall_at_base: u64,
    mono_at_base: u64,
    wall: Wall,
    machine: Machine,
}

impl Clock {
    pub(crate) fn start(wall: Wall, machine: Machine) -> Clock {
        let base = Instant::now();
        Clock { base, wall_at_base: system_ms(), mono_at_base: mono_ms(), wall, machine }
    }

    pub(crate) fn now(&self) -> Now {
        let at = self.base.elapsed();
        let counted = self.mono_at_base + at.as_millis() as u64;
        let (wall, mono) = match self.wall {
            Wall::System => (system_ms(), since_start().map_or(counted, millis)),
            Wall::Tokio => (self.wall_at_base + at.as_millis() as u64, counted),
        };
        Now { at, wall: self.machine.wall(wall), mono }
    }

    pub(crate) fn instant(&self, at: Duration) -> Option<Instant> {
        self.base.checked_add(at)
    }
}

/// Now, where there is no beacon.
#[cfg(feature = "spool")]
pub(crate) fn stamp() -> Stamp {
    Stamp { wall: system_ms(), mono: mono_ms(), boot: boot_id() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B29: processes of one start of the machine count from one moment, and none counts by itself from when it began.
    #[cfg(all(feature = "spool", target_os = "linux"))]
    #[tokio::test(start_paused = true)]
    async fn the_machines_time_is_the_systems_own() {
        let clock = Clock::start(Wall::System, Machine::new());
        // Time that this process knows of, and the machine does not.
        tokio::time::advance(Duration::from_secs(10_000)).await;
        let (mono, system) = (clock.now().mono, since_start().map(millis).unwrap_or_default());
        assert!(mono <= system && mono + 60_000 > system, "{mono} ms, the system says {system}");
        assert!(Clock::start(Wall::Tokio, Machine::new()).now().mono.abs_diff(mono) < 60_000);
    }
}
