use std::fmt;

use super::{Counters, StreamId};

/// The names of a request's headers.
pub mod names {
    /// Milliseconds since the epoch on the client's wall clock at this attempt.
    pub const SENT_AT: &str = "afterboot-sent-at";
    /// Milliseconds since the machine started, at this attempt.
    pub const MONO: &str = "afterboot-mono";
    /// Which start of the machine [`MONO`] counts from: an event's age is known only within one.
    pub const BOOT: &str = "afterboot-boot";
    /// The start of the machine that the events' own `mono` counts from.
    pub const EVENTS_BOOT: &str = "afterboot-events-boot";
    /// Which attempt to send this batch it is, from 1.
    pub const ATTEMPT: &str = "afterboot-attempt";
    /// The name of this attempt, for the ack to [repeat](crate::wire::Ack::of). A text of at most 64 characters.
    pub const BATCH: &str = "afterboot-batch";
    /// The stream of the sending beacon, whose counters these are. An adopted batch has another stream.
    pub const SENDER: &str = "afterboot-sender";
    /// The sender's [`Counters`](super::Counters), as JSON.
    pub const COUNTERS: &str = "afterboot-counters";
}

/// The headers of a request: what is new for each attempt to send a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// [`names::SENT_AT`].
    pub sent_at: u64,
    /// [`names::MONO`].
    pub mono: u64,
    /// [`names::BOOT`].
    pub boot: String,
    /// [`names::EVENTS_BOOT`].
    pub events_boot: String,
    /// [`names::ATTEMPT`].
    pub attempt: u32,
    /// [`names::BATCH`]. Absent where the client is older than the header.
    pub batch: Option<String>,
    /// [`names::SENDER`].
    pub sender: StreamId,
    /// [`names::COUNTERS`].
    pub counters: Counters,
}

/// A header that is missing or malformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderError {
    name: &'static str,
    value: Option<String>,
    allowed: &'static str,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => write!(f, "{} is missing: it must be {}", self.name, self.allowed),
            Some(value) => write!(f, "{} is {value:?}: {} is allowed", self.name, self.allowed),
        }
    }
}

impl std::error::Error for HeaderError {}

impl Headers {
    /// Returns names and values, all ASCII without line breaks.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        // Counters have only numbers and reasons that this crate names.
        let counters = serde_json::to_string(&self.counters).unwrap_or_default();
        let mut pairs = vec![
            (names::SENT_AT, self.sent_at.to_string()),
            (names::MONO, self.mono.to_string()),
            (names::BOOT, self.boot.clone()),
            (names::EVENTS_BOOT, self.events_boot.clone()),
            (names::ATTEMPT, self.attempt.to_string()),
            (names::SENDER, self.sender.to_string()),
            (names::COUNTERS, counters),
        ];
        pairs.extend(self.batch.clone().map(|batch| (names::BATCH, batch)));
        pairs
    }

    /// Parses the headers, which `find` looks up by lower-case name.
    ///
    /// # Errors
    /// Fails if one is missing or malformed, and names it.
    pub fn read<'a>(find: impl Fn(&str) -> Option<&'a str>) -> Result<Headers, HeaderError> {
        let text = |name: &'static str, allowed: &'static str| {
            find(name).ok_or(HeaderError { name, value: None, allowed })
        };
        let wrong = |name: &'static str, value: &str, allowed: &'static str| HeaderError {
            name,
            value: Some(value.chars().take(80).collect()),
            allowed,
        };
        let number = |name: &'static str| {
            let value = text(name, "a whole number")?;
            value.parse::<u64>().map_err(|_| wrong(name, value, "a whole number"))
        };
        let attempt = number(names::ATTEMPT)?;
        if attempt == 0 {
            return Err(wrong(names::ATTEMPT, "0", "a whole number from 1"));
        }
        let sender = text(names::SENDER, "32 hex digits")?;
        let counters = text(names::COUNTERS, "the counters as JSON")?;
        Ok(Headers {
            sent_at: number(names::SENT_AT)?,
            mono: number(names::MONO)?,
            boot: text(names::BOOT, "a text")?.to_owned(),
            events_boot: text(names::EVENTS_BOOT, "a text")?.to_owned(),
            attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
            batch: find(names::BATCH).map(str::to_owned),
            sender: sender.parse().map_err(|_| wrong(names::SENDER, sender, "32 hex digits"))?,
            counters: serde_json::from_str(counters)
                .map_err(|_| wrong(names::COUNTERS, counters, "the counters as JSON"))?,
        })
    }
}
