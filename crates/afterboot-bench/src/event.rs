//! The event that every client posts.

use serde::Serialize;

pub(crate) const ROUTE: &str = "checkout_confirmed";

/// In every event once, and nowhere else in a request: by it the sink counts events of any encoding.
pub(crate) const PATH: &str = "/checkout/confirm";

/// Five properties.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Checkout {
    pub(crate) path: &'static str,
    pub(crate) amount: u32,
    pub(crate) currency: &'static str,
    pub(crate) ok: bool,
    pub(crate) n: u32,
}

impl Checkout {
    pub(crate) fn new(n: u32) -> Checkout {
        Checkout { path: PATH, amount: 1999, currency: "EUR", ok: true, n }
    }
}
