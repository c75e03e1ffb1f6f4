//! Dead letters: batches that the server will never take, kept so that a person can look at them, send them again or
//! throw them away.

mod cli;
mod offline;

pub use cli::command_line;
pub use offline::{DeadLetters, Replay};
