//! snowplow_tracker: self-describing events in batches.

use std::time::Duration;

use serde_json::json;
use snowplow_tracker::{
    BatchEmitter, InMemoryEventStore, ReqwestClient, SelfDescribingEvent, Snowplow, Tracker,
};

use super::{Client, REQUEST_LIMIT, Row};
use crate::args::Outcome;
use crate::event::Checkout;
use crate::sink::Dialect;

const SCHEMA: &str = "iglu:org.example/checkout_confirmed/jsonschema/1-0-0";

pub(crate) const ROWS: [Row; 2] = [
    Row {
        name: "snowplow",
        dialect: Dialect::PLAIN,
        settings: "defaults: 10,000 batches of 50 in memory",
        build: |url, _| client(Snowplow::create_tracker("bench", "bench", url, None)),
    },
    Row {
        name: "snowplow-raised",
        dialect: Dialect::PLAIN,
        settings: "batches of 100, as most others have; a request may take 10 s",
        build: |url, _| {
            let store = InMemoryEventStore::new(10_000, 100);
            let limited = reqwest_0_11::Client::builder().timeout(REQUEST_LIMIT).build()?;
            let http = ReqwestClient { client: limited, collector_url: url.to_owned() };
            let emitter = BatchEmitter::builder().collector_url(url).event_store(store).http_client(http);
            let emitter = emitter.build()?;
            client(Tracker::new("bench", "bench", emitter, None))
        },
    },
];

fn client(tracker: Tracker) -> Outcome<Box<dyn Client>> {
    Ok(Box::new(OfSnowplow { tracker, refused: 0 }))
}

struct OfSnowplow {
    tracker: Tracker,
    refused: u32,
}

impl Client for OfSnowplow {
    fn post(&mut self, event: &Checkout) {
        let data = json!({
            "path": event.path,
            "amount": event.amount,
            "currency": event.currency,
            "ok": event.ok,
            "n": event.n,
        });
        let event = SelfDescribingEvent::builder().schema(SCHEMA).data(data).build();
        let tracked = event.and_then(|event| self.tracker.track(event, None));
        self.refused += u32::from(tracked.is_err());
    }

    /// It can be told no time: it waits for every request.
    fn finish(mut self: Box<Self>, _: Duration) -> String {
        // An error here says that nothing was left.
        let _ = self.tracker.flush();
        let closed = self.tracker.close_emitter();
        let refused = self.refused;
        // The drop waits for the thread that sends.
        drop(self);
        format!("refused: {refused}, closed: {}", closed.is_ok())
    }
}
