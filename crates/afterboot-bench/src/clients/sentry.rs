//! sentry: structured logs, which are what it has for events that are no errors.

use std::sync::Arc;
use std::time::Duration;

use sentry::transports::ReqwestHttpTransportOptions;
use sentry::{ClientInitGuard, ClientOptions, Transport, TransportFactory, TransportOptions, logger_info};

use super::{Client, REQUEST_LIMIT, Row};
use crate::args::Outcome;
use crate::event::Checkout;
use crate::sink::Dialect;

pub(crate) const ROWS: [Row; 2] = [
    Row {
        name: "sentry",
        dialect: Dialect::PLAIN,
        settings: "defaults: 30 envelopes of 100 logs in memory",
        build: |url, _| client(url, ClientOptions::new()),
    },
    Row {
        name: "sentry-raised",
        dialect: Dialect::PLAIN,
        settings: "transport_channel_capacity 10,000; a request may take 10 s",
        build: |url, _| {
            client(url, ClientOptions::new().transport_channel_capacity(10_000).transport(Limited))
        },
    },
];

fn client(url: &str, options: ClientOptions) -> Outcome<Box<dyn Client>> {
    let dsn = url.replace("http://", "http://public@") + "/1";
    Ok(Box::new(OfSentry(sentry::init(options.dsn(&dsn)))))
}

/// Its own transport, with a time limit for a request.
struct Limited;

impl TransportFactory for Limited {
    fn create_transport_with_options(&self, options: TransportOptions) -> Arc<dyn Transport> {
        let options = ReqwestHttpTransportOptions::from(options);
        Arc::new(match reqwest::Client::builder().timeout(REQUEST_LIMIT).build() {
            Ok(client) => options.with_client(client).build(),
            Err(_) => options.build(),
        })
    }
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
