//! HTTP/1.1 by hand: a mode that resets or breaks off in mid-answer needs the socket itself.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::answer::{Action, decide};
use super::ledger::Seen;
use super::mode::Fixed;
use super::{Shared, contract, lock};

// What a server in earnest would bound as well.
const MAX_HEAD: usize = 64 * 1024;
const MAX_BODY: usize = 256 * 1024;

/// A request as it came.
pub(crate) struct Raw {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Raw {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(given, _)| given == name);
        all.next().map(|(_, value)| value.as_str())
    }
}

pub(crate) async fn serve(shared: Shared, mut stream: TcpStream) {
    let connection = {
        let mut state = lock(&shared);
        state.ledger.connections += 1;
        state.ledger.connections
    };
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    loop {
        let raw = match read(&mut stream, &mut buffer).await {
            Ok(Some(raw)) => raw,
            Ok(None) => return,
            Err(error) => {
                let mut state = lock(&shared);
                match error.kind() {
                    io::ErrorKind::InvalidData => state.ledger.wrong.push(error.to_string()),
                    // The client gave up or was killed: that is its right.
                    _ => state.ledger.aborted += 1,
                }
                return;
            }
        };
        let (action, answer) = {
            let mut state = lock(&shared);
            let checked = contract::check(&raw);
            let (action, answer) = decide(&mut state, &raw, &checked);
            state.ledger.requests.push(Seen::new(connection, Instant::now(), raw, &checked, answer.status));
            (action, answer)
        };
        if !act(&mut stream, action, &answer).await {
            return;
        }
    }
}

/// Is there a next request on this connection?
async fn act(stream: &mut TcpStream, action: Action, answer: &Fixed) -> bool {
    let bytes = encode(answer);
    match action {
        Action::Answer => {}
        Action::AnswerAfter(delay) => sleep(delay).await,
        Action::Never => std::future::pending().await,
        Action::Reset => {
            let _ = stream.set_zero_linger();
            return false;
        }
        Action::BreakOff => {
            // Inside the body: the head has promised more.
            let _ = stream.write_all(&bytes[..bytes.len() - 1]).await;
            return false;
        }
    }
    stream.write_all(&bytes).await.is_ok()
}

fn encode(answer: &Fixed) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} Said\r\ncontent-length: {}\r\n", answer.status, answer.body.len());
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&answer.body);
    bytes
}

/// The next request, or none where the client has closed between two.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Raw>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if buffer.len() > MAX_HEAD {
            return Err(invalid("the request's head is over 64 KiB"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return if buffer.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
    };
    let mut raw = parse_head(&buffer[..end])?;
    let length = raw.header("content-length").and_then(|value| value.parse::<usize>().ok());
    let length = length.ok_or_else(|| invalid("content-length is missing or is no number"))?;
    if length > MAX_BODY {
        return Err(invalid("the body is over 256 KiB"));
    }
    while buffer.len() < end + length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let rest = buffer.split_off(end + length);
    raw.body = buffer.split_off(end);
    *buffer = rest;
    Ok(Some(raw))
}

fn parse_head(head: &[u8]) -> io::Result<Raw> {
    let head = std::str::from_utf8(head).map_err(|_| invalid("the request's head is not text"))?;
    let mut lines = head.trim_end().split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, "HTTP/1.1"] = first[..] else {
        return Err(invalid("the request line is not that of HTTP/1.1"));
    };
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header has no colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Raw { method: method.to_owned(), target: target.to_owned(), headers, body: Vec::new() })
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
