//! The wire format, version 1: batches, headers and acks, for client and server. `WIRE.md` describes it, with example bodies
//! that are this module's test vectors.
//!
//! Nothing here depends on HTTP, a clock or a queue. Unknown fields are ignored, so within a version either side may be newer.

mod body;
mod encode;
mod ack;
mod counters;
mod gzip;
mod headers;
mod stream;

pub use ack::{Ack, AckError, Rejected, Span, Verdict};
pub use body::{Batch, BodyError, Event, Gap, Head};
pub use counters::Counters;
pub use encode::{BatchWriter, encode_event};
pub use gzip::{InflateError, gunzip, gzip};
pub use headers::{HeaderError, Headers, names};
pub use stream::{StreamId, StreamIdError};

use serde::{Deserialize, Serialize};

/// The version that this crate writes and reads.
pub const WIRE_VERSION: u32 = 1;

/// The most events in a batch: 100, from a published tracker design.
pub const MAX_EVENTS: usize = 100;

/// The largest body, in bytes before compression: 65,536, from Facebook's Banzai client.
pub const MAX_BODY: usize = 64 * 1024;

/// How soon a batch is sent, and which batches are evicted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Sent within one second, and evicted last.
    Vital,
    /// Everything else.
    Basic,
}

impl Priority {
    /// Returns its name on the wire and in the spool: `vital` or `basic`.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Vital => "vital",
            Priority::Basic => "basic",
        }
    }
}
