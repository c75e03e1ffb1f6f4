//! [`HttpTransport`]: HTTP/1.1 by hyper.

mod connect;
mod endpoint;
mod names;

pub use endpoint::EndpointError;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
use tokio::runtime::Handle;

use super::{MAX_RESPONSE, Request, Response, Sending, Transport, TransportError};
use crate::base::quiet::QuietExecutor;
use connect::Bounded;
use names::Names;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

// Balancers commonly close a silent connection after 60 s: ours goes first, so that no batch races with that.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

// One for the batch of each priority.
const IDLE_CONNECTIONS: usize = 2;

/// Sends batches over HTTP/1.1, by POST to one endpoint.
///
/// Redirects are not followed, and the environment's proxy variables are not read. Of a response body, at most
/// [`MAX_RESPONSE`] bytes are read: a longer body makes a successful response an error, and is truncated otherwise, where
/// the status alone decides about the batch.
///
/// Keeps at most two idle connections, for 50 s.
#[derive(Clone)]
pub struct HttpTransport {
    endpoint: Uri,
    client: AnyClient,
}

#[derive(Clone)]
enum AnyClient {
    Plain(Client<Bounded<HttpConnector<Names>>, Full<Bytes>>),
    #[cfg(feature = "tls")]
    Tls(Client<Bounded<hyper_rustls::HttpsConnector<HttpConnector<Names>>>, Full<Bytes>>),
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl HttpTransport {
    /// Returns a transport to this `http://` or, with the feature `tls`, `https://` URL. Connecting is limited to 5 s, including
    /// name resolution and the TLS handshake.
    ///
    /// # Errors
    /// Fails if the URL has another scheme, a user, a password, a query or a fragment. Secrets belong into a
    /// [`Token`](crate::Token), because URLs end up in logs. An `https://` URL also fails if the system has no root
    /// certificates.
    pub fn new(url: &str) -> Result<HttpTransport, EndpointError> {
        HttpTransport::with_connect_timeout(url, CONNECT_TIMEOUT)
    }

    /// As [`new`](HttpTransport::new), with another limit for connecting.
    ///
    /// # Errors
    /// Fails as `new` does.
    pub fn with_connect_timeout(url: &str, limit: Duration) -> Result<HttpTransport, EndpointError> {
        let endpoint = endpoint::parse(url)?;
        let client = AnyClient::new(&endpoint, limit).map_err(EndpointError::roots)?;
        Ok(HttpTransport { endpoint, client })
    }
}

impl AnyClient {
    fn new(endpoint: &Uri, limit: Duration) -> std::io::Result<AnyClient> {
        let mut tcp = HttpConnector::new_with_resolver(Names::default());
        // A batch is one write: nothing is gained by waiting for more.
        tcp.set_nodelay(true);
        let mut builder = Client::builder(QuietExecutor);
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_buf_size(MAX_RESPONSE);
        #[cfg(feature = "tls")]
        if endpoint.scheme_str() == Some("https") {
            tcp.enforce_http(false);
            let tls = hyper_rustls::HttpsConnectorBuilder::new()
                // Named, because the process-wide choice panics where the application's crates bring two.
                .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
                .https_only()
                .enable_http1()
                .wrap_connector(tcp);
            return Ok(AnyClient::Tls(builder.build(Bounded::new(tls, limit))));
        }
        let _ = endpoint;
        Ok(AnyClient::Plain(builder.build(Bounded::new(tcp, limit))))
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request) -> Sending {
        let request = http_request(&self.endpoint, request);
        let client = self.client.clone();
        Box::pin(async move {
            let request = request?;
            if Handle::try_current().is_err() {
                return Err(TransportError::new("HttpTransport needs a tokio runtime"));
            }
            let answer = match client {
                AnyClient::Plain(client) => client.request(request).await,
                #[cfg(feature = "tls")]
                AnyClient::Tls(client) => client.request(request).await,
            };
            read(answer.map_err(|error| no_answer("no answer", &error))?).await
        })
    }
}

fn http_request(endpoint: &Uri, request: Request) -> Result<hyper::Request<Full<Bytes>>, TransportError> {
    let body = Full::new(Bytes::from_owner(request.body));
    let mut http = hyper::Request::new(body);
    *http.method_mut() = Method::POST;
    *http.uri_mut() = endpoint.clone();
    let headers = http.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let agent = concat!("afterboot-beacon/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    if let Some(token) = request.token {
        let mut value = header_value("authorization", format!("Bearer {}", token.expose()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in request.headers.pairs() {
        headers.insert(HeaderName::from_static(name), header_value(name, value)?);
    }
    Ok(http)
}

fn header_value(name: &str, value: String) -> Result<HeaderValue, TransportError> {
    // The value stays out of the message: it may be the token.
    HeaderValue::try_from(value)
        .map_err(|_| TransportError::new(format!("{name} holds a character that is not allowed in a header")))
}

async fn read(answer: hyper::Response<Incoming>) -> Result<Response, TransportError> {
    let (parts, mut incoming) = answer.into_parts();
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (retry_after, date) = (header(RETRY_AFTER), header(DATE));
    let too_long = || {
        TransportError::new(format!(
            "the answer, status {}, is over {MAX_RESPONSE} bytes: no ack is that long",
            parts.status.as_u16()
        ))
    };
    let declared = incoming.size_hint().lower();
    if parts.status.is_success() && declared > MAX_RESPONSE as u64 {
        return Err(too_long());
    }
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            // What the status says does not depend on a page that was cut short; an ack does.
            Err(_) if !parts.status.is_success() => break,
            Err(error) => return Err(no_answer("the answer broke off", &error)),
        };
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_RESPONSE - body.len();
        if data.len() > room && parts.status.is_success() {
            return Err(too_long());
        }
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            break;
        }
    }
    Ok(Response { status: parts.status.as_u16(), retry_after, date, body })
}

/// The whole chain in one line: hyper's own words are only "client error (Connect)".
fn no_answer(what: &str, error: &dyn Error) -> TransportError {
    let mut text = what.to_owned();
    let mut cause = Some(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    TransportError::new(text)
}
