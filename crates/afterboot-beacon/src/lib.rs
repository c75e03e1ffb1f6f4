//! Events that arrive, or are counted.
#![warn(missing_docs)]

pub mod wire;
mod token;
mod transport;

pub use token::Token;
pub use transport::{MAX_ANSWER, Request, Response, Sending, Transport, TransportError};
