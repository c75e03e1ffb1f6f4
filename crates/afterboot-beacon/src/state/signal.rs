//! The signals that ask a process to end, and the answer to whoever waits for one.

use std::io;

use crate::wire::Counters;

/// What asked the process to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-c.
    Interrupt,
    /// SIGTERM, which service managers send first. Only on Unix.
    Terminate,
}

impl Signal {
    /// What a shell shows for a process that this signal ended: 130 or 143.
    pub fn exit_code(self) -> i32 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// The beacon has left because of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutDown {
    /// Which.
    pub signal: Signal,
    /// Where every event is.
    pub counters: Counters,
}

pub(crate) type ShutDownResult = Result<ShutDown, io::Error>;
