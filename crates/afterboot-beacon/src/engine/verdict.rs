//! What a response means. The status decides, and a 2xx is nothing without an ack.

use std::time::{Duration, SystemTime};

use afterboot_retry::parse_retry_after_dated;

use super::endpoint::HeldReason;
use crate::transport::Response;
use crate::wire::{Ack, AckError, Verdict};

/// What the response to a batch, or its absence, means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// An ack: a verdict an event.
    Settled(Vec<Verdict>),
    /// To be sent again as it is, at least `retry_after` from now: see [`Endpoint::failed`](super::endpoint::Endpoint::failed).
    Retry { retry_after: Option<Duration> },
    /// Too large for this server.
    TooLarge,
    /// The batch itself is refused.
    Refused { status: u16 },
    /// Something is wrong with the endpoint, and the batch is not at fault.
    Held(HeldReason),
}

/// Returns the meaning of a response, and the epoch of an experiment that the server wants stopped. The request was the
/// attempt of this name, with this number of events.
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
    parse_retry_after_dated(response.retry_after.as_deref()?, response.date.as_deref(), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B13: the server's date is on the server's clock.
    #[test]
    fn a_retry_after_date_is_counted_from_the_date_of_its_own_answer_however_wrong_the_clock_is() {
        let answer = Response {
            status: 503,
            retry_after: Some("Wed, 21 Oct 2015 07:28:02 GMT".to_owned()),
            date: Some("Wed, 21 Oct 2015 07:28:00 GMT".to_owned()),
            ..Response::default()
        };
        let served = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480);
        let asked = |answer: &Response, now| match judge(answer, "b", 1, now).0 {
            Outcome::Retry { retry_after } => retry_after,
            other => panic!("{other:?}"),
        };
        let behind = served - Duration::from_secs(3_000);
        assert_eq!(asked(&answer, behind), Some(Duration::from_secs(2)));
        let undated = Response { date: None, ..answer };
        assert_eq!(asked(&undated, served), Some(Duration::from_secs(2)));
        assert_eq!(asked(&undated, behind), Some(Duration::from_secs(3_002)));
    }
}
