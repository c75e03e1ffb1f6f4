//! The decision by day numbers, without a store.

use std::time::{Duration, SystemTime};

const SECONDS_A_DAY: i64 = 86_400;

/// 2010-01-01T00:00:00Z in seconds since 1970.
const FIRST_DAY: i64 = 1_262_304_000;

/// Returns the number of days since 2010-01-01 UTC, negative before; 2026-10-28 is 6144.
pub fn day_number(now: SystemTime) -> i64 {
    let whole = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let seconds = match now.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => whole(since),
        // Rounds down, as the days do.
        Err(before) => -whole(before.duration()) - i64::from(before.duration().subsec_nanos() > 0),
    };
    seconds.saturating_sub(FIRST_DAY).div_euclid(SECONDS_A_DAY)
}

/// The decision for one day, given the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DayDecision {
    /// Whether to report, and store today.
    pub report: bool,
    /// The stored day; `None` if it was not a number.
    pub last_day: Option<i64>,
}

impl DayDecision {
    /// Decides to report if no number is stored, if `every_days` have passed, or if the stored day is in the future: it came
    /// from an incorrect clock, and waiting for it might take years.
    pub fn of(stored: Option<&str>, today: i64, every_days: u32) -> DayDecision {
        let last_day = stored.map(str::trim_ascii_end).and_then(number);
        let lately = last_day
            .and_then(|last| today.checked_sub(last))
            .is_some_and(|passed| (0..i64::from(every_days)).contains(&passed));
        DayDecision { report: !lately, last_day }
    }
}

/// Digits, with a minus before them for the days before 2010. Not `+7`, which `parse` would take.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix_seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(unix_seconds)
    }

    #[test]
    fn days_are_counted_from_2010_in_utc() {
        assert_eq!(day_number(at(1_262_304_000)), 0);
        assert_eq!(day_number(at(1_262_303_999)), -1);
        assert_eq!(day_number(at(1_793_145_600)), 6144); // 2026-10-28T00:00:00Z
        assert_eq!(day_number(at(1_793_145_599)), 6143);
        assert_eq!(day_number(SystemTime::UNIX_EPOCH - Duration::from_nanos(1)), -14_611);
        assert_eq!(day_number(SystemTime::UNIX_EPOCH - Duration::from_secs(2 * 86_400)), -14_612);
    }

    #[test]
    fn frequency_three_over_eight_days_reports_three_times() {
        let mut stored: Option<String> = None;
        let mut reported = Vec::new();
        for day in 6144..6152 {
            for _error in 0..2 {
                if DayDecision::of(stored.as_deref(), day, 3).report {
                    reported.push(day);
                    stored = Some(day.to_string());
                }
            }
        }
        assert_eq!(reported, [6144, 6147, 6150]);
    }

    #[test]
    fn a_day_in_the_future_heals_at_once() {
        assert_eq!(DayDecision::of(Some("130"), 100, 3), DayDecision { report: true, last_day: Some(130) });
        assert_eq!(DayDecision::of(Some("100"), 100, 3), DayDecision { report: false, last_day: Some(100) });
    }

    #[test]
    fn what_is_not_a_number_is_no_day() {
        for stored in ["", "abc", "+7", "-", "1.5", " 7", "7 8", "99999999999999999999999"] {
            let expected = DayDecision { report: true, last_day: None };
            assert_eq!(DayDecision::of(Some(stored), 7, 3), expected, "{stored:?}");
        }
        assert!(!DayDecision::of(Some("7\n"), 7, 3).report, "a newline that an editor added is no harm");
        assert!(!DayDecision::of(Some("-2"), -1, 3).report);
        assert!(DayDecision::of(Some("-9223372036854775808"), i64::MAX, u32::MAX).report, "no overflow");
    }
}
