//! Parses `Retry-After`.

use std::time::{Duration, SystemTime};

/// Parses the value of a `Retry-After` header (RFC 9110, 10.2.3): seconds in digits only, or an HTTP-date.
///
/// Returns `None` for anything else (`-5`, `1e9`, `soon`), which is to be ignored, zero for a date in the past, and
/// [`Duration::MAX`] for more seconds than it can hold, which is beyond every limit, so the retry gives up.
///
/// A date is converted at once into a duration from `now`, the client's clock, so setting the wall clock afterwards has no
/// effect. If the response has a `Date`, use [`parse_retry_after_dated`], which measures by the server's clock.
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

/// [`parse_retry_after`] for a response with a `Date` header: a date is measured from that one, on the server's clock, so an
/// incorrect clock of the client has no effect. Without a valid `Date` it is measured from `now`.
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

/// [`parse_retry_after`] with the machine's wall clock as `now`.
#[expect(clippy::disallowed_methods, reason = "an HTTP-date is a moment on the wall clock")]
pub fn parse_retry_after_now(value: &str) -> Option<Duration> {
    parse_retry_after(value, SystemTime::now())
}
