//! The report as JSON.

use super::Report;

impl Report {
    /// Returns the report as one pretty-printed JSON object. `version` is the version of its format; durations have the
    /// form `{"secs", "nanos"}`.
    ///
    /// # Panics
    /// Never: all keys are strings and all numbers are finite.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only string keys and finite numbers")
    }
}
