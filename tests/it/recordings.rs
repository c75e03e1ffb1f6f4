//! Recorded runs, kept as data, in which fractions of a millisecond decide who comes first.

use afterboot::Report;

use crate::common::ms;
use crate::replay::{laws, order, recorded};

/// Each with what a replay gets wrong that does not know how late the loop came round, and how far that moves the end.
const RECORDINGS: [(&str, u64, &str); 5] = [
    // The look that opened the gate came 2 ms sooner than a modelled probe looks: an idle task begins after another's poll of
    // 55 ms instead of before it.
    ("a look comes sooner", 45, include_str!("recordings/look.json")),
    // A task's own timer and the lane's fell into one round; modelled, the lane looks 0.6 ms earlier and begins a start.
    ("a pulse ends as a wake comes", 45, include_str!("recordings/pulse.json")),
    // Two tasks are woken within 4 µs.
    ("two wakes in one round", 35, include_str!("recordings/wakes.json")),
    // A poll of 56 ms was no stall, because the probe had looked just before it: modelled, it holds the gate.
    ("nearly a stall", 95, include_str!("recordings/stall.json")),
    // The first quiet window was over 0.3 ms before a long poll began, and no look fell in between.
    ("a look comes too late", 15, include_str!("recordings/missed.json")),
];

/// I2, I5, I10: such a replay is one that could have been, by the same rules; its end is off by about a poll or two.
#[test]
fn recordings_that_hang_on_fractions_of_a_millisecond_are_replayed_by_the_same_rules_to_another_end() {
    for (what, off, json) in RECORDINGS {
        let report: Report = serde_json::from_str(json).unwrap();
        let (concurrency, pulse) = limits(&report.profile);
        let replay = recorded(&report);
        assert!(!replay.is_estimate, "{what}");
        let mut started = [order(&report), replay.start_order.clone()];
        started.iter_mut().for_each(|order| order.sort_unstable());
        assert_eq!(started[0], started[1], "{what}");
        laws(&report, &replay, concurrency, ms(pulse));
        let (was, is) = (report.last_finish.unwrap(), replay.last_finish.unwrap());
        assert!(was.abs_diff(is) < ms(off), "{what}: ended at {was:?}, replayed as {is:?}");
    }
}

/// Concurrency and pulse of a profile, "concurrency=3,delay=19ms,pulse=2ms".
fn limits(profile: &str) -> (usize, u64) {
    let number = |name| profile.split(',').find_map(|field| field.strip_prefix(name)).unwrap();
    (number("concurrency=").parse().unwrap(), number("pulse=").trim_end_matches("ms").parse().unwrap())
}
