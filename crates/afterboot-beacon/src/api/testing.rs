//! A transport for tests: it runs in virtual time, remembers every request and answers as it is told.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::base::lock::lock;
use crate::transport::{Request, Response, Sending, Transport, TransportError};
use crate::wire::{self, Ack, Headers, gunzip};

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When it came, on tokio's clock.
    pub at: Instant,
    /// The batch.
    pub batch: wire::Batch,
    /// What travelled beside it.
    pub headers: Headers,
    /// The token, where there was one.
    pub token: Option<String>,
    /// Compressed bytes of the body.
    pub body_len: usize,
    /// Bytes of the body before compression.
    pub inflated_len: usize,
}

/// What the scripted server does with a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Takes every event.
    Accept,
    /// This answer.
    Answer(Response),
    /// This status, without a body.
    Status(u16),
    /// This status with this `retry-after`.
    RetryAfter(u16, String),
    /// No answer: the connection broke.
    Broken,
    /// No answer, ever.
    Hang,
    /// The other reply, after this long.
    After(Duration, Box<Reply>),
}

type Script = dyn FnMut(&Seen) -> Reply + Send;

/// Answers by a script and remembers what it saw. Cheap to clone; all clones are one.
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
    /// Asks this for each request.
    pub fn new(script: impl FnMut(&Seen) -> Reply + Send + 'static) -> ScriptedTransport {
        ScriptedTransport(Arc::new(Mutex::new(State { script: Box::new(script), seen: Vec::new() })))
    }

    /// Accepts everything at once.
    pub fn accepting() -> ScriptedTransport {
        ScriptedTransport::new(|_| Reply::Accept)
    }

    /// Another script from now on.
    pub fn set_script(&self, script: impl FnMut(&Seen) -> Reply + Send + 'static) {
        lock(&self.0).script = Box::new(script);
    }

    /// What came so far.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.0).seen.clone()
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        lock(&self.0).seen.len()
    }
}

impl Transport for ScriptedTransport {
    fn send(&self, request: Request) -> Sending {
        let this = self.clone();
        Box::pin(async move {
            // A test server reads what it is sent, whatever the size.
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
            answer(reply, ack).await
        })
    }
}

async fn answer(mut reply: Reply, ack: Ack) -> Result<Response, TransportError> {
    while let Reply::After(wait, then) = reply {
        sleep(wait).await;
        reply = *then;
    }
    let status = |status| Response { status, ..Response::default() };
    match reply {
        Reply::Accept => {
            let ack = serde_json::to_vec(&ack).map_err(TransportError::new)?;
            Ok(Response { body: ack, ..status(202) })
        }
        Reply::Answer(response) => Ok(response),
        Reply::Status(code) => Ok(status(code)),
        Reply::RetryAfter(code, after) => Ok(Response { retry_after: Some(after), ..status(code) }),
        Reply::Broken => Err(TransportError::new("connection reset")),
        Reply::Hang | Reply::After(..) => std::future::pending().await,
    }
}
