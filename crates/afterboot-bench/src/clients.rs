//! What is measured.

pub(crate) mod beacon;
pub(crate) mod floor;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "posthog")]
mod posthog;
#[cfg(feature = "sentry")]
mod sentry;
#[cfg(feature = "snowplow")]
mod snowplow;

use std::time::Duration;

use crate::args::Outcome;
use crate::event::Checkout;
use crate::sink::Dialect;

/// How long a request may take, where a client can be told and this is a row of raised limits: the beacon's default.
#[cfg(any(feature = "posthog", feature = "sentry", feature = "snowplow"))]
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// A client that is running.
pub(crate) trait Client {
    /// As an application would call it.
    fn post(&mut self, event: &Checkout);

    /// Delivers what is queued and ends the client, within this time where the client can be told one. What it tells its
    /// caller of how it went.
    fn finish(self: Box<Self>, within: Duration) -> String;
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) dialect: Dialect,
    /// What it is set to.
    pub(crate) settings: &'static str,
    /// With the sink's address, and the time that it may take to end.
    build: fn(&str, Duration) -> Outcome<Box<dyn Client>>,
}

/// All that this build has.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![floor::ROW];
    rows.extend(beacon::ROWS);
    #[cfg(feature = "posthog")]
    rows.extend(posthog::ROWS);
    #[cfg(feature = "sentry")]
    rows.extend(sentry::ROWS);
    #[cfg(feature = "otlp")]
    rows.extend(otlp::ROWS);
    #[cfg(feature = "snowplow")]
    rows.extend(snowplow::ROWS);
    rows
}

pub(crate) fn build(name: &str, url: &str, within: Duration) -> Outcome<Box<dyn Client>> {
    let row = rows().into_iter().find(|row| row.name == name);
    (row.ok_or_else(|| format!("client is {name:?}: not in this build"))?.build)(url, within)
}
