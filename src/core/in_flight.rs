//! Requests in flight, counted by name. There are no ids that an error path could mix up.

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::text::Plain;

/// How many guards are held, by name. Pure.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    total: usize,
    /// A handful of names; looked through in order.
    names: Vec<(Cow<'static, str>, usize)>,
}

impl InFlight {
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn enter(&mut self, name: Cow<'static, str>) {
        self.total += 1;
        match self.names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.names.push((name, 1)),
        }
    }

    pub(crate) fn leave(&mut self, name: &str) {
        self.total -= 1;
        if let Some(place) = self.names.iter().position(|(known, _)| known == name) {
            self.names[place].1 -= 1;
            if self.names[place].1 == 0 {
                self.names.remove(place);
            }
        }
    }

    /// `3 in flight: GET /search (2), warm-up (1)`.
    pub(crate) fn describe(&self) -> Arc<str> {
        /// Longer names, and more of them, tell no more.
        const SHOWN: usize = 8;
        let mut names: Vec<String> = self
            .names
            .iter()
            .take(SHOWN)
            .map(|(name, count)| format!("{} ({count})", Plain(name, 40)))
            .collect();
        if self.names.len() > SHOWN {
            names.push("…".to_owned());
        }
        format!("{} in flight: {}", self.total, names.join(", ")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_named_with_its_count() {
        let mut in_flight = InFlight::default();
        for name in ["GET /search", "warm-up", "GET /search"] {
            in_flight.enter(Cow::Borrowed(name));
        }
        assert_eq!(&*in_flight.describe(), "3 in flight: GET /search (2), warm-up (1)");
        in_flight.leave("GET /search");
        in_flight.leave("warm-up");
        assert_eq!((&*in_flight.describe(), in_flight.total()), ("1 in flight: GET /search (1)", 1));
    }
}
