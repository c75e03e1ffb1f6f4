//! The integration tests: each name is a claim.

#[cfg(feature = "http")]
#[path = "../support/server.rs"]
mod collector;
#[cfg(feature = "http")]
#[path = "../support/requests.rs"]
mod requests;

mod wire;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod server;

mod batching;
mod posting;
mod early;
mod found;
#[cfg(feature = "spool")]
mod attack;
#[cfg(feature = "spool")]
mod letters;
#[cfg(all(feature = "http", feature = "spool"))]
mod torture;

// Processes, which keep what they have in a spool.
#[cfg(all(feature = "http", feature = "spool"))]
mod backlog;
#[cfg(all(feature = "http", feature = "spool", target_os = "linux"))]
mod bulkhead;
#[cfg(all(feature = "http", feature = "spool"))]
mod child;
#[cfg(all(feature = "http", feature = "spool"))]
mod clock;
#[cfg(all(feature = "http", feature = "spool"))]
mod common;
#[cfg(all(feature = "http", feature = "spool"))]
mod delivery;
#[cfg(all(feature = "http", feature = "spool"))]
mod disk;
#[cfg(all(feature = "http", feature = "spool"))]
mod flushing;
#[cfg(all(feature = "http", feature = "spool", unix))]
mod fork;
#[cfg(all(feature = "http", feature = "spool"))]
mod kill;
#[cfg(all(feature = "http", feature = "spool"))]
mod leaving;
#[cfg(all(feature = "http", feature = "spool"))]
mod losses;
#[cfg(all(feature = "http", feature = "spool"))]
mod network;
#[cfg(all(feature = "http", feature = "spool"))]
mod process;
#[cfg(all(feature = "http", feature = "spool", target_os = "linux"))]
mod power;
#[cfg(all(feature = "http", feature = "spool", target_os = "linux"))]
mod shim;
#[cfg(all(feature = "http", feature = "spool", unix))]
mod signals;
#[cfg(all(feature = "http", feature = "spool"))]
mod users;
#[cfg(all(feature = "http", feature = "spool", unix))]
mod vanish;
