//! An event client: events are delivered or counted.
//!
//! A [`Beacon`] accepts events from any thread, sends them in batches, keeps on disk what cannot be sent, and accounts for
//! each event in a ledger. Start with [`Beacon::builder`] and [`Beacon::post`].
//!
//! ```
//! use std::time::Duration;
//! use afterboot_beacon::{Beacon, testing::ScriptedTransport};
//!
//! let server = ScriptedTransport::accepting();
//! let beacon = Beacon::builder("shop").transport(server.clone()).build()?;
//! beacon.post("order_paid", &("EUR", 1999));
//! beacon.post("crash", "out of memory").urgent();
//! let counters = beacon.shutdown_blocking(Duration::from_secs(5));
//! assert_eq!(counters.acked, 2);
//! assert!(counters.balances());
//! # Ok::<(), afterboot_beacon::Error>(())
//! ```
//!
//! # The life of an event
//!
//! 1. [`Beacon::post`] encodes it and appends it to the open batch of its priority. [`Post`] sets options. Before the beacon
//!    is built, [`Early`] queues events.
//! 2. The batch is *sealed* when it is full or due, and its events get their numbers. [`wire`] says what identifies an event.
//! 3. The driver, one task on the beacon's own thread or on a given runtime, sends the batch through the [`Transport`]. The
//!    response settles each event, or puts the *endpoint* into a backoff or on hold: [`Health`] says why and for how long.
//! 4. A batch that cannot be sent is written to the spool (`SpoolOptions`) and sent later, by this process or another.
//! 5. A batch that the server will never accept becomes a dead letter (`DeadLetter`).
//!
//! [`Counters`](wire::Counters) is the ledger: each event is counted in exactly one place.
//!
//! # Guarantees and limits
//!
//! - Delivery is at least once. The server recognises a repeated event by its number.
//! - An event is in memory for up to five seconds. One that must survive a crash is posted [durably](Post::durable).
//! - `process::exit` runs no destructors: call [`shutdown_blocking`](Beacon::shutdown_blocking) before it.
//! - Events are encoded on the posting thread, so a slow `Serialize` delays it. An event whose `Serialize` fails or panics is
//!   counted as `unencodable`.
//! - After a fork, the child's first post starts a beacon of its own, and the parent's events stay with the parent. A fork
//!   while another thread holds a lock of the allocator, SQLite or a runtime is as unsafe as elsewhere. While the child
//!   lives, the parent's spool is not adopted: the child has inherited its lock.
//!
//! # Features
//!
//! `http` (default), `tls`, `spool` (default). Without features the crate offers the client, for a [`Transport`] implemented
//! elsewhere, and [`wire`].

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
pub use transport::{MAX_RESPONSE, Request, Response, Sending, Token, Transport, TransportError};

/// The examples of the documents, run as tests.
#[cfg(all(doctest, feature = "http", feature = "spool"))]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
