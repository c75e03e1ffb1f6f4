//! Recorded runs, kept as data, in which fractions of a millisecond decide who comes first.

use afterboot::Report;

use crate::replay::compare;

/// Each with what its replay once got wrong. Recorded when a woken normal task and an idle start still alternated; where
/// that decided something else, a wake or a poll of some microseconds was moved in the data.
const RECORDINGS: [(&str, &str); 5] = [
    // The look that opened the gate came 2 ms sooner than a modelled probe looks, so an idle task started before another's
    // poll of 55 ms: the end was replayed 36 ms late.
    ("a look comes sooner", include_str!("recordings/look.json")),
    // A task's own timer and the lane's fell into one round; modelled, the lane looked 0.6 ms earlier and began a start.
    ("a pulse ends as a wake comes", include_str!("recordings/pulse.json")),
    // Two tasks are woken within 4 µs.
    ("two wakes in one round", include_str!("recordings/wakes.json")),
    // A poll of 56 ms was no stall, because the probe had looked just before it.
    ("nearly a stall", include_str!("recordings/stall.json")),
    // The first quiet window was over 0.3 ms before a long poll began, and no look fell in between.
    ("a look comes too late", include_str!("recordings/missed.json")),
];

/// I3, I5, I12: the starts, the pulse and the gate of the recording come out of the same rules again.
#[test]
fn recordings_that_hang_on_fractions_of_a_millisecond_are_replayed_as_they_were() {
    for (what, json) in RECORDINGS {
        let report: Report = serde_json::from_str(json).unwrap();
        let (wrong, off) = compare(&report);
        assert_eq!(wrong, None, "{what}");
        assert!(off.abs() < 1.0, "{what}: {off} ms off");
    }
}
