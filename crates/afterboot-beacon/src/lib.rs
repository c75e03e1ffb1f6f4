//! Events that arrive, or are counted.
#![warn(missing_docs)]

// What both sides speak.
pub mod wire;

// The way of an event.
mod early;
mod post;
mod privacy;
mod identity;
mod clock;
mod core;
mod endpoint;
mod verdict;
mod token;
mod transport;
mod driver;
mod receipt;
#[cfg(feature = "spool")]
mod spool;
#[cfg(feature = "spool")]
mod dead;
mod ledger;

// The handle and what it is built with.
mod builder;
mod launch;
mod shared;
mod beacon;
mod answer;
mod event;
mod health;
mod error;
mod signals;

pub mod testing;

pub use beacon::{Beacon, Flushed};
pub use builder::BeaconBuilder;
#[cfg(feature = "spool")]
#[doc(hidden)]
pub use dead::command_line;
#[cfg(feature = "spool")]
pub use dead::{DeadBatchError, DeadId, DeadIdError, DeadLetter, DeadLetters, ProcessSpool, Replay};
pub use early::Early;
pub use endpoint::HeldReason;
pub use error::Error;
pub use event::{BeaconEvent, BeaconEvents, Next};
pub use health::{EndpointState, Health, SpoolState};
pub use ledger::DropReason;
pub use post::Post;
pub use receipt::{NotDurable, Receipt};
pub use signals::{Left, OnSignal, Signal};
#[cfg(feature = "spool")]
pub use spool::{Durability, SpoolError, SpoolOptions};
pub use token::Token;
#[cfg(feature = "http")]
pub use transport::http::{EndpointError, HttpTransport};
pub use transport::{MAX_ANSWER, Request, Response, Sending, Transport, TransportError};
