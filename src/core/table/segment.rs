//! The recorded polls of a task.

use std::time::Duration;

use crate::base::clock::Stamp;

use super::Ties;

/// One poll of a task, or several that were merged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) start: Stamp,
    /// The polls' own time, what lay between them left out.
    pub(crate) busy: Duration,
    /// From the end of the poll before to the wake that asked for this one.
    pub(crate) waited: Duration,
    pub(crate) polls: u32,
    /// How long the task rests after it, where it ended an attempt that is tried again.
    pub(crate) rests: Option<Duration>,
}

impl Segment {
    /// When it ended, where it is one poll.
    fn end(&self) -> Option<Stamp> {
        (self.polls == 1).then(|| self.start.after(self.busy))
    }
}

/// How many segments a task keeps.
const SEGMENTS: usize = 64;

impl Ties {
    /// Keeps one poll; where there are too many, neighbours are merged two by two. `woken`: when it was asked for,
    /// where that is known and it is not the first.
    pub(crate) fn record(&mut self, start: Stamp, busy: Duration, woken: Option<Stamp>) {
        let waited = self
            .segments
            .last()
            .and_then(Segment::end)
            .map_or(Duration::ZERO, |end| woken.unwrap_or(start).min(start).since(end));
        let segment = Segment { start, busy, waited, polls: 1, rests: None };
        if self.segments.len() == SEGMENTS {
            self.segments = self
                .segments
                .chunks(2)
                .map(|pair| Segment {
                    start: pair[0].start,
                    busy: pair.iter().map(|segment| segment.busy).sum(),
                    waited: pair.iter().map(|segment| segment.waited).sum(),
                    polls: pair.iter().map(|segment| segment.polls).sum(),
                    rests: None,
                })
                .collect();
        }
        self.segments.push(segment);
    }

    /// The poll that was kept last ended an attempt, and the next one comes after a rest.
    pub(crate) fn rests(&mut self, rest: Duration) {
        if let Some(last) = self.segments.last_mut() {
            last.rests = Some(rest);
        }
    }
}
