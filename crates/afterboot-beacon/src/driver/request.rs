//! One request: sent within its time limit, and what its result means.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::base::within::within;
use crate::engine::Outcome;
use crate::engine::endpoint::HeldReason;
use crate::engine::verdict::judge;
use crate::state::token_source::TokenSource;
use crate::transport::{Request, Response, Transport};
use crate::wire::Headers;

/// How a request ended.
#[derive(Debug)]
pub(super) struct Sent {
    /// Of the attempt, as the request named it.
    name: String,
    result: Result<Response, NotSent>,
    pub(super) took: Duration,
}

/// Why there is no response.
#[derive(Debug)]
enum NotSent {
    Failed(String),
    /// It was not sent, because its token cannot stand in a header: no retry mends that.
    Token,
}

/// What the result of a request means.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) outcome: Outcome,
    pub(super) status: Option<u16>,
    /// The outcome in words.
    pub(super) why: String,
    /// The epoch of an experiment that the server wants stopped.
    pub(super) kill: Option<String>,
}

pub(super) async fn send(
    transport: Arc<dyn Transport>,
    tokens: TokenSource,
    time_limit: Duration,
    body: Arc<[u8]>,
    headers: Headers,
) -> Sent {
    let begun = Instant::now();
    let name = headers.batch.clone().unwrap_or_default();
    let sending = within(time_limit, async {
        let token = tokens.get().await;
        if token.as_ref().is_some_and(|token| !token.is_sendable()) {
            return Err(NotSent::Token);
        }
        let sent = transport.send(Request { body, headers, token }).await;
        sent.map_err(|error| NotSent::Failed(error.to_string()))
    });
    let late = || Err(NotSent::Failed(format!("no answer within {time_limit:?}")));
    let result = sending.await.unwrap_or_else(late);
    Sent { name, result, took: begun.elapsed() }
}

impl Sent {
    /// The task that sent it panicked or was cancelled.
    pub(super) fn failed(why: &str) -> Sent {
        Sent { name: String::new(), result: Err(NotSent::Failed(why.to_owned())), took: Duration::ZERO }
    }

    /// `events` were sent, and this is read at `wall` in Unix milliseconds.
    pub(super) fn judge(self, events: usize, wall: u64) -> Judged {
        match self.result {
            Ok(response) => {
                let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(wall);
                let (outcome, kill) = judge(&response, &self.name, events, wall);
                let status = response.status;
                let why = match outcome {
                    Outcome::Retry { .. } if status < 300 => "the answer to another batch".to_owned(),
                    _ => format!("status {status}"),
                };
                Judged { outcome, status: Some(status), why, kill }
            }
            Err(NotSent::Failed(why)) => {
                Judged { outcome: Outcome::Retry { retry_after: None }, status: None, why, kill: None }
            }
            Err(NotSent::Token) => {
                let why = HeldReason::Token.to_string();
                Judged { outcome: Outcome::Held(HeldReason::Token), status: None, why, kill: None }
            }
        }
    }
}
