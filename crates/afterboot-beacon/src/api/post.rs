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

/// An event about to be posted, made by [`Beacon::post`](crate::Beacon::post) or [`Early::post`]. It is posted when this
/// value is dropped, so `beacon.post("order_paid", &order);` is enough. The methods set options.
///
/// Posting does no I/O and returns no error: an event that cannot be queued is counted as dropped.
///
/// # Panics
/// Does not panic. A panic of the data's `Serialize` is caught and the event is counted as `unencodable`; with
/// `panic = "abort"` it aborts the process.
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

    /// Sends the event within the vital delay (1 s by default) and evicts it last when a queue or the spool is full.
    pub fn vital(mut self) -> Post<'a, T> {
        self.options.vital = true;
        self
    }

    /// Sends the event within `delay`. Up to 1 s makes it vital, a longer delay basic.
    pub fn delay(mut self, delay: Duration) -> Post<'a, T> {
        self.options.delay = Some(delay);
        self
    }

    /// Makes the event vital and sends its batch at once. While the endpoint is in a backoff or held, it waits like any other
    /// event.
    pub fn urgent(mut self) -> Post<'a, T> {
        self.options.urgent = true;
        self
    }

    /// Replaces the last event with the same user, session, route, key and priority, if that was posted less than 10 s ago and
    /// its batch is still open. The replaced event is counted as merged. Ignored for a durable post.
    pub fn merge_by(mut self, key: &'a str) -> Post<'a, T> {
        self.options.merge = Some(key);
        self
    }

    /// Sets when the event expires, from now. [`BeaconBuilder::expiry`](crate::BeaconBuilder::expiry) sets the default. A
    /// batch expires with the last of its events.
    pub fn expiry(mut self, expiry: Duration) -> Post<'a, T> {
        self.options.expiry = Some(expiry);
        self
    }

    /// Posts the event now. Returns a receipt that resolves once the event is on disk, as durable as
    /// [`BeaconBuilder::durability`](crate::BeaconBuilder::durability) requires.
    ///
    /// Once the server has acked the event, it is deleted from the disk. Durable posts made while the disk is busy are
    /// written in one transaction.
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
    /// Posts an event, as [`Beacon::post`](crate::Beacon::post) does.
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
