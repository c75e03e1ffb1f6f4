//! Posts before the beacon is built.

use std::fmt;
use std::mem;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::intake::{PostOptions, guarded, post, post_at, warn_of_size};
use crate::base::lock::lock;
use crate::base::machine::mono_ms;
use crate::base::wall::system_ms;
use crate::engine::ledger::DropReason;
use crate::engine::{DeferredReply, Moment, Now, ReceiptSender};
use crate::state::shared::Shared;

/// At most so many posts wait for a beacon.
const MAX_EARLY: usize = 1000;
/// At most so many bytes of them.
const MAX_EARLY_BYTES: usize = 1024 * 1024;

/// A queue for events that are posted before the beacon is built, to be used as a `static`. A beacon that is built
/// [with it](crate::BeaconBuilder::early) takes the events over in order; later posts go to that beacon directly.
///
/// Holds up to 1,000 events or 1 MiB. Further events are counted as dropped (`early_full`) by the beacon that takes the
/// queue over. A forked child has its own queue, which starts empty.
///
/// ```
/// use afterboot_beacon::Early;
///
/// static EARLY: Early = Early::new();
///
/// EARLY.post("process_started", &std::process::id());
/// assert_eq!(EARLY.len(), 1);
/// ```
pub struct Early {
    /// The process that posted or asked first: what waits is its own.
    process: AtomicU32,
    state: Mutex<State>,
    /// What a process uses that is a child of that one.
    child: OnceLock<Box<Early>>,
}

impl fmt::Debug for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Early({} waiting)", self.len())
    }
}

#[derive(Debug)]
enum State {
    Waiting { posts: Vec<EarlyPost>, bytes: usize, dropped: u64, unencodable: u64 },
    Attached(Weak<Shared>),
}

impl State {
    const NEW: State = State::Waiting { posts: Vec::new(), bytes: 0, dropped: 0, unencodable: 0 };
}

#[derive(Debug)]
struct EarlyPost {
    route: String,
    data: Box<RawValue>,
    wall: u64,
    mono: u64,
    delay: Option<Duration>,
    vital: bool,
    urgent: bool,
    merge: Option<String>,
    expiry: Option<Duration>,
    receipt: Option<ReceiptSender>,
}

impl Default for Early {
    fn default() -> Early {
        Early::new()
    }
}

impl Early {
    /// Returns an empty queue.
    pub const fn new() -> Early {
        Early::with(State::NEW)
    }

    const fn with(state: State) -> Early {
        Early { process: AtomicU32::new(0), state: Mutex::new(state), child: OnceLock::new() }
    }

    /// The queue of this process. A fork copies what waits, and the parent sends it.
    fn here(&self) -> &Early {
        let us = process::id();
        let claimed = self.process.compare_exchange(0, us, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.map_or_else(|first| first == us, |_| true) { self } else { self.child().here() }
    }

    #[cold]
    fn child(&self) -> &Early {
        self.child.get_or_init(|| {
            // A thread that held the lock at the fork does not exist in this process.
            let state = match self.state.try_lock().as_deref() {
                Ok(State::Attached(shared)) => State::Attached(Weak::clone(shared)),
                _ => State::NEW,
            };
            Box::new(Early::with(state))
        })
    }

    /// Returns the number of queued events: 0 once a beacon has taken the queue over.
    pub fn len(&self) -> usize {
        match &*lock(&self.here().state) {
            State::Waiting { posts, .. } => posts.len(),
            State::Attached(_) => 0,
        }
    }

    /// Returns whether no event is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn submit<T: Serialize + ?Sized>(
        &self,
        route: &str,
        data: &T,
        options: PostOptions<'_>,
        receipt: Option<ReceiptSender>,
    ) {
        let this = self.here();
        let beacon = match &*lock(&this.state) {
            State::Attached(shared) => Some(shared.upgrade()),
            State::Waiting { .. } => None,
        };
        if let Some(beacon) = beacon {
            return match beacon {
                Some(shared) => post(shared.here(), route, data, options, receipt),
                None => drop(receipt.map(|receipt| receipt.refuse(DropReason::Closed))),
            };
        }
        let (wall, mono) = (system_ms(), mono_ms());
        let Some(data) = guarded(|| to_raw_value(data)) else {
            this.keep(None);
            return drop(receipt.map(|receipt| receipt.refuse(DropReason::Unencodable)));
        };
        this.keep(Some(EarlyPost {
            route: route.to_owned(),
            data,
            wall,
            mono,
            delay: options.delay,
            vital: options.vital,
            urgent: options.urgent,
            merge: options.merge.map(str::to_owned),
            expiry: options.expiry,
            receipt,
        }));
    }

    fn keep(&self, post: Option<EarlyPost>) {
        // A receipt's waker may post here again, so replies are sent when nothing is locked.
        let mut replies = Vec::new();
        let mut state = lock(&self.state);
        let beacon = match &mut *state {
            State::Waiting { unencodable, .. } if post.is_none() => {
                *unencodable += 1;
                return;
            }
            State::Waiting { posts, bytes, dropped, .. } => {
                let Some(post) = post else { return };
                let size = post.bytes();
                if posts.len() == MAX_EARLY || *bytes + size > MAX_EARLY_BYTES {
                    *dropped += 1;
                    replies.extend(post.receipt.map(|receipt| receipt.refuse(DropReason::EarlyFull)));
                } else {
                    *bytes += size;
                    posts.push(post);
                }
                drop(state);
                return;
            }
            // It was built while this event was being encoded.
            State::Attached(shared) => shared.upgrade(),
        };
        drop(state);
        match (beacon, post) {
            (Some(shared), Some(post)) => {
                let large = post.replay(shared.here(), &mut replies);
                drop(replies);
                if let Some((route, bytes)) = large {
                    warn_of_size(shared.here(), &route, bytes);
                }
            }
            (Some(shared), None) => {
                shared.here().core().refuse(DropReason::Unencodable, 1);
            }
            (None, post) => {
                let receipt = post.and_then(|post| post.receipt);
                replies.extend(receipt.map(|receipt| receipt.refuse(DropReason::Closed)));
            }
        }
    }

    /// Hands the posts over in order; none overtakes them meanwhile. Receipts are resolved after the queue is unlocked.
    pub(crate) fn attach(&self, shared: &Arc<Shared>) {
        let mut replies = Vec::new();
        let mut state = lock(&self.here().state);
        let before = mem::replace(&mut *state, State::Attached(Arc::downgrade(shared)));
        let State::Waiting { posts, dropped, unencodable, .. } = before else { return };
        let large: Vec<_> = posts.into_iter().filter_map(|post| post.replay(shared, &mut replies)).collect();
        {
            let mut core = shared.core();
            core.refuse(DropReason::EarlyFull, dropped);
            core.refuse(DropReason::Unencodable, unencodable);
        }
        drop(state);
        drop(replies);
        for (route, bytes) in large {
            warn_of_size(shared, &route, bytes);
        }
    }
}

impl EarlyPost {
    /// All of it that has no fixed size.
    fn bytes(&self) -> usize {
        self.data.get().len() + self.route.len() + self.merge.as_ref().map_or(0, String::len)
    }

    /// Its route and size, where they are to be [warned](warn_of_size) of.
    fn replay(self, shared: &Shared, replies: &mut Vec<DeferredReply>) -> Option<(String, usize)> {
        let now = shared.now();
        // It was posted this long ago, and its delay has been running since.
        let ago = Moment::from_millis(now.mono.saturating_sub(self.mono));
        let then = Now { at: now.at.saturating_sub(ago), wall: self.wall, mono: self.mono };
        let options = PostOptions {
            delay: self.delay,
            vital: self.vital,
            urgent: self.urgent,
            merge: self.merge.as_deref(),
            expiry: self.expiry,
        };
        let large = post_at(shared, &self.route, &*self.data, options, self.receipt, then, replies);
        large.map(|bytes| (self.route, bytes))
    }
}
