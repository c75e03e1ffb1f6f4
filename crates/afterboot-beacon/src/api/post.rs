//! One event, from the application's call to the open batch.

use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::early::Early;
use super::receipt::Receipt;
use crate::base::lock::lock;
use crate::engine::ledger::{DropReason, Place};
use crate::engine::{BeaconEvent, DeferredReply, NotDurable, Now, Posting, ReceiptSender, Refusal};
use crate::state::identity;
use crate::state::shared::Shared;
use crate::wire::{Priority, encode_event};

/// An event is vital if it may wait for at most this long.
pub(crate) const VITAL_AT_MOST: Duration = Duration::from_secs(1);

/// Data larger than this is warned about, once a route.
const LARGE_DATA: usize = 8 * 1024;
/// A route's name longer than this is warned about, once a route.
const LONG_ROUTE: usize = 128;

/// What an event was posted with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PostOptions<'a> {
    pub(crate) delay: Option<Duration>,
    pub(crate) vital: bool,
    pub(crate) signal: bool,
    pub(crate) merge: Option<&'a str>,
    pub(crate) keep: Option<Duration>,
}

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

impl PostOptions<'_> {
    pub(crate) fn delay_and_priority(&self, shared: &Shared) -> (Duration, Priority) {
        if self.signal {
            return (Duration::ZERO, Priority::Vital);
        }
        let delay = match self.delay {
            Some(delay) if self.vital => delay.min(VITAL_AT_MOST),
            Some(delay) => delay,
            None if self.vital => shared.settings.delays.vital,
            None => shared.settings.delays.basic,
        };
        let vital = self.vital || delay <= VITAL_AT_MOST;
        (delay, if vital { Priority::Vital } else { Priority::Basic })
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

thread_local! {
    /// Where an event is encoded before the lock is taken: the application's `Serialize` runs, and may post itself.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A scratch buffer that once grew beyond this is not kept.
const SCRATCH_KEPT: usize = 64 * 1024;

fn with_scratch<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = SCRATCH.try_with(RefCell::take).unwrap_or_default();
    buffer.clear();
    let result = work(&mut buffer);
    if buffer.capacity() <= SCRATCH_KEPT {
        // A thread on its way out has no scratch any more.
        let _ = SCRATCH.try_with(|scratch| scratch.replace(buffer));
    }
    result
}

/// Runs the application's `Serialize`, whatever it does. None: it failed or panicked.
pub(crate) fn guarded<R>(work: impl FnOnce() -> Result<R, serde_json::Error>) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.ok(),
        Err(payload) => {
            // Its destructor may panic as well.
            if !payload.is::<&str>() && !payload.is::<String>() {
                mem::forget(payload);
            }
            None
        }
    }
}

fn encode<T: Serialize + ?Sized>(out: &mut Vec<u8>, id: Uuid, route: &str, data: &T, now: Now) -> bool {
    guarded(|| encode_event(out, id, route, now.wall, now.mono, data)).is_some()
}

pub(crate) fn post<T: Serialize + ?Sized>(
    shared: &Shared,
    route: &str,
    data: &T,
    options: PostOptions<'_>,
    receipt: Option<ReceiptSender>,
) {
    let now = shared.now();
    let mut said = Vec::new();
    let large = post_at(shared, route, data, options, receipt, now, &mut said);
    drop(said);
    if let Some(bytes) = large {
        warn_of_size(shared, route, bytes);
    }
}

/// `shared` is of this process, see [`Shared::here`]. `now` is when the application posted, which for an early post was a
/// while ago. Some: it is so large that the caller has to [warn](warn_of_size). `said` is for the caller to drop where
/// nothing is locked.
pub(crate) fn post_at<T: Serialize + ?Sized>(
    shared: &Shared,
    route: &str,
    data: &T,
    options: PostOptions<'_>,
    receipt: Option<ReceiptSender>,
    now: Now,
    said: &mut Vec<DeferredReply>,
) -> Option<usize> {
    // Before the application's `Serialize` runs, which could do anything.
    let id = identity::event(now.wall, shared.process());
    with_scratch(|out| {
        let encoded = if shared.settings.allow.has(route) {
            encode_allowed(shared, out, id, route, data, now)
        } else {
            encode(out, id, route, data, now)
        };
        if !encoded {
            shared.core().ledger.posted(Place::Dropped(DropReason::Unencodable), 1);
            said.extend(receipt.map(|receipt| receipt.refuse(DropReason::Unencodable)));
            return None;
        }
        hand_over(shared, route, out, options, receipt, now, said);
        (out.len() > LARGE_DATA || route.len() > LONG_ROUTE).then_some(out.len())
    })
}

/// An encoded event goes into the core, and the driver is woken where it has to be.
fn hand_over(
    shared: &Shared,
    route: &str,
    encoded: &[u8],
    options: PostOptions<'_>,
    receipt: Option<ReceiptSender>,
    now: Now,
    said: &mut Vec<DeferredReply>,
) {
    // In memory is all that was asked for.
    let (answered, receipt) = if shared.settings.is_buffered() { (receipt, None) } else { (None, receipt) };
    let (delay, priority) = options.delay_and_priority(shared);
    let posting = Posting {
        route,
        encoded,
        priority,
        delay,
        merge: options.merge,
        signal: options.signal,
        receipt,
        keep: options.keep.unwrap_or(shared.settings.expiry),
    };
    let taken = {
        let mut core = shared.core();
        let taken = core.post(posting, now);
        said.append(&mut core.take_said());
        taken
    };
    if let Some(receipt) = answered {
        said.push(receipt.defer(match taken {
            Ok(_) => Ok(()),
            Err(Refusal::Dropped(reason)) => Err(NotDurable::Dropped(reason)),
            Err(Refusal::Oversize) => Err(NotDurable::Oversize),
        }));
    }
    match taken {
        Ok(true) | Err(Refusal::Oversize) => shared.wake.notify_one(),
        Ok(false) => {}
        Err(Refusal::Dropped(reason)) => shared.tell(|| BeaconEvent::Dropped { reason, events: 1 }),
    }
}

fn encode_allowed<T: Serialize + ?Sized>(
    shared: &Shared,
    out: &mut Vec<u8>,
    id: Uuid,
    route: &str,
    data: &T,
    now: Now,
) -> bool {
    let Some(whole) = guarded(|| serde_json::to_vec(data)) else { return false };
    let Some((filtered, removed)) = shared.settings.allow.filter(route, &whole) else { return false };
    if removed > 0 {
        lock(&shared.quality).keys_removed += removed;
    }
    let Ok(filtered) = serde_json::from_slice::<&RawValue>(&filtered) else { return false };
    encode(out, id, route, filtered, now)
}

/// Whoever hears of it may post, so nothing is locked meanwhile.
#[cold]
pub(crate) fn warn_of_size(shared: &Shared, route: &str, data_bytes: usize) {
    let mut end = route.len().min(LONG_ROUTE);
    while !route.is_char_boundary(end) {
        end -= 1;
    }
    let shown = &route[..end];
    if shared.warn_once(shown) {
        tracing::warn!(
            route = shown,
            data_bytes,
            route_bytes = route.len(),
            "a large event: data should stay below 8 KB and a route's name below 128 bytes"
        );
        shared.tell(|| BeaconEvent::Oversized {
            route: shown.to_owned(),
            data_bytes,
            route_bytes: route.len(),
        });
    }
}
