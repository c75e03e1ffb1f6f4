//! sentry: structured logs, which are what it has for events that are no errors.

use std::time::Duration;

use sentry::{ClientInitGuard, ClientOptions, logger_info};

use super::{Client, Row};
use crate::args::Outcome;
use crate::event::Checkout;
use crate::sink::Dialect;

pub(crate) const ROWS: [Row; 2] = [
    Row {
        name: "sentry",
        dialect: Dialect::PLAIN,
        settings: "defaults: 30 envelopes of 100 logs in memory",
        build: |url| client(url, ClientOptions::new()),
    },
    Row {
        name: "sentry-raised",
        dialect: Dialect::PLAIN,
        settings: "transport_channel_capacity 10,000",
        build: |url| client(url, ClientOptions::new().transport_channel_capacity(10_000)),
    },
];

fn client(url: &str, options: ClientOptions) -> Outcome<Box<dyn Client>> {
    let dsn = url.replace("http://", "http://public@") + "/1";
    Ok(Box::new(OfSentry(sentry::init(options.dsn(&dsn)))))
}

struct OfSentry(ClientInitGuard);

impl Client for OfSentry {
    #[expect(clippy::disallowed_methods, reason = "its macro stamps the log with real time")]
    fn post(&mut self, event: &Checkout) {
        logger_info!(
            path = event.path,
            amount = event.amount,
            currency = event.currency,
            ok = event.ok,
            n = event.n,
            "checkout_confirmed"
        );
    }

    fn finish(self: Box<Self>, within: Duration) -> String {
        let drained = self.0.close(Some(within));
        drop(self);
        format!("drained: {drained}")
    }
}
