//! What an answer means. The status decides, and a 2xx is nothing without an ack.

use std::time::{Duration, SystemTime};

use afterboot_retry::parse_retry_after;

use crate::core::Outcome;
use crate::endpoint::HeldReason;
use crate::transport::Response;
use crate::wire::{Ack, AckError};

/// An answer's meaning, and the epoch of an experiment that the server wants stopped. The answer is to the try of this
/// name, with so many events.
pub(crate) fn judge(
    response: &Response,
    batch: &str,
    sent: usize,
    now: SystemTime,
) -> (Outcome, Option<String>) {
    let outcome = match response.status {
        200..=299 => match Ack::parse_for(batch, &response.body, sent) {
            Ok((ack, verdicts)) => return (Outcome::Settled(verdicts), ack.kill),
            // An answer that was late or came twice: the one to this batch is still to come, or is lost.
            Err(AckError::OtherBatch(_)) => Outcome::Retry { retry_after: None },
            Err(error) if error.is_version() => Outcome::Held(HeldReason::WireVersion(error.to_string())),
            Err(error) => Outcome::Held(HeldReason::NoAck(error.to_string())),
        },
        408 | 429 | 500.. => Outcome::Retry { retry_after: retry_after(response, now) },
        413 => Outcome::TooLarge,
        status @ (400 | 415 | 422) => Outcome::Refused { status },
        // Redirects, tokens, proxies: never the batch's fault.
        status => Outcome::Held(HeldReason::Status(status)),
    };
    (outcome, None)
}

fn retry_after(response: &Response, now: SystemTime) -> Option<Duration> {
    parse_retry_after(response.retry_after.as_deref()?, now)
}
