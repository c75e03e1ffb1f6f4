//! Events that arrive, or are counted.
//!
//! A [`Beacon`] takes events from any thread, sends them in batches, keeps on disk what cannot be sent, and knows at every
//! moment where each of them is. Begin with [`Beacon::builder`] and [`Beacon::post`].
//!
//! ```
//! use std::time::Duration;
//! use afterboot_beacon::{Beacon, testing::ScriptedTransport};
//!
//! let server = ScriptedTransport::accepting();
//! let beacon = Beacon::builder("shop").transport(server.clone()).build()?;
//! beacon.post("order_paid", &("EUR", 1999));
//! beacon.post("crash", "out of memory").signal();
//! let counters = beacon.shutdown_blocking(Duration::from_secs(5));
//! assert_eq!(counters.acked, 2);
//! assert!(counters.balances());
//! # Ok::<(), afterboot_beacon::Error>(())
//! ```
//!
//! # The way of an event
//!
//! 1. [`post`](Beacon::post) encodes it and appends it to the open batch of its priority. [`Post`] says how it may be
//!    posted. Before there is a beacon, [`Early`] takes it.
//! 2. The batch is *sealed* when it is full or due; its events get their numbers. See [`wire`] for what names an event.
//! 3. The driver, one task on a thread of its own or on your runtime, sends it by the [`Transport`]. The answer settles
//!    each event, or the *endpoint* is at fault and everything waits: [`Health`] says why and for how long.
//! 4. What cannot be sent goes to the spool (`SpoolOptions`) and comes back from it, in this process or another.
//! 5. What no server will take becomes a dead letter (`DeadLetter`).
//!
//! [`Counters`](wire::Counters) is the ledger: wherever an event is, it is counted there and nowhere else.
//!
//! # What to know
//!
//! - Delivery is at least once; the server knows a repeated event by its number.
//! - A plain post is in memory for up to five seconds. What must survive a crash is posted
//!   [durably](Post::durable).
//! - `process::exit` runs no destructors: call [`shutdown_blocking`](Beacon::shutdown_blocking) before it.
//! - Encoding happens where you post: a `Serialize` that is slow is slow there. One that fails or panics is counted as
//!   `unencodable`.
//! - A fork: the child's first post starts a beacon of its own. The parent's events are the parent's. A fork while another
//!   thread holds the allocator's, SQLite's or a runtime's lock is as unsafe here as anywhere. While the child lives, nobody
//!   adopts the parent's spool: it has inherited the lock.
//!
//! # Features
//!
//! `http` (default), `tls`, `spool` (default). Without any there is the client with a transport of your own, and [`wire`].

// In the order of the layers: each knows only those above it in this list.
pub mod wire;
mod base;
#[cfg(feature = "spool")]
mod spool;
mod transport;
mod engine;
mod state;
mod driver;
mod api;

pub use api::beacon::{Beacon, Flushed};
pub use api::builder::BeaconBuilder;
#[cfg(feature = "spool")]
#[doc(hidden)]
pub use api::dead::command_line;
#[cfg(feature = "spool")]
pub use api::dead::{DeadLetters, Replay};
pub use api::early::Early;
pub use api::error::Error;
pub use api::event::{BeaconEvents, Next};
pub use api::health::{EndpointState, Health, SpoolState};
pub use api::post::Post;
pub use api::receipt::Receipt;
pub use api::signal::OnSignal;
pub use api::testing;
pub use engine::endpoint::HeldReason;
pub use engine::ledger::DropReason;
pub use engine::{BeaconEvent, NotDurable};
#[cfg(feature = "spool")]
pub use spool::{
    DeadBatchError, DeadId, DeadIdError, DeadLetter, Durability, ProcessSpool, SpoolError, SpoolOptions,
};
pub use state::signal::{ShutDown, Signal};
#[cfg(feature = "http")]
pub use transport::http::{EndpointError, HttpTransport};
pub use transport::{MAX_ANSWER, Request, Response, Sending, Token, Transport, TransportError};

/// The examples of the documents, run as tests.
#[cfg(all(doctest, feature = "http", feature = "spool"))]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
