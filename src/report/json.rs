//! The report as JSON.

use super::Report;

impl Report {
    /// The report as one JSON object on several lines. `version` says which form it has; durations are
    /// `{"secs", "nanos"}`.
    ///
    /// # Panics
    /// Never: all keys are strings, and no number is one that JSON lacks.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only string keys and finite numbers")
    }
}
