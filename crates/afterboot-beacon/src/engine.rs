//! What the beacon knows, and what it decides: plain functions of (state, event, now), without I/O, without a clock and
//! without a runtime. The driver acts on it.
//!
//! A batch is in one place at a time: open, in a queue, waiting for the disk, or handed out to the driver. Each of the
//! files below is one leg of its way.

// Data.
mod time;
mod limits;
pub(crate) mod ledger;
pub(crate) mod endpoint;
mod event;
mod receipt;
mod batch;
mod open;
mod gaps;
mod erasure;
mod exchange;
pub(crate) mod verdict;

// The state, and the legs.
mod core;
mod losses;
mod post;
mod take;
mod settle;
mod to_spool;
#[cfg(any(feature = "spool", test))]
mod from_spool;
mod replay;
mod erase;
mod shutdown;
#[cfg(test)]
mod tests;

pub(crate) use self::batch::Batch;
#[cfg(feature = "spool")]
pub(crate) use self::batch::RowRef;
pub(crate) use self::core::Core;
pub use self::event::BeaconEvent;
#[cfg(feature = "spool")]
pub(crate) use self::exchange::{DeadBatch, EvictedRow, ReplayedRow};
pub(crate) use self::exchange::{Outgoing, Posting, Refusal};
pub(crate) use self::limits::Limits;
pub use self::receipt::NotDurable;
pub(crate) use self::receipt::{DeferredReply, ReceiptSender, Written};
pub(crate) use self::time::{Moment, Now};
pub(crate) use self::verdict::Outcome;
