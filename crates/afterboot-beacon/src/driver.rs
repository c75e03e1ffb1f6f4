//! The one task that acts: it sends, writes and waits. What to do is the engine's to say.

#[cfg_attr(not(feature = "spool"), path = "driver/no_disk.rs")]
mod disk;
mod event_loop;
mod outage;
mod send;
mod shutdown;

#[cfg(feature = "spool")]
pub(crate) use self::disk::DeadCommand;
pub(crate) use self::disk::DiskOptions;
pub(crate) use self::event_loop::{Command, Driver};
pub(crate) use self::shutdown::Leave;
