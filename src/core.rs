//! The pure core: (state, event, now) -> what is to be done. It knows ids, names and times; it holds no future,
//! awaits nothing, locks nothing and reads no clock.
//!
//! Each event is a method of [`Core`] that takes `now` and writes what follows into [`Actions`]; the shell carries it
//! out after it has let go of the lock. The files hold one kind of event each, in the order in which a task travels.

mod scheduler;
mod actions;
mod names;
pub(crate) mod table;
pub(crate) mod ready_queue;
mod declare;
mod queues;
pub(crate) mod gate;
mod window;
mod start;
mod demand;
pub(crate) mod turn;
pub(crate) mod handover;
mod next;
mod poll;
mod polling;
mod lend;
mod loans;
mod retry;
mod end;
pub(crate) mod delay;
mod hold;
pub(crate) mod holds;
mod starve;
mod crowd;
mod starved;
mod stuck;
mod quiet;
mod in_flight;
pub(crate) mod rounds;
pub(crate) mod stalls;
pub(crate) mod stops;
mod sealed;
mod scope;
mod lifecycle;
mod outcomes;
mod listen;
mod notes;
#[cfg(test)]
mod laws;

pub(crate) use actions::{Actions, AfterPoll, Resolve, Work};

pub(crate) use loans::{Loan, Target, Waits};
pub(crate) use notes::Note;
pub(crate) use scheduler::Core;
pub(crate) use starved::Starved;
pub(crate) use stuck::SLOW;
pub(crate) use turn::{Class, Turn};
