//! Unique ids of streams and events.

use uuid::{Builder, Uuid};

use crate::base::random::{random, random_in};
use crate::wire::StreamId;

pub(crate) fn stream() -> StreamId {
    StreamId::from_bytes(random())
}

/// A UUID of version 7: the wall clock's milliseconds, then random bits. `process` is this process, which the caller has
/// just asked for: a second call of the system's would be a fifth of what a post costs.
pub(crate) fn event(wall: u64, process: u32) -> Uuid {
    Builder::from_unix_timestamp_millis(wall, &random_in(process)).into_uuid()
}
