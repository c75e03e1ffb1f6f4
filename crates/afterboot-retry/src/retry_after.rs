//! What a server asks for in `Retry-After`.

use std::time::{Duration, SystemTime};

/// Reads the value of a `Retry-After` header (RFC 9110, 10.2.3): seconds in digits only, or an HTTP-date.
///
/// `None` for anything else (`-5`, `1e9`, `soon`): ignore it and keep to the own schedule. Zero for a date in the past.
/// More seconds than a number can hold is [`Duration::MAX`], which passes every limit, so the retry gives up and says
/// so.
///
/// A date is turned into a time from now on at once, by the client's clock: where the answer has a `Date`,
/// [`parse_retry_after_dated`] goes by the server's. Whatever happens to the wall clock afterwards changes nothing.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use afterboot_retry::parse_retry_after;
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_400);
/// assert_eq!(parse_retry_after("120", now), Some(Duration::from_secs(120)));
/// assert_eq!(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Duration::from_secs(80)));
/// assert_eq!(parse_retry_after("soon", now), None);
/// ```
pub fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(now).unwrap_or(Duration::ZERO))
}

/// [`parse_retry_after`] for an answer with a `Date` header: a date is counted from that one, on the server's own clock, so
/// it does not matter how wrong the client's is. Without a `Date`, or with one that is none, from `now`.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use afterboot_retry::parse_retry_after_dated;
///
/// let wrong = SystemTime::UNIX_EPOCH;
/// let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
/// let asked = parse_retry_after_dated("Wed, 21 Oct 2015 07:28:02 GMT", date, wrong);
/// assert_eq!(asked, Some(Duration::from_secs(2)));
/// ```
pub fn parse_retry_after_dated(value: &str, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let answered = date.and_then(|date| httpdate::parse_http_date(date.trim_matches([' ', '\t'])).ok());
    parse_retry_after(value, answered.unwrap_or(now))
}

/// [`parse_retry_after`] with the machine's wall clock.
#[expect(clippy::disallowed_methods, reason = "an HTTP-date is a moment on the wall clock")]
pub fn parse_retry_after_now(value: &str) -> Option<Duration> {
    parse_retry_after(value, SystemTime::now())
}
