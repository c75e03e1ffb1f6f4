//! The signals that ask a process to end, and what a shutdown on one returns.

use std::io;

use crate::wire::Counters;

/// A signal that asks the process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// Ctrl-C or SIGINT.
    Interrupt,
    /// SIGTERM. Unix only.
    Terminate,
}

impl Signal {
    /// Returns the exit code that a shell reports for a process ended by this signal: 130 or 143.
    pub fn exit_code(self) -> i32 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// The beacon has shut down because of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutDown {
    /// The signal.
    pub signal: Signal,
    /// The counters at the end.
    pub counters: Counters,
}

pub(crate) type ShutDownResult = Result<ShutDown, io::Error>;
