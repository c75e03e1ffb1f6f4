//! What each client takes for a success, and how its events are counted.

use std::borrow::Cow;
use std::io::Read;

use afterboot_beacon::wire::{Ack, Batch, gunzip};
use flate2::read::GzDecoder;

use super::http::Request;
use crate::event::PATH;

const JSON: &str = "application/json";
const MAX_INFLATED: usize = 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// An ack for the events that the batch holds.
    Beacon,
    /// 200 with this; the events are counted by the marker.
    Marked { content_type: &'static str, body: &'static str },
}

impl Dialect {
    /// An empty object: most clients look at the status only.
    pub(crate) const PLAIN: Dialect = Dialect::Marked { content_type: JSON, body: "{}" };
}

#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    pub(crate) events: u64,
    pub(crate) inflated: u64,
}

impl Judged {
    fn taken(inflated: usize, events: usize) -> Judged {
        Judged {
            status: 200,
            content_type: JSON,
            body: Vec::new(),
            events: events as u64,
            inflated: inflated as u64,
        }
    }

    fn unreadable() -> Judged {
        Judged { status: 400, ..Judged::taken(0, 0) }
    }

    pub(crate) fn answer(&self) -> Vec<u8> {
        let (length, kind) = (self.body.len(), self.content_type);
        let head = format!(
            "HTTP/1.1 {} Said\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n",
            self.status
        );
        [head.as_bytes(), &self.body].concat()
    }
}

impl Dialect {
    pub(crate) fn judge(self, request: &Request) -> Judged {
        match self {
            Dialect::Beacon => beacon(request).unwrap_or_else(Judged::unreadable),
            Dialect::Marked { content_type, body: answer } => match inflate(request) {
                Some(body) => {
                    let judged = Judged::taken(body.len(), count(&body));
                    Judged { content_type, body: answer.as_bytes().to_vec(), ..judged }
                }
                None => Judged::unreadable(),
            },
        }
    }
}

fn beacon(request: &Request) -> Option<Judged> {
    let body = gunzip(&request.body, MAX_INFLATED).ok()?;
    let batch = Batch::parse(&body).ok()?;
    let ack = serde_json::to_vec(&Ack::all_accepted(batch.events.len())).ok()?;
    Some(Judged { status: 202, body: ack, ..Judged::taken(body.len(), batch.events.len()) })
}

fn inflate(request: &Request) -> Option<Cow<'_, [u8]>> {
    match request.header("content-encoding") {
        None | Some("identity") => Some(Cow::Borrowed(&request.body)),
        Some("gzip") => {
            let mut body = Vec::new();
            GzDecoder::new(&request.body[..]).read_to_end(&mut body).ok()?;
            Some(Cow::Owned(body))
        }
        Some(_) => None,
    }
}

/// How often the marker is there.
fn count(body: &[u8]) -> usize {
    let marker = PATH.as_bytes();
    let mut events = 0;
    let mut rest = body;
    // By its first byte, then whole: bodies are large and slashes in them rare.
    while let Some(at) = rest.iter().position(|&byte| byte == marker[0]) {
        rest = &rest[at..];
        let found = rest.starts_with(marker);
        events += usize::from(found);
        rest = &rest[if found { marker.len() } else { 1 }..];
    }
    events
}
