use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{MAX_EVENTS, Priority, StreamId, WIRE_VERSION};

/// What all events of one batch share: a batch is homogeneous in priority, app, user and session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The application. A server that knows it from the token refuses another one.
    pub app: String,
    /// The stream that numbers these events.
    pub stream: StreamId,
    /// The user. Absent for anonymous events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The session, if the application has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The priority of all events in the batch.
    pub priority: Priority,
    /// Numbers that were assigned and will never arrive: their batch was evicted, expired or erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub gaps: Vec<Gap>,
    /// Present if the stream has ended: the number of the next event if there was one, that is the count of numbers assigned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

/// A range of numbers of a stream that will never arrive, declared so that the server does not count it as lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The stream of the numbers: a batch may declare the gaps of an older stream.
    pub stream: StreamId,
    /// The first number of the range.
    pub first: u64,
    /// The last number of the range, itself included.
    pub last: u64,
    /// The reason, as in [`Counters::dropped`](super::Counters::dropped), or `dead`.
    pub why: String,
}

/// One event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    /// Its number in the stream, assigned when the batch was sealed.
    pub seq: u64,
    /// A UUID of version 7, assigned when it was posted.
    pub id: Uuid,
    /// The event's type.
    pub route: String,
    /// Milliseconds since the epoch on the client's wall clock, when it was posted.
    pub at: u64,
    /// Milliseconds since the machine started, when it was posted: with [`names::MONO`](super::names::MONO) of the
    /// same boot its age is known whatever the wall clock says.
    pub mono: u64,
    /// The application's data, as it was encoded.
    pub data: Box<RawValue>,
}

/// A batch as a server reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Flat")]
pub struct Batch {
    /// The format's version.
    pub wire: u32,
    /// What all its events have in common.
    #[serde(flatten)]
    pub head: Head,
    /// At most [`MAX_EVENTS`]; none in a batch that only ends a stream or declares gaps.
    pub events: Vec<Event>,
}

/// What is read in the place of a [`Batch`]. With serde's `flatten` a field that this side does not know would be parsed
/// and buffered rather than skipped, and a number in it that is too large for this side would refuse the batch.
#[derive(Deserialize)]
struct Flat {
    wire: u32,
    app: String,
    stream: StreamId,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    session: Option<String>,
    priority: Priority,
    #[serde(default, deserialize_with = "null_as_default")]
    gaps: Vec<Gap>,
    #[serde(default)]
    end: Option<u64>,
    events: Vec<Event>,
}

impl From<Flat> for Batch {
    fn from(flat: Flat) -> Batch {
        let Flat { wire, app, stream, user, session, priority, gaps, end, events } = flat;
        Batch { wire, head: Head { app, stream, user, session, priority, gaps, end }, events }
    }
}

/// `null` where a field may be absent means that it is: some encoders write an empty list so.
pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Why a body is not a batch of this version.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// It is not JSON of the format, or not JSON at all.
    Malformed(serde_json::Error),
    /// It is of a version that this crate does not know.
    Version(u32),
    /// It holds more than [`MAX_EVENTS`] events.
    TooManyEvents(usize),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Malformed(error) => write!(f, "the body is no batch: {error}"),
            BodyError::Version(version) => {
                write!(f, "wire is {version}: {WIRE_VERSION} is the version known here")
            }
            BodyError::TooManyEvents(count) => {
                write!(f, "events holds {count}: at most {MAX_EVENTS} are allowed")
            }
        }
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BodyError::Malformed(error) => Some(error),
            _ => None,
        }
    }
}

impl Batch {
    /// Parses an inflated body.
    ///
    /// # Errors
    /// Fails unless it is a batch of version 1 with at most [`MAX_EVENTS`] events. For a body of another version the error is
    /// [`BodyError::Version`], even if the rest of it does not fit version 1.
    pub fn parse(body: &[u8]) -> Result<Batch, BodyError> {
        #[derive(Deserialize)]
        struct Version {
            wire: u32,
        }
        let Version { wire } = serde_json::from_slice(body).map_err(BodyError::Malformed)?;
        if wire != WIRE_VERSION {
            return Err(BodyError::Version(wire));
        }
        let batch: Batch = serde_json::from_slice(body).map_err(BodyError::Malformed)?;
        if batch.events.len() > MAX_EVENTS {
            return Err(BodyError::TooManyEvents(batch.events.len()));
        }
        Ok(batch)
    }
}
