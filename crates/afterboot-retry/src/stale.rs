//! Detects a stream that stalls: answers arrive, and their reading does not change.

/// Detects that a reading which should change has stopped changing, and that it changes again. Reports each once.
///
/// The threshold is 3 by default, as in Facebook's live player: the reading must repeat three times in a row after it was
/// first seen. 0 turns the detector off. A missing reading does not change the count.
///
/// ```
/// use afterboot_retry::{StaleDetector, StaleEvent};
///
/// let mut detector = StaleDetector::new(2);
/// let events: Vec<_> = [10, 10, 10, 10, 12].into_iter().map(|at| detector.update(Some(at))).collect();
/// assert_eq!(events, [None, None, Some(StaleEvent::Interrupted), None, Some(StaleEvent::Resumed)]);
/// ```
#[derive(Debug, Clone)]
pub struct StaleDetector<T> {
    threshold: u32,
    last: Option<T>,
    same: u32,
    interrupted: bool,
}

/// An event of a [`StaleDetector`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum StaleEvent {
    /// The reading has repeated as many times as the threshold.
    Interrupted,
    /// The reading changes again.
    Resumed,
}

impl<T: PartialEq> StaleDetector<T> {
    /// Creates a detector with this threshold; 0 turns it off.
    pub fn new(threshold: u32) -> StaleDetector<T> {
        StaleDetector { threshold, last: None, same: 0, interrupted: false }
    }

    /// Records the next reading, `None` if it is missing, and returns an event if the state changed.
    pub fn update(&mut self, reading: Option<T>) -> Option<StaleEvent> {
        let reading = reading?;
        if self.threshold == 0 {
            return None;
        }
        if self.last.as_ref() == Some(&reading) {
            self.same = self.same.saturating_add(1);
            let now_stale = self.same >= self.threshold && !self.interrupted;
            self.interrupted |= now_stale;
            return now_stale.then_some(StaleEvent::Interrupted);
        }
        self.last = Some(reading);
        self.same = 0;
        std::mem::take(&mut self.interrupted).then_some(StaleEvent::Resumed)
    }

    /// Returns whether the reading is stale now.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

impl<T: PartialEq> Default for StaleDetector<T> {
    /// Threshold 3.
    fn default() -> StaleDetector<T> {
        StaleDetector::new(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_reading_is_neither_a_standstill_nor_a_resumption() {
        let mut detector = StaleDetector::new(2);
        let told: Vec<_> = [Some(1), Some(1), None, None, Some(1), None, Some(1), None, Some(2)]
            .into_iter()
            .map(|reading| detector.update(reading))
            .collect();
        let (interrupted, resumed) = (Some(StaleEvent::Interrupted), Some(StaleEvent::Resumed));
        assert_eq!(told, [None, None, None, None, interrupted, None, None, None, resumed]);
    }

    #[test]
    fn each_standstill_is_told_once_and_the_count_starts_over() {
        let mut detector = StaleDetector::default();
        let told: Vec<_> =
            [5, 5, 5, 5, 5, 6, 6, 6, 6].into_iter().map(|at| detector.update(Some(at))).collect();
        assert_eq!(told.iter().filter(|event| **event == Some(StaleEvent::Interrupted)).count(), 2);
        assert_eq!(told[3], Some(StaleEvent::Interrupted));
        assert_eq!(told[5], Some(StaleEvent::Resumed));
        assert!(detector.is_interrupted());
    }

    #[test]
    fn a_threshold_of_zero_is_off() {
        let mut detector = StaleDetector::new(0);
        assert!((0..100).all(|_| detector.update(Some(1)).is_none()));
    }
}
