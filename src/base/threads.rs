//! Threads that cannot be obtained: the blocking pool is full, or the system refuses (`RLIMIT_NPROC`, a container's
//! limit).
//!
//! tokio panics where the system refuses the pool's first thread, though what was asked for stands in the pool's line then and
//! runs as soon as there is a thread. So that panic is caught, and the pool is asked again later.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::base::catch::catch;
use crate::base::clock::Stamp;

/// How long a blocking closure waits before the pool is asked again for a thread.
pub(crate) const AGAIN: Duration = Duration::from_millis(100);

/// Runs this on a thread of the blocking pool, when one is free.
///
/// # Errors
/// There is no thread, and none could be had: it stands in the pool's line until [`ask_again`] has one made.
pub(crate) fn on_the_pool(runtime: &Handle, run: impl FnOnce() + Send + 'static) -> Result<(), Arc<str>> {
    catch(|| drop(runtime.spawn_blocking(run)))
}

/// Has the pool make a thread for those who stand in its line. True where it has one.
pub(crate) fn ask_again(runtime: &Handle) -> bool {
    // The system is asked first: it says no, where the pool panics.
    let given = thread::Builder::new().name("afterboot asks".to_owned()).spawn(|| ());
    given.is_ok() && on_the_pool(runtime, || ()).is_ok()
}

thread_local! {
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// The body of a task got no thread; it does not know its governor, so the lane hears of it after the poll.
pub(crate) fn refused() {
    REFUSED.set(true);
}

pub(crate) fn take_refused() -> bool {
    REFUSED.replace(false)
}

/// For what no thread could be had.
pub(crate) const LANE: &str = "the lane";
pub(crate) const BLOCKING: &str = "a blocking task";
pub(crate) const SAMPLER: &str = "the sampler";
pub(crate) const WITNESS: &str = "the witness";

/// Threads that could not be had, a line for each thing that wanted one.
#[derive(Debug, Default)]
pub(crate) struct Missed(Vec<(&'static str, Stamp, u64)>);

impl Missed {
    pub(crate) fn add(&mut self, wanted: &'static str, now: Stamp) {
        match self.0.iter_mut().find(|(known, ..)| *known == wanted) {
            Some((.., times)) => *times += 1,
            None => self.0.push((wanted, now, 1)),
        }
    }

    /// What wanted one, when it first had none, and how often.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, Stamp, u64)> {
        self.0.iter().copied()
    }
}
