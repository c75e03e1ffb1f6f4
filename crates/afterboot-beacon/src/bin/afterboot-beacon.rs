//! Looks at a spool and its dead letters.

fn main() {}
