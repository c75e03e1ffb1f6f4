//! The quiet window: a period without a long task and with few requests in flight. Pure.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Stamp;

/// What ended the stretch of quiet before this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Disturbance {
    LongTask { length: Duration, who: Arc<str> },
    Stopped { length: Duration },
    InFlight { requests: Arc<str> },
}

/// What the window says now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    /// Too many requests are in flight, for an unknown time.
    Busy { requests: Arc<str> },
    /// Nothing disturbs at present; quiet enough at `until`.
    Settling { until: Stamp },
    /// Quiet for long enough.
    Quiet,
}

/// Only the last disturbance is kept: whoever waits sleeps to `last + quiet` and looks again, so a busy
/// application costs no timer a disturbance.
#[derive(Debug)]
pub(crate) struct Window {
    quiet: Duration,
    last: Option<(Stamp, Disturbance)>,
    /// Since when too much is in flight, and what.
    over: Option<(Stamp, Arc<str>)>,
}

impl Window {
    pub(crate) fn new(quiet: Duration) -> Window {
        Window { quiet, last: None, over: None }
    }

    /// A long task ended at `end`, or is in progress and was seen at `end`.
    pub(crate) fn long_task(&mut self, end: Stamp, length: Duration, who: Arc<str>) {
        self.disturb(end, Disturbance::LongTask { length, who });
    }

    /// The process did not run until `end`: nobody knows what waits for it now.
    pub(crate) fn stopped(&mut self, end: Stamp, length: Duration) {
        self.disturb(end, Disturbance::Stopped { length });
    }

    /// More than the allowed number are in flight; `requests` says which, now.
    pub(crate) fn in_flight_over(&mut self, requests: Arc<str>, now: Stamp) {
        let since = self.over.as_ref().map_or(now, |(since, _)| *since);
        self.over = Some((since, requests));
    }

    /// No more than the allowed number are in flight any more: the window begins anew.
    pub(crate) fn in_flight_back(&mut self, now: Stamp) {
        if let Some((_, requests)) = self.over.take() {
            self.disturb(now, Disturbance::InFlight { requests });
        }
    }

    fn disturb(&mut self, at: Stamp, what: Disturbance) {
        if self.last.as_ref().is_none_or(|(last, _)| *last <= at) {
            self.last = Some((at, what));
        }
    }

    /// Since when something is over the in-flight limit, and what, if anything is.
    pub(crate) fn over(&self) -> Option<&(Stamp, Arc<str>)> {
        self.over.as_ref()
    }

    /// The last disturbance and when it ended.
    pub(crate) fn last(&self) -> Option<&(Stamp, Disturbance)> {
        self.last.as_ref()
    }

    /// What the window says at `now` if it was begun at `since`.
    pub(crate) fn look(&self, since: Stamp, now: Stamp) -> View {
        if let Some((_, requests)) = &self.over {
            return View::Busy { requests: Arc::clone(requests) };
        }
        let begun = self.last.as_ref().map_or(since, |(last, _)| since.max(*last));
        let until = begun.after(self.quiet);
        if now >= until { View::Quiet } else { View::Settling { until } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Stamp {
        Stamp::from_duration(Duration::from_millis(millis))
    }

    #[test]
    fn the_window_is_counted_from_the_end_of_the_last_disturbance() {
        let mut window = Window::new(Duration::from_millis(500));
        assert_eq!(window.look(at(100), at(599)), View::Settling { until: at(600) });
        window.long_task(at(300), Duration::from_millis(80), "worker".into());
        assert_eq!(window.look(at(100), at(600)), View::Settling { until: at(800) });
        assert_eq!(window.look(at(100), at(800)), View::Quiet);
        // A window begun after the disturbance counts from its own beginning.
        assert_eq!(window.look(at(400), at(800)), View::Settling { until: at(900) });
    }

    #[test]
    fn an_older_disturbance_told_late_does_not_move_the_last_one_back() {
        let mut window = Window::new(Duration::from_millis(500));
        window.long_task(at(300), Duration::from_millis(80), "b".into());
        window.long_task(at(200), Duration::from_millis(80), "a".into());
        assert_eq!(window.last().unwrap().0, at(300));
    }

    #[test]
    fn going_over_the_in_flight_limit_restarts_the_window_at_the_return() {
        let mut window = Window::new(Duration::from_millis(500));
        window.in_flight_over("GET / (3)".into(), at(200));
        assert_eq!(window.look(at(0), at(9_000)), View::Busy { requests: "GET / (3)".into() });
        window.in_flight_back(at(9_000));
        assert_eq!(window.look(at(0), at(9_400)), View::Settling { until: at(9_500) });
        assert_eq!(window.look(at(0), at(9_500)), View::Quiet);
    }
}
