//! A transport for tests: it runs in virtual time, records every request and replies as scripted. And a machine whose wall clock is
//! set, and which has no threads to give.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

pub use crate::base::faults::Machine;
use crate::base::lock::lock;
use crate::transport::{Request, Response, Sending, Transport, TransportError};
use crate::wire::{self, Ack, Headers, gunzip};

/// A request as the server received it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Seen {
    /// When it arrived, on tokio's clock.
    pub at: Instant,
    /// The batch.
    pub batch: wire::Batch,
    /// The headers.
    pub headers: Headers,
    /// The token, if there was one.
    pub token: Option<String>,
    /// The size of the compressed body.
    pub body_len: usize,
    /// The size of the body before compression.
    pub inflated_len: usize,
}

/// What the scripted server does with a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reply {
    /// Acks every event.
    Accept,
    /// Returns this response.
    Response(Response),
    /// Returns this status, without a body.
    Status(u16),
    /// Returns this status with this `retry-after` header.
    RetryAfter(u16, String),
    /// Returns no response: the connection breaks.
    Broken,
    /// Never returns.
    Hang,
    /// Replies with the other reply after this time.
    After(Duration, Box<Reply>),
}

type Script = dyn FnMut(&Seen) -> Reply + Send;

/// A [`Transport`] that replies by a script and records the requests. Clones share both.
#[derive(Clone)]
pub struct ScriptedTransport(Arc<Mutex<State>>);

struct State {
    script: Box<Script>,
    seen: Vec<Seen>,
}

impl fmt::Debug for ScriptedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedTransport({} seen)", lock(&self.0).seen.len())
    }
}

impl ScriptedTransport {
    /// Returns a transport that calls `script` for each request.
    pub fn new(script: impl FnMut(&Seen) -> Reply + Send + 'static) -> ScriptedTransport {
        ScriptedTransport(Arc::new(Mutex::new(State { script: Box::new(script), seen: Vec::new() })))
    }

    /// Returns a transport that acks everything at once.
    pub fn accepting() -> ScriptedTransport {
        ScriptedTransport::new(|_| Reply::Accept)
    }

    /// Replaces the script.
    pub fn set_script(&self, script: impl FnMut(&Seen) -> Reply + Send + 'static) {
        lock(&self.0).script = Box::new(script);
    }

    /// Returns the requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.0).seen.clone()
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> usize {
        lock(&self.0).seen.len()
    }
}

impl Transport for ScriptedTransport {
    fn send(&self, request: Request) -> Sending {
        let this = self.clone();
        Box::pin(async move {
            // A test server reads bodies of any size.
            let body = gunzip(&request.body, usize::MAX / 2).map_err(TransportError::new)?;
            let seen = Seen {
                at: Instant::now(),
                batch: wire::Batch::parse(&body).map_err(TransportError::new)?,
                headers: request.headers,
                token: request.token.map(|token| token.expose().to_owned()),
                body_len: request.body.len(),
                inflated_len: body.len(),
            };
            let ack = Ack::all_accepted(seen.batch.events.len()).of(&seen.headers);
            let reply = {
                let mut state = lock(&this.0);
                let reply = (state.script)(&seen);
                state.seen.push(seen);
                reply
            };
            respond(reply, ack).await
        })
    }
}

async fn respond(mut reply: Reply, ack: Ack) -> Result<Response, TransportError> {
    while let Reply::After(wait, then) = reply {
        sleep(wait).await;
        reply = *then;
    }
    match reply {
        Reply::Accept => {
            let ack = serde_json::to_vec(&ack).map_err(TransportError::new)?;
            Ok(Response::new(202).with_body(ack))
        }
        Reply::Response(response) => Ok(response),
        Reply::Status(code) => Ok(Response::new(code)),
        Reply::RetryAfter(code, after) => Ok(Response::new(code).with_retry_after(after)),
        Reply::Broken => Err(TransportError::new("connection reset")),
        Reply::Hang | Reply::After(..) => std::future::pending().await,
    }
}
