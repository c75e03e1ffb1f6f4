//! The governed task that is being polled on this thread, if any.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use crate::base::clock::Stopwatch;
use crate::model::id::Id;
use crate::shell::workers;

/// The governed poll on this thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here {
    /// The governor's address: ids of two governors must not be mixed up.
    governor: usize,
    id: Id,
    began: Stopwatch,
}

thread_local! {
    static HERE: Cell<Option<Here>> = const { Cell::new(None) };
    /// How many times it is known that a task other than the one before is polled on this thread.
    static TURN: Cell<u64> = const { Cell::new(0) };
    /// When code outside a lane last gave its tick back on this thread.
    static LAST_YIELD: Cell<Option<Stopwatch>> = const { Cell::new(None) };
}

/// Restores what was here before: a governed task may drive another governor's runtime inside its poll.
#[derive(Debug)]
pub(crate) struct Entered(Option<Here>);

pub(crate) fn enter<G>(governor: *const G, id: Id, began: Stopwatch) -> Entered {
    Entered(HERE.replace(Some(Here { governor: governor.addr(), id, began })))
}

/// What is here now, to be taken to another thread.
pub(crate) fn here() -> Option<Here> {
    HERE.get()
}

/// Enters what [`here`] gave on another thread.
pub(crate) fn reenter(here: Option<Here>) -> Entered {
    Entered(HERE.replace(here))
}

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}

/// The task of this governor that is being polled on this thread.
pub(crate) fn task_of<G>(governor: *const G) -> Option<Id> {
    HERE.get().filter(|here| here.governor == governor.addr()).map(|here| here.id)
}

/// Whether any governed task is being polled on this thread.
pub(crate) fn inside_a_governed_poll() -> bool {
    HERE.get().is_some()
}

/// Another task is polled on this thread than before: a span that is still entered here was left entered across an await.
pub(crate) fn another_is_polled() {
    TURN.set(TURN.get().wrapping_add(1));
}

/// Tells whether [`another_is_polled`] was called on this thread between two moments.
pub(crate) fn turn() -> u64 {
    TURN.get()
}

/// How long a poll may go on before [`yield_if_due`] gives the tick back: a tenth of a long task, so that a
/// task that asks often enough is not felt.
const BUDGET: Duration = Duration::from_millis(5);

/// Yields to the event loop if the current poll has used its budget of 5 ms of real time; otherwise returns at once.
///
/// Call it in CPU-bound loops, about once per millisecond; a call that does not yield costs one clock reading. In a
/// governed task the budget starts with the poll, and after a yield the lane lets I/O, timers and other tasks go first.
/// Outside of governed tasks the budget starts when code on this thread last yielded here, so the first call after a
/// wait may yield unnecessarily.
///
/// ```
/// # async fn parse(_: &str) {}
/// # async fn example(files: &[String]) {
/// for file in files {
///     parse(file).await;
///     afterboot::yield_if_due().await;
/// }
/// # }
/// ```
///
/// # Cancel safety
/// Safe: the future has no state to lose.
pub async fn yield_if_due() {
    match HERE.get() {
        Some(here) => {
            if here.began.elapsed() >= BUDGET {
                let mut yielded = false;
                poll_fn(|cx| {
                    if std::mem::replace(&mut yielded, true) {
                        return Poll::Ready(());
                    }
                    // The lane takes a full tick before it polls anything again, so an ordinary wake will do.
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
            }
        }
        None => match LAST_YIELD.get() {
            Some(last) if last.elapsed() < BUDGET => {}
            Some(_) => {
                LAST_YIELD.set(Some(Stopwatch::start()));
                tokio::task::yield_now().await;
                // A run of short polls is no long task, and a span entered across this await held nobody.
                another_is_polled();
                workers::came_round_here();
            }
            None => LAST_YIELD.set(Some(Stopwatch::start())),
        },
    }
}
