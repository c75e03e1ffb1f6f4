//! Batches that outlive the process: one SQLite file a process, in a directory of its own under a root that the
//! processes of an application share.
//!
//! A directory belongs to the process that holds its lock. Another process adopts the rows of a dead one: it moves them into
//! its own database under the locks of both directories, and commits a row here before it deletes it there. A crash between the two leaves a copy in each, which the server
//! recognises by its numbers.

mod error;
mod options;
mod letter;
mod age;
mod rows;
#[cfg_attr(not(unix), path = "spool/owner/elsewhere.rs")]
mod owner;
mod place;
mod file_id;
mod files;
mod sql;
mod db;
mod damage;
mod alive;
mod declare;
mod store;
mod dead_store;
mod adopt;
mod offline;
#[cfg(test)]
mod tests;

pub(crate) use age::Stamp;
pub(crate) use db::MAX_INFLATED;
pub use error::SpoolError;
pub use letter::{DeadBatchError, DeadId, DeadIdError, DeadLetter, ProcessSpool};
pub(crate) use offline::{Held, Offline};
pub use options::{Durability, SpoolOptions};
pub(crate) use place::process_name;
pub(crate) use rows::{
    Adopted, Change, Erased, Evicted, Lost, MAX_ROW, NewDead, NewRow, Numbers, Put, Replayed, Row, RowId,
    Totals, Until, Why,
};
pub(crate) use store::Spool;
