use serde::Serialize;
use uuid::Uuid;

use super::{Head, WIRE_VERSION};

/// Appends one event without its number, which is not known before the batch is sealed: `"id":…}`. [`BatchWriter`] puts
/// the number in front.
///
/// # Errors
/// Fails if `data` cannot be JSON: its `Serialize` fails, or a map's key is not a string. `out` then ends with a part of the
/// event, which the caller must truncate.
pub fn encode_event<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: Uuid,
    route: &str,
    at: u64,
    mono: u64,
    data: &T,
) -> Result<(), serde_json::Error> {
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    out.extend_from_slice(b"\"id\":\"");
    out.extend_from_slice(id.hyphenated().encode_lower(&mut text).as_bytes());
    out.extend_from_slice(b"\",\"route\":");
    serde_json::to_writer(&mut *out, route)?;
    out.extend_from_slice(b",\"at\":");
    number(out, at);
    out.extend_from_slice(b",\"mono\":");
    number(out, mono);
    out.extend_from_slice(b",\"data\":");
    serde_json::to_writer(&mut *out, data)?;
    out.push(b'}');
    Ok(())
}

/// Writes a batch's body out of events that [`encode_event`] has encoded.
#[derive(Debug)]
pub struct BatchWriter {
    body: Vec<u8>,
    events: usize,
}

impl BatchWriter {
    /// The most that a number in front of an event adds: `,{"seq":18446744073709551615,`.
    pub const SEQ_ROOM: usize = 29;

    /// Returns the size of a body with this head and no event. With [`SEQ_ROOM`](BatchWriter::SEQ_ROOM) and the encoded size for
    /// each event, no body is larger than the sum.
    pub fn overhead(head: &Head) -> usize {
        BatchWriter::new(head).finish().len()
    }

    /// Returns a writer of a body with this head.
    pub fn new(head: &Head) -> BatchWriter {
        let mut body = Vec::with_capacity(1024);
        // A Head has only strings, numbers and lists of them: it cannot fail.
        let head = serde_json::to_vec(head).unwrap_or_default();
        body.extend_from_slice(b"{\"wire\":");
        number(&mut body, WIRE_VERSION.into());
        if head.len() > 2 {
            body.push(b',');
            body.extend_from_slice(&head[1..head.len() - 1]);
        }
        body.extend_from_slice(b",\"events\":[");
        BatchWriter { body, events: 0 }
    }

    /// Adds an event with its number.
    pub fn event(&mut self, seq: u64, encoded: &[u8]) {
        if self.events > 0 {
            self.body.push(b',');
        }
        self.body.extend_from_slice(b"{\"seq\":");
        number(&mut self.body, seq);
        self.body.push(b',');
        self.body.extend_from_slice(encoded);
        self.events += 1;
    }

    /// Returns the body, not compressed.
    pub fn finish(mut self) -> Vec<u8> {
        self.body.extend_from_slice(b"]}");
        self.body
    }
}

fn number(out: &mut Vec<u8>, number: u64) {
    // A number is always JSON, and writing to a Vec does not fail.
    let _ = serde_json::to_writer(out, &number);
}
