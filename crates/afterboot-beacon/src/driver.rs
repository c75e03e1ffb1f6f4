//! The one task that acts: it sends, writes and waits. What to do is the engine's to say.

#[cfg_attr(not(feature = "spool"), path = "driver/no_disk.rs")]
mod disk;
mod event_loop;
mod listen;
mod outage;
mod phase;
mod request;
mod send;
mod shutdown;

pub(crate) use self::event_loop::Driver;
