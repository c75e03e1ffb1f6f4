//! Recent results of requests and of the spool.

use std::collections::VecDeque;
use std::time::Duration;

/// The number of requests that are remembered.
const WINDOW: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Quality {
    pub(crate) tries: VecDeque<Option<Duration>>,
    pub(crate) last_error: Option<String>,
    pub(crate) spool_trouble: Option<String>,
    pub(crate) keys_removed: u64,
}

impl Quality {
    pub(crate) fn answered(&mut self, after: Duration) {
        self.tried(Some(after));
        self.last_error = None;
    }

    pub(crate) fn failed(&mut self, why: String) {
        self.tried(None);
        self.last_error = Some(why);
    }

    fn tried(&mut self, result: Option<Duration>) {
        if self.tries.len() == WINDOW {
            self.tries.pop_front();
        }
        self.tries.push_back(result);
    }
}
