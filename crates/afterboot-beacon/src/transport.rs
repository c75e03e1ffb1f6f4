//! Sending a request: the trait, and the transport over HTTP.

#[cfg(feature = "http")]
pub(crate) mod http;
mod token;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

pub use self::token::Token;
use crate::wire::Headers;

/// One attempt to send a batch. Its `Debug` shows the size of the body and not its content.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// The body, compressed with gzip.
    pub body: Arc<[u8]>,
    /// The headers, which are new for each attempt.
    pub headers: Headers,
    /// The bearer token for the `authorization` header.
    pub token: Option<Token>,
}

impl Request {
    /// A request of these parts, to test a transport with.
    pub fn new(body: Arc<[u8]>, headers: Headers, token: Option<Token>) -> Request {
        Request { body, headers, token }
    }
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

/// The response to a request, as a [`Transport`] returns it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The `retry-after` header, unparsed.
    pub retry_after: Option<String>,
    /// The `date` header, unparsed. A date in `retry_after` is relative to it or, without it, to this machine's clock.
    pub date: Option<String>,
    /// The body, of which a transport reads at most [`MAX_RESPONSE`] bytes.
    pub body: Vec<u8>,
}

impl Response {
    /// A response with this status code and nothing else.
    pub fn new(status: u16) -> Response {
        Response { status, ..Response::default() }
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(self, body: impl Into<Vec<u8>>) -> Response {
        Response { body: body.into(), ..self }
    }

    /// Sets the `retry-after` header.
    #[must_use]
    pub fn with_retry_after(self, retry_after: impl Into<String>) -> Response {
        Response { retry_after: Some(retry_after.into()), ..self }
    }

    /// Sets the `date` header.
    #[must_use]
    pub fn with_date(self, date: impl Into<String>) -> Response {
        Response { date: Some(date.into()), ..self }
    }
}

/// The most bytes of a response body that a transport reads: 64 KiB. An ack with 100 rejected events and long reasons fits.
pub const MAX_RESPONSE: usize = 64 * 1024;

/// Why no response came: connection refused or reset, no such host, response cut short.
#[derive(Debug)]
pub struct TransportError(Box<dyn std::error::Error + Send + Sync>);

impl TransportError {
    /// Wraps the cause.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TransportError {
        TransportError(cause.into())
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

/// The future that [`Transport::send`] returns.
pub type Sending = Pin<Box<dyn Future<Output = Result<Response, TransportError>> + Send>>;

/// Sends a request to the endpoint and returns its response.
///
/// A response that settles a batch carries an [`Ack`](crate::wire::Ack) as JSON. A server written in Rust makes one with
/// [`Ack::all_accepted`](crate::wire::Ack::all_accepted) or [`Ack::from_verdicts`](crate::wire::Ack::from_verdicts).
///
/// The crate provides `HttpTransport`, and [`ScriptedTransport`](crate::testing::ScriptedTransport) for tests.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Sends the request. The future is polled on the beacon's runtime. The beacon bounds it by its own time limit and may
    /// drop it at any moment; a panic in it counts as no response.
    fn send(&self, request: Request) -> Sending;
}
