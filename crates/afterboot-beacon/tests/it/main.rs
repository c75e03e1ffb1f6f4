//! The integration tests: each name is a claim.

#[cfg(feature = "http")]
#[path = "../support/server.rs"]
mod collector;
#[cfg(feature = "http")]
#[path = "../support/requests.rs"]
mod requests;

#[cfg(feature = "http")]
mod batching;
#[cfg(feature = "http")]
mod found;
mod http;
#[cfg(feature = "http")]
mod server;
#[cfg(all(feature = "http", feature = "spool"))]
mod torture;
