//! FROZEN. What a post is held against: the least that any client does for an event, written without one. The promise
//! "at most 1.25 times the floor" means these operations and no others, so a change here is a change of the promise.
//!
//! An event: `Instant::now` before and after, for the figures; `SystemTime::now`; `Uuid::now_v7`; one
//! `serde_json::to_writer` of [`Ev`] into a `Vec<u8>` behind a lock, a newline, and a counter behind the same lock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;
use uuid::Uuid;

pub(crate) const EVENT: &str = "order_paid";
pub(crate) const USER: &str = "user-12345";
pub(crate) const DATA: Data = Data { path: "/checkout/confirm", amount: 1999, currency: "EUR", ok: true };

#[derive(Serialize)]
pub(crate) struct Data {
    path: &'static str,
    amount: u32,
    currency: &'static str,
    ok: bool,
}

#[derive(Serialize)]
struct Ev<'a> {
    id: Uuid,
    event: &'a str,
    ts: u64,
    user: &'a str,
    seq: u64,
    data: &'a Data,
}

#[derive(Default)]
struct Queue {
    lines: Vec<u8>,
    events: u64,
}

/// The queue of a client that does nothing else.
#[derive(Default)]
pub(crate) struct Floor(Mutex<Queue>);

impl Floor {
    pub(crate) fn post(&self, seq: u64, data: &Data) -> Duration {
        let begun = instant();
        let since = system().duration_since(UNIX_EPOCH).unwrap_or_default();
        let event =
            Ev { id: Uuid::now_v7(), event: EVENT, ts: since.as_millis() as u64, user: USER, seq, data };
        let mut queue = self.0.lock();
        serde_json::to_writer(&mut queue.lines, &event).expect("strings and numbers are JSON");
        queue.lines.push(b'\n');
        queue.events += 1;
        drop(queue);
        instant().duration_since(begun)
    }

    pub(crate) fn events(&self) -> u64 {
        self.0.lock().events
    }

    /// What an event takes in the queue.
    pub(crate) fn bytes_per_event(&self) -> f64 {
        let queue = self.0.lock();
        queue.lines.len() as f64 / queue.events.max(1) as f64
    }
}

/// For what is held against the floor too.
pub(crate) fn instant() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
    Instant::now()
}

fn system() -> SystemTime {
    #[expect(clippy::disallowed_methods, reason = "an event's stamp is a part of its cost")]
    SystemTime::now()
}

/// Of the times of many posts, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) mean: f64,
}

impl Times {
    /// # Panics
    /// Where there is none.
    pub(crate) fn of(times: &mut [u64]) -> Times {
        let sum: u64 = times.iter().sum();
        let mean = sum as f64 / times.len() as f64;
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64;
        Times { p50: at(0.50), p99: at(0.99), mean }
    }

    /// Each of the three by itself.
    pub(crate) fn median(rounds: &[Times]) -> Times {
        let median = |of: fn(&Times) -> f64| {
            let mut all: Vec<f64> = rounds.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        Times { p50: median(|t| t.p50), p99: median(|t| t.p99), mean: median(|t| t.mean) }
    }
}
