//! One event, as the application posts it.

use std::fmt;
use std::mem;
use std::time::Duration;

use serde::Serialize;

use super::early::Early;
use super::intake::{PostOptions, post};
use super::receipt::Receipt;
use crate::engine::ReceiptSender;
use crate::state::shared::Shared;

/// An event about to be posted. It is posted when this value goes out of scope, so a plain
/// `beacon.post("order_paid", &order);` is enough; the methods say how.
///
/// Posting never waits for I/O and returns no error: what cannot be taken in is counted.
///
/// # Panics
/// Never by itself. A `Serialize` of yours that panics is caught where panics unwind, and the event is counted as
/// `unencodable`; with `panic = "abort"` it ends the process.
pub struct Post<'a, T: Serialize + ?Sized> {
    to: Target<'a>,
    route: &'a str,
    data: &'a T,
    options: PostOptions<'a>,
    done: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Beacon(&'a Shared),
    Early(&'a Early),
}

impl<T: Serialize + ?Sized> fmt::Debug for Post<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post")
            .field("route", &self.route)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'a, T: Serialize + ?Sized> Post<'a, T> {
    pub(crate) fn new(to: Target<'a>, route: &'a str, data: &'a T) -> Post<'a, T> {
        Post { to, route, data, options: PostOptions::default(), done: false }
    }

    /// Leaves within the vital delay (1 s by default), and is the last to be evicted where room is short.
    pub fn vital(mut self) -> Post<'a, T> {
        self.options.vital = true;
        self
    }

    /// Leaves within this time. At most 1 s makes it vital, more makes it basic.
    pub fn delay(mut self, delay: Duration) -> Post<'a, T> {
        self.options.delay = Some(delay);
        self
    }

    /// Vital, and leaves at once, with what else is in its batch. It does not pass a shut gate: while the endpoint is in
    /// a backoff it waits like the rest.
    pub fn signal(mut self) -> Post<'a, T> {
        self.options.signal = true;
        self
    }

    /// Replaces the last event of the same user, session, route, key and priority, if it was posted less than 10 s ago and
    /// its batch has not been sealed. The replaced one is counted as merged. Ignored for a durable post.
    pub fn merge_by(mut self, key: &'a str) -> Post<'a, T> {
        self.options.merge = Some(key);
        self
    }

    /// How long the event is worth something: 24 h by default. A batch is kept for as long as its longest-lived event.
    pub fn keep_for(mut self, time: Duration) -> Post<'a, T> {
        self.options.keep = Some(time);
        self
    }

    /// Posts now, and answers when the event is on disk, as durably as
    /// [`BeaconBuilder::durability`](crate::BeaconBuilder::durability) says.
    ///
    /// A durable event that is acked by the server is deleted from the disk again. Durable posts made while the disk is
    /// busy are written together.
    pub fn durable(mut self) -> Receipt {
        self.done = true;
        let (sender, receipt) = Receipt::new();
        self.options.merge = None;
        submit(self.to, self.route, self.data, self.options, Some(sender));
        receipt
    }
}

impl<T: Serialize + ?Sized> Drop for Post<'_, T> {
    fn drop(&mut self) {
        if !mem::replace(&mut self.done, true) {
            submit(self.to, self.route, self.data, self.options, None);
        }
    }
}

impl Early {
    /// Like [`Beacon::post`](crate::Beacon::post).
    pub fn post<'a, T: Serialize + ?Sized>(&'a self, route: &'a str, data: &'a T) -> Post<'a, T> {
        Post::new(Target::Early(self), route, data)
    }
}

fn submit<T: Serialize + ?Sized>(
    to: Target<'_>,
    route: &str,
    data: &T,
    options: PostOptions<'_>,
    receipt: Option<ReceiptSender>,
) {
    match to {
        Target::Early(early) => early.submit(route, data, options, receipt),
        Target::Beacon(shared) => post(shared.here(), route, data, options, receipt),
    }
}
