use std::fmt;
use std::io;

use hyper::Uri;

const SCHEMES: &str = if cfg!(feature = "tls") {
    "http:// or https://, a host and a path are"
} else {
    "http://, a host and a path are"
};

/// A URL that [`HttpTransport`](super::HttpTransport) cannot use.
#[derive(Debug)]
pub struct EndpointError(Why);

#[derive(Debug)]
enum Why {
    Url { url: String, wrong: &'static str, allowed: &'static str },
    Roots(io::Error),
}

impl EndpointError {
    /// The url is cleared of what may be secret before it is kept.
    fn url(url: &str, wrong: &'static str, allowed: &'static str) -> EndpointError {
        EndpointError(Why::Url { url: redacted(url), wrong, allowed })
    }

    pub(super) fn roots(error: io::Error) -> EndpointError {
        EndpointError(Why::Roots(error))
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Why::Url { url, wrong, allowed } => {
                write!(f, "endpoint url is {url:?}, {wrong}: {allowed} allowed")
            }
            Why::Roots(error) => {
                write!(f, "endpoint url is https, which needs the system's root certificates: {error}")
            }
        }
    }
}

impl std::error::Error for EndpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Why::Url { .. } => None,
            Why::Roots(error) => Some(error),
        }
    }
}

pub(super) fn parse(url: &str) -> Result<Uri, EndpointError> {
    let wrong = |wrong, allowed| Err(EndpointError::url(url, wrong, allowed));
    // Before the parser, which drops a fragment silently.
    if url.contains('#') {
        return wrong("which has a fragment", SCHEMES);
    }
    let Ok(uri) = url.parse::<Uri>() else {
        return wrong("which is no URL (a host beyond ASCII is written in its xn-- form)", SCHEMES);
    };
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") if cfg!(feature = "tls") => {}
        Some("https") => return wrong("which needs the feature `tls` of afterboot-beacon", SCHEMES),
        Some(_) => return wrong("which is of another scheme", SCHEMES),
        None => return wrong("which has no scheme", SCHEMES),
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return wrong("which holds credentials", "a token of its own, which goes into a header, is");
    }
    if uri.query().is_some() {
        return wrong("which has a query", "a path, and a token of its own, which goes into a header, are");
    }
    let host = uri.host().unwrap_or_default();
    if host.is_empty() {
        return wrong("which has no host", SCHEMES);
    }
    let has_port = authority.len() > host.len();
    if has_port && uri.port_u16().is_none_or(|port| port == 0) {
        return wrong("whose port is invalid", "a port from 1 to 65535 is");
    }
    Ok(uri)
}

/// The url without what may be secret: what stands in front of the host's `@`, and all from the first `?` or `#` on.
/// Where an `@` comes after those, a password may hold them, so nothing but the scheme is left.
fn redacted(url: &str) -> String {
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (kept, cut) = rest.split_at(end);
    if cut.contains('@') {
        return format!("{scheme}hidden");
    }
    // Up to the last `@`, be it beyond a slash: a password that was not escaped may hold both.
    let kept = match kept.rfind('@') {
        Some(at) => format!("hidden{}", &kept[at..]),
        None => kept.to_owned(),
    };
    let mark = cut.chars().next().map(|mark| format!("{mark}hidden")).unwrap_or_default();
    format!("{scheme}{kept}{mark}")
}
