use std::time::Duration;

/// What the server does with a request that it has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Takes every event: 202.
    Ok,
    /// 503 without a `retry-after`.
    Unavailable,
    /// 429 with `retry-after: 1`.
    Busy,
    /// 413 where the inflated body is larger than this, 202 else.
    Small(usize),
    /// By its number, an event is asked for again the first time (`seq % 5 == 3`), rejected as `too_old`
    /// (`seq % 7 == 4`, which goes first), or taken.
    Partial,
    /// Never answers.
    Hung,
    /// Takes every event, but the connection closes in the middle of the ack.
    LostAck,
    /// The port is closed.
    Refuse,
    /// So many requests are answered as in `Ok`, then as many fail, in turn by 503, by a reset and as in `LostAck`.
    Flap(u64),
    /// As `Ok`, after this time.
    Slow(Duration),
    /// 200 with a page, as a captive portal.
    Captive,
    /// Always this answer; nothing is taken.
    Fixed(Fixed),
}

impl Mode {
    /// The size from which [`Mode::Small`] refuses where a test has no wish of its own.
    pub(crate) const SMALL: usize = 8 * 1024;

    /// The delay of [`Mode::Slow`] where a test has no wish of its own.
    pub(crate) const SLOW: Duration = Duration::from_millis(300);
}

/// An answer word for word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) status: u16,
    /// Beside `content-length`.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Fixed {
    pub(crate) fn new(status: u16) -> Fixed {
        Fixed { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Fixed {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Fixed {
        self.body = body.into();
        self
    }
}
