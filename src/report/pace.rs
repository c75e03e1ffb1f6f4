//! How a long report is made: at once, or with the event loop's ticks between its pieces.

use crate::base::tick::Ticker;

/// How many tasks are seen to between two ticks: a fraction of a millisecond.
const A_TICK: usize = 512;

/// Counts what has been done since the last tick.
#[derive(Debug)]
pub(crate) struct Pace {
    done: usize,
    ticker: Option<Ticker>,
}

impl Pace {
    /// Never waits.
    pub(crate) fn at_once() -> Pace {
        Pace { done: 0, ticker: None }
    }

    /// Lets a tick of the event loop pass now and then.
    pub(crate) fn with_ticks() -> Pace {
        Pace { done: 0, ticker: Some(Ticker::new()) }
    }

    /// A task has been seen to.
    pub(crate) async fn one(&mut self) {
        self.done += 1;
        if let Some(ticker) = &mut self.ticker
            && self.done >= A_TICK
        {
            self.done = 0;
            ticker.tick().await;
        }
    }
}
