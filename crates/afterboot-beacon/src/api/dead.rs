//! Dead letters, outside of the application: the library and the command.

mod cli;
mod offline;

pub use cli::command_line;
pub use offline::{DeadLetters, Replay};
