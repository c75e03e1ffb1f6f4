//! Chapters for those who embed afterboot. Every recipe in them runs as a test.

#[doc = include_str!("../docs/testing.md")]
pub mod testing {}

#[doc = include_str!("../docs/why-not.md")]
pub mod why_not {}

#[doc = include_str!("../docs/not-promised.md")]
pub mod not_promised {}
