//! Events that arrive, or are counted.
#![warn(missing_docs)]

pub mod wire;
mod token;
mod transport;
#[cfg(feature = "spool")]
#[cfg_attr(not(test), expect(dead_code, reason = "the client that spools is not joined to it yet"))]
mod spool;
#[cfg(feature = "spool")]
mod dead;

#[cfg(feature = "spool")]
#[doc(hidden)]
pub use dead::command_line;
#[cfg(feature = "spool")]
pub use dead::{DeadBatchError, DeadId, DeadIdError, DeadLetter, DeadLetters, ProcessSpool, Replay};
#[cfg(feature = "spool")]
pub use spool::{Durability, SpoolError, SpoolOptions};
pub use token::Token;
pub use transport::{MAX_ANSWER, Request, Response, Sending, Transport, TransportError};
