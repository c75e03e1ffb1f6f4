//! The wire format, version 1: what a batch, its headers and its ack look like. `WIRE.md` is the same in prose, with
//! example bodies that are this module's test vectors.
//!
//! Defined once, for the client and for the server: nothing here knows HTTP, a clock or a queue. Unknown fields are
//! ignored everywhere, so either side may be the newer one within a version.

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

/// How soon a batch wants to be away, and what outlives what when room is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// A delay of at most one second. The last to be evicted.
    Vital,
    /// Everything else.
    Basic,
}

impl Priority {
    /// As it is written on the wire and in the spool: `vital` or `basic`.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Vital => "vital",
            Priority::Basic => "basic",
        }
    }
}
