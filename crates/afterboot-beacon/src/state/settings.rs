//! Everything that a beacon is started with.

use std::sync::Arc;
use std::time::Duration;

use super::clock::Wall;
use super::privacy::AllowLists;
use super::token_source::TokenSource;
use crate::base::faults::Machine;
use crate::engine::Limits;
#[cfg(feature = "spool")]
use crate::spool::{Durability, SpoolOptions};
use crate::transport::Transport;

/// How requests are sent. A forked child makes its own connections if it can.
#[derive(Debug, Clone)]
pub(crate) enum TransportSource {
    #[cfg(feature = "http")]
    Url(String),
    Own(Arc<dyn Transport>),
}

/// Everything that a beacon is started with.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) app: String,
    pub(crate) transport: TransportSource,
    pub(crate) tokens: TokenSource,
    pub(crate) limits: Limits,
    pub(crate) delays: Delays,
    pub(crate) time_limit: Duration,
    pub(crate) expiry: Duration,
    pub(crate) allow: AllowLists,
    pub(crate) wall: Wall,
    pub(crate) machine: Machine,
    pub(crate) disk: DiskOptions,
}

impl Settings {
    /// Returns whether a durable post is satisfied in memory.
    pub(crate) fn is_buffered(&self) -> bool {
        self.disk.is_buffered()
    }
}

/// How soon events are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delays {
    pub(crate) vital: Duration,
    pub(crate) basic: Duration,
}

#[cfg(feature = "spool")]
#[derive(Debug, Clone)]
pub(crate) struct DiskOptions {
    pub(crate) spool: Option<SpoolOptions>,
    pub(crate) durability: Durability,
    pub(crate) machine: Machine,
}

#[cfg(feature = "spool")]
impl DiskOptions {
    pub(crate) fn has_spool(&self) -> bool {
        self.spool.is_some()
    }

    pub(crate) fn is_buffered(&self) -> bool {
        self.durability == Durability::Buffered
    }
}

#[cfg(not(feature = "spool"))]
#[derive(Debug, Clone)]
pub(crate) struct DiskOptions;

#[cfg(not(feature = "spool"))]
impl DiskOptions {
    pub(crate) fn has_spool(&self) -> bool {
        false
    }

    pub(crate) fn is_buffered(&self) -> bool {
        false
    }
}
