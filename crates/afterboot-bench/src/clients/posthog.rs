//! posthog-rs: its default pipeline, without its async client, whose background thread is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use posthog_rs::{CaptureCompression, Client as PostHog, ClientOptionsBuilder, Event, PostHogError};

use super::{Client, REQUEST_LIMIT, Row};
use crate::args::Outcome;
use crate::event::{Checkout, ROUTE};
use crate::sink::Dialect;

pub(crate) const ROWS: [Row; 2] = [
    Row {
        name: "posthog",
        dialect: Dialect::PLAIN,
        settings: "defaults: 10,000 events in memory, batches of 100, no compression",
        build: |url, _| client(url, &mut ClientOptionsBuilder::default()),
    },
    Row {
        name: "posthog-raised",
        dialect: Dialect::PLAIN,
        settings: "max_queue_size 1,000,000, gzip, request_timeout 10 s, shutdown_timeout as asked",
        build: |url, within| {
            let mut options = ClientOptionsBuilder::default();
            options.max_queue_size(1_000_000).capture_compression(CaptureCompression::Gzip);
            options.request_timeout_seconds(REQUEST_LIMIT.as_secs());
            client(url, options.shutdown_timeout_ms(u64::try_from(within.as_millis())?))
        },
    },
];

fn client(url: &str, options: &mut ClientOptionsBuilder) -> Outcome<Box<dyn Client>> {
    let failed = Arc::new(AtomicUsize::new(0));
    let counter = failed.clone();
    options.on_error(move |error| {
        if let PostHogError::Capture(failure) = error {
            counter.fetch_add(failure.event_count(), Ordering::Relaxed);
        }
    });
    let options = options.api_key("phc_bench".to_owned()).host(url).build()?;
    Ok(Box::new(OfPostHog { client: posthog_rs::client(options), failed }))
}

struct OfPostHog {
    client: PostHog,
    /// What its hook for failures told of.
    failed: Arc<AtomicUsize>,
}

impl Client for OfPostHog {
    fn post(&mut self, event: &Checkout) {
        let mut posted = Event::new(ROUTE, "user-1");
        // Plain numbers and strings: cannot fail.
        let _ = posted.insert_prop("path", event.path);
        let _ = posted.insert_prop("amount", event.amount);
        let _ = posted.insert_prop("currency", event.currency);
        let _ = posted.insert_prop("ok", event.ok);
        let _ = posted.insert_prop("n", event.n);
        self.client.capture(posted);
    }

    /// Its shutdown flushes, within a time of its options.
    fn finish(self: Box<Self>, _: Duration) -> String {
        self.client.shutdown();
        format!("failed: {}", self.failed.load(Ordering::Relaxed))
    }
}
