//! The spool, on a thread of its own: one call at a time, none waited for longer than a time limit.

mod call;
mod failure;
mod last;
mod payload;
mod results;
mod rows;
mod state;
mod trouble;
mod work;
mod worker;

pub(super) use self::state::{Disk, Finished, TIME_LIMIT};
