//! Events that arrive, or are counted.
#![warn(missing_docs)]

pub mod wire;
mod token;
mod transport;

pub use token::Token;
#[cfg(feature = "http")]
pub use transport::http::{EndpointError, HttpTransport};
pub use transport::{MAX_ANSWER, Request, Response, Sending, Transport, TransportError};
