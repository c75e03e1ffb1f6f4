//! What any client has to do when an event is posted, and nothing else: a time, an id, JSON, a locked buffer.
//! Frozen: the other rows are read against it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use uuid::Uuid;

use super::{Client, Row};
use crate::event::{Checkout, ROUTE};
use crate::sink::Dialect;

pub(crate) const NAME: &str = "floor";

pub(crate) const ROW: Row = Row {
    name: NAME,
    dialect: Dialect::PLAIN,
    settings: "sends nothing",
    build: |_, _| Ok(Box::new(Floor::default())),
};

#[derive(Debug, Default)]
struct Floor {
    buffer: Mutex<Vec<u8>>,
}

#[derive(Serialize)]
struct Line<'a> {
    id: Uuid,
    at: u128,
    route: &'static str,
    data: &'a Checkout,
}

impl Client for Floor {
    #[expect(clippy::disallowed_methods, reason = "an event is stamped with real time")]
    fn post(&mut self, event: &Checkout) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let line = Line { id: Uuid::now_v7(), at, route: ROUTE, data: event };
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        // Into a Vec, of plain numbers and strings: cannot fail.
        let _ = serde_json::to_writer(&mut *buffer, &line);
    }

    fn finish(self: Box<Self>, _: Duration) -> String {
        "-".to_owned()
    }
}
