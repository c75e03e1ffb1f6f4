//! How a request leaves: the HTTP transport, and one for tests and for virtual time.

#[cfg(feature = "http")]
pub(crate) mod http;
mod token;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

pub use self::token::Token;
use crate::wire::Headers;

/// One try of one batch. Its `Debug` says how long the body is, not what the users did.
#[derive(Clone)]
pub struct Request {
    /// The body, compressed with gzip.
    pub body: Arc<[u8]>,
    /// What is renewed on each try.
    pub headers: Headers,
    /// For the `authorization` header, as a bearer token.
    pub token: Option<Token>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("body", &format_args!("{} bytes", self.body.len()))
            .field("headers", &self.headers)
            .field("token", &self.token)
            .finish()
    }
}

/// What came back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The `retry-after` header as it came.
    pub retry_after: Option<String>,
    /// The `date` header as it came: the clock by which a date in `retry_after` is meant. Without it, this machine's decides.
    pub date: Option<String>,
    /// The body, of which a transport reads at most [`MAX_ANSWER`] bytes.
    pub body: Vec<u8>,
}

/// The most bytes of an answer that a transport reads: 64 KiB. An ack of 100 rejected events with a long reason each fits.
pub const MAX_ANSWER: usize = 64 * 1024;

/// Why no answer came: refused, reset, no such host, cut short.
#[derive(Debug)]
pub struct TransportError(Box<dyn std::error::Error + Send + Sync>);

impl TransportError {
    /// Says why.
    pub fn new(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TransportError {
        TransportError(why.into())
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// A request under way.
pub type Sending = Pin<Box<dyn Future<Output = Result<Response, TransportError>> + Send>>;

/// What carries a request to the endpoint and brings its answer.
///
/// An answer that settles a batch is an [`Ack`](crate::wire::Ack) as JSON; a server of your own makes one with
/// [`Ack::all_accepted`](crate::wire::Ack::all_accepted) or [`Ack::from_verdicts`](crate::wire::Ack::from_verdicts).
///
/// Two of them come with the crate: `HttpTransport`, and [`ScriptedTransport`](crate::api::testing::ScriptedTransport) for tests.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Sends. The future is polled on the beacon's runtime, is bounded by the beacon's own time limit and may be dropped
    /// at any moment; a panic in it counts as no answer.
    fn send(&self, request: Request) -> Sending;
}
