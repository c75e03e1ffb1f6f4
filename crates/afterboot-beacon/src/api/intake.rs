//! One event on its way into the engine: encoded on the caller's thread, then handed over.

use std::cell::RefCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::base::lock::lock;
use crate::engine::ledger::DropReason;
use crate::engine::{BeaconEvent, DeferredReply, NotDurable, Now, Posting, ReceiptSender, Refusal};
use crate::state::identity;
use crate::state::shared::Shared;
use crate::wire::{Priority, encode_event};

/// An event is vital if it may wait for at most this long.
pub(crate) const VITAL_AT_MOST: Duration = Duration::from_secs(1);

/// Larger data is warned about, once a route.
const LARGE_DATA: usize = 8 * 1024;
/// A longer name of a route is warned about, once a route.
const LONG_ROUTE: usize = 128;

/// What an event was posted with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PostOptions<'a> {
    pub(crate) delay: Option<Duration>,
    pub(crate) vital: bool,
    pub(crate) urgent: bool,
    pub(crate) merge: Option<&'a str>,
    pub(crate) expiry: Option<Duration>,
}

impl PostOptions<'_> {
    pub(crate) fn delay_and_priority(&self, shared: &Shared) -> (Duration, Priority) {
        if self.urgent {
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
    let mut replies = Vec::new();
    let large = post_at(shared, route, data, options, receipt, now, &mut replies);
    drop(replies);
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
    replies: &mut Vec<DeferredReply>,
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
            shared.core().refuse(DropReason::Unencodable, 1);
            replies.extend(receipt.map(|receipt| receipt.refuse(DropReason::Unencodable)));
            return None;
        }
        hand_over(shared, route, out, options, receipt, now, replies);
        (out.len() > LARGE_DATA || route.len() > LONG_ROUTE).then_some(out.len())
    })
}

/// Appends an encoded event to the open batch, and wakes the driver if there is something to do. From there a batch is taken
/// by a request (`engine/take.rs`) or by the disk (`engine/to_spool.rs`).
fn hand_over(
    shared: &Shared,
    route: &str,
    encoded: &[u8],
    options: PostOptions<'_>,
    receipt: Option<ReceiptSender>,
    now: Now,
    replies: &mut Vec<DeferredReply>,
) {
    // `Durability::Buffered` is satisfied in memory.
    let (answered, receipt) = if shared.settings.is_buffered() { (receipt, None) } else { (None, receipt) };
    let (delay, priority) = options.delay_and_priority(shared);
    let posting = Posting {
        route,
        encoded,
        priority,
        delay,
        merge: options.merge,
        urgent: options.urgent,
        receipt,
        expiry: options.expiry.unwrap_or(shared.settings.expiry),
    };
    let taken = {
        let mut core = shared.core();
        let taken = core.post(posting, now);
        replies.append(&mut core.take_replies());
        taken
    };
    if let Some(receipt) = answered {
        replies.push(receipt.defer(match taken {
            Ok(_) => Ok(()),
            Err(Refusal::Dropped(reason)) => Err(NotDurable::Dropped(reason)),
            Err(Refusal::Oversize) => Err(NotDurable::Oversize),
        }));
    }
    match taken {
        Ok(true) | Err(Refusal::Oversize) => shared.wake.notify_one(),
        Ok(false) => {}
        Err(Refusal::Dropped(reason)) => shared.emit(|| BeaconEvent::Dropped { reason, events: 1 }),
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

/// A subscriber may post, so nothing is locked meanwhile.
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
        shared.emit(|| BeaconEvent::Oversized {
            route: shown.to_owned(),
            data_bytes,
            route_bytes: route.len(),
        });
    }
}
