//! The crate itself.

use std::time::Duration;

use afterboot_beacon::{Beacon, BeaconBuilder};

use super::{Client, Row};
use crate::args::Outcome;
use crate::event::{Checkout, ROUTE};
use crate::sink::Dialect;

pub(crate) const ROWS: [Row; 2] = [
    Row {
        name: "beacon",
        dialect: Dialect::Beacon,
        settings: "defaults: 20,000 events in memory",
        build: |url, _| client(builder(url)),
    },
    Row {
        name: "beacon-raised",
        dialect: Dialect::Beacon,
        settings: "max_events 1,000,000, max_bytes 1 GiB",
        build: |url, _| client(builder(url).max_events(1_000_000).max_bytes(1 << 30)),
    },
];

pub(crate) fn builder(url: &str) -> BeaconBuilder {
    Beacon::builder("bench").endpoint(&format!("{url}/v1/events"))
}

fn client(builder: BeaconBuilder) -> Outcome<Box<dyn Client>> {
    Ok(Box::new(OfBeacon(builder.build()?)))
}

#[derive(Debug)]
struct OfBeacon(Beacon);

impl Client for OfBeacon {
    fn post(&mut self, event: &Checkout) {
        self.0.post(ROUTE, event);
    }

    fn finish(self: Box<Self>, within: Duration) -> String {
        let counters = self.0.shutdown_blocking(within);
        let dropped: Vec<String> =
            counters.dropped.iter().map(|(reason, events)| format!("{events} {reason}")).collect();
        let left = counters.queued + counters.in_flight;
        format!("{} acked, dropped: [{}], left: {left}", counters.acked, dropped.join(", "))
    }
}
