//! What the beacon knows, and what it decides: plain functions of (state, event, now), without I/O, without a clock and
//! without a runtime. The driver acts on it.
//!
//! A batch is in one place at a time: open, in a queue, waiting for the disk, or handed out to the driver. Each of the
//! files below is one leg of its way.

mod batch;
mod core;
pub(crate) mod endpoint;
mod erase;
#[cfg(any(feature = "spool", test))]
mod from_spool;
mod gaps;
pub(crate) mod ledger;
mod open;
mod post;
mod replay;
mod settle;
mod shutdown;
mod take;
mod to_spool;
mod told;
pub(crate) mod verdict;
#[cfg(test)]
mod tests;

pub(crate) use self::batch::{BATCH_BYTES, Batch, Moment, SLOT_BYTES};
pub(crate) use self::core::{Core, LANES, Limits, MAX_IN_FLIGHT, Now, SPOOL_AGE, lane};
#[cfg(any(feature = "spool", test))]
pub(crate) use self::from_spool::{Evicted, Unlisted};
pub(crate) use self::open::Open;
pub(crate) use self::post::{Posting, Refusal};
#[cfg(feature = "spool")]
pub(crate) use self::settle::DeadBatch;
pub(crate) use self::settle::{MAX_LETTER, Outcome};
pub(crate) use self::take::Outgoing;
