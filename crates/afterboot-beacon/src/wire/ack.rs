use std::fmt;

use serde::{Deserialize, Serialize};

use super::body::null_as_default;
use super::{Headers, WIRE_VERSION};

/// A run of indexes of a batch, both ends included: `[0, 99]`.
pub type Span = (usize, usize);

/// A server's response to a batch: each index is accepted, rejected or to be sent again, and none is left out.
///
/// ```json
/// {"wire":1,"events":100,"accepted":[[0,97],[99,99]],"rejected":[{"index":98,"reason":"too_old"}]}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The format's version.
    pub wire: u32,
    /// How many events the batch held.
    pub events: usize,
    /// The batch that it settles: the request's [`BATCH`](super::names::BATCH) header, verbatim. An ack without it settles the
    /// last request on its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// On stable storage, now or by an earlier try.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub accepted: Vec<Span>,
    /// Never to be sent again.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub rejected: Vec<Rejected>,
    /// Neither: to be sent again.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub retry: Vec<Span>,
    /// The epoch of an experiment that the server wants stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<String>,
}

/// An event that the server rejects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Its index in the batch.
    pub index: usize,
    /// The server's reason.
    pub reason: String,
}

/// The server's decision about one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The server accepted it.
    Accepted,
    /// The server rejected it for good, and why.
    Rejected(String),
    /// To be sent again.
    Retry,
}

/// Why a response is not an ack.
#[derive(Debug)]
#[non_exhaustive]
pub enum AckError {
    /// Not JSON of the format: a proxy's page, a captive portal, another service.
    Malformed(serde_json::Error),
    /// Of a version that this crate does not know.
    Version(u32),
    /// For another number of events than were sent.
    Count {
        /// The number of events in the ack.
        answered: usize,
        /// How many were sent.
        sent: usize,
    },
    /// For another batch, by the name that this says.
    OtherBatch(String),
    /// An index that the batch does not have, or a span whose end is before its start.
    OutOfRange(usize),
    /// An index that is named twice.
    Twice(usize),
    /// An index that is not named.
    Missing(usize),
}

impl fmt::Display for AckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AckError::Malformed(error) => write!(f, "the response is no ack: {error}"),
            AckError::Version(version) => {
                write!(f, "the ack's wire is {version}: {WIRE_VERSION} is the version known here")
            }
            AckError::Count { answered, sent } => {
                write!(f, "the ack is for {answered} events, {sent} were sent")
            }
            AckError::OtherBatch(batch) => {
                let batch: String = batch.chars().take(64).collect();
                write!(f, "the ack is for another batch, {batch:?}")
            }
            AckError::OutOfRange(index) => {
                write!(f, "the ack names index {index}, which the batch does not have")
            }
            AckError::Twice(index) => write!(f, "the ack names index {index} twice"),
            AckError::Missing(index) => write!(f, "the ack does not name index {index}"),
        }
    }
}

impl std::error::Error for AckError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AckError::Malformed(error) => Some(error),
            _ => None,
        }
    }
}

impl AckError {
    /// Returns whether it is an ack of another version, rather than no ack at all.
    pub fn is_version(&self) -> bool {
        matches!(self, AckError::Version(_))
    }
}

impl Ack {
    /// Returns an ack that accepts every event of a batch.
    pub fn all_accepted(events: usize) -> Ack {
        Ack::from_verdicts(&vec![Verdict::Accepted; events])
    }

    /// Returns the ack of these verdicts, one for each index.
    pub fn from_verdicts(verdicts: &[Verdict]) -> Ack {
        let mut ack = Ack {
            wire: WIRE_VERSION,
            events: verdicts.len(),
            batch: None,
            accepted: Vec::new(),
            rejected: Vec::new(),
            retry: Vec::new(),
            kill: None,
        };
        for (index, verdict) in verdicts.iter().enumerate() {
            match verdict {
                Verdict::Accepted => extend(&mut ack.accepted, index),
                Verdict::Retry => extend(&mut ack.retry, index),
                Verdict::Rejected(reason) => {
                    ack.rejected.push(Rejected { index, reason: reason.clone() });
                }
            }
        }
        ack
    }

    /// Returns the ack with the name of the batch that came with these headers.
    pub fn of(self, headers: &Headers) -> Ack {
        Ack { batch: headers.batch.clone(), ..self }
    }

    /// Parses the ack of a batch of `sent` events, whichever batch it names.
    ///
    /// # Errors
    /// Fails unless it is an ack of this version that accounts for each index exactly once. Nothing is settled then.
    pub fn parse(body: &[u8], sent: usize) -> Result<(Ack, Vec<Verdict>), AckError> {
        let ack = Ack::read(body)?;
        let verdicts = ack.verdicts(sent)?;
        Ok((ack, verdicts))
    }

    /// Parses as [`parse`](Ack::parse) does, for the batch of this name.
    ///
    /// # Errors
    /// Fails as `parse` does, and with [`AckError::OtherBatch`] if the ack names another batch.
    pub fn parse_for(batch: &str, body: &[u8], sent: usize) -> Result<(Ack, Vec<Verdict>), AckError> {
        let ack = Ack::read(body)?;
        if let Some(other) = ack.batch.as_ref().filter(|name| *name != batch) {
            return Err(AckError::OtherBatch(other.clone()));
        }
        let verdicts = ack.verdicts(sent)?;
        Ok((ack, verdicts))
    }

    fn read(body: &[u8]) -> Result<Ack, AckError> {
        #[derive(Deserialize)]
        struct Version {
            wire: u32,
        }
        let Version { wire } = serde_json::from_slice(body).map_err(AckError::Malformed)?;
        if wire != WIRE_VERSION {
            return Err(AckError::Version(wire));
        }
        serde_json::from_slice(body).map_err(AckError::Malformed)
    }

    fn verdicts(&self, sent: usize) -> Result<Vec<Verdict>, AckError> {
        if self.events != sent {
            return Err(AckError::Count { answered: self.events, sent });
        }
        let mut verdicts: Vec<Option<Verdict>> = vec![None; sent];
        let mut set = |index: usize, verdict: Verdict| match verdicts.get_mut(index) {
            None => Err(AckError::OutOfRange(index)),
            Some(Some(_)) => Err(AckError::Twice(index)),
            Some(place) => {
                *place = Some(verdict);
                Ok(())
            }
        };
        let spans = self.accepted.iter().map(|span| (span, Verdict::Accepted));
        let spans = spans.chain(self.retry.iter().map(|span| (span, Verdict::Retry)));
        for (&(first, last), verdict) in spans {
            if last < first {
                return Err(AckError::OutOfRange(first));
            }
            // An index out of range ends the walk, so a span up to the largest number costs nothing.
            for index in first..=last {
                set(index, verdict.clone())?;
            }
        }
        for rejected in &self.rejected {
            set(rejected.index, Verdict::Rejected(rejected.reason.clone()))?;
        }
        verdicts
            .into_iter()
            .enumerate()
            .map(|(index, verdict)| verdict.ok_or(AckError::Missing(index)))
            .collect()
    }
}

fn extend(spans: &mut Vec<Span>, index: usize) {
    match spans.last_mut() {
        Some((_, last)) if *last + 1 == index => *last = index,
        _ => spans.push((index, index)),
    }
}
