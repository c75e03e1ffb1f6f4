use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The id of a stream of events: 128 random bits, written as 32 hex digits. Each [`Beacon`](crate::Beacon) has one.
///
/// The key (app, stream, seq) identifies an event. Two beacons never share a stream, and a forked process does not continue its
/// parent's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId([u8; 16]);

impl StreamId {
    /// Returns the id with these 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> StreamId {
        StreamId(bytes)
    }

    /// Returns its 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamId({self})")
    }
}

/// A text that is not a [`StreamId`]: 32 lower-case hex digits are required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamIdError(String);

impl fmt::Display for StreamIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream is {:?}: 32 lower-case hex digits are allowed", self.0)
    }
}

impl std::error::Error for StreamIdError {}

impl FromStr for StreamId {
    type Err = StreamIdError;

    fn from_str(text: &str) -> Result<StreamId, StreamIdError> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(hex) {
            return Err(StreamIdError(text.chars().take(40).collect()));
        }
        let bits = u128::from_str_radix(text, 16).map_err(|_| StreamIdError(text.to_owned()))?;
        Ok(StreamId(bits.to_be_bytes()))
    }
}

impl Serialize for StreamId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StreamId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StreamId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
