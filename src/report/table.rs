//! The report as a table of at most 100 columns.

use std::fmt::{self, Write};
use std::time::Duration;

use super::{Report, TaskReport, ThreadMissed};
use crate::base::text::{Padded, Plain};

/// The width of the whole.
const WIDTH: usize = 100;
const NAME: usize = 26;
const OUTCOME: usize = 24;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Plain(&self.headline(), WIDTH))?;
        line(f, "outcomes", &self.counts())?;
        line(f, "gate", &self.gate.to_string())?;
        line(f, "profile", &self.profile)?;
        if let Some(why) = &self.interactive_failed {
            line(f, "interactive_when", &format!("{why}; the quiet window was used"))?;
        }
        if let Some(monkey) = &self.monkey {
            let victim = monkey.victim.as_deref().unwrap_or("no task");
            let text = format!("{victim} by {}; {} (seed {})", fit(monkey.delay), monkey.delivery, self.seed);
            line(f, "monkey", &text)?;
        }
        write!(
            f,
            "\n{:>5} {:<NAME$} {:<6} {:>8} {:>8} {:>6} {:>8}  outcome",
            "#", "task", "queue", "waited", "ran", "polls", "longest"
        )?;
        for task in &self.tasks {
            write!(f, "\n{}", Row(task))?;
        }
        if let Some(worst) = self.holds.iter().max_by_key(|hold| hold.until.saturating_sub(hold.since)) {
            let count = self.holds.len() as u64 + self.holds_forgotten;
            let lasted = worst.until.saturating_sub(worst.since);
            line(f, "holds", &format!("{count} idle starts; longest {} by: {}", fit(lasted), worst.why))?;
        }
        if let Some(first) = self.starved.first() {
            line(f, "starved", &format!("{} normal tasks; first {}", self.starved.len(), first.words()))?;
        }
        if self.late > 0 {
            line(f, "late", &format!("{} declared after report(), not listed", self.late))?;
        }
        if self.forgotten > 0 {
            line(f, "forgotten", &format!("{} ended, not listed", self.forgotten))?;
        }
        for ThreadMissed { wanted, first, times } in &self.threads_missed {
            line(f, "no thread", &format!("{wanted}, {times} times, first at {}", fit(*first)))?;
        }
        if let Some(worst) = self.stops.iter().max_by_key(|stop| stop.length) {
            let count = self.stops.len();
            let text = format!(
                "the whole process, {count} times; longest {} at {}",
                fit(worst.length),
                fit(worst.start)
            );
            line(f, "stopped", &text)?;
        }
        if let Some(worst) = self.long_tasks.iter().max_by_key(|long| long.length) {
            let count = self.long_tasks.len() as u64 + self.long_tasks_forgotten;
            let text = format!(
                "{count}, {} over 50 ms in total; longest {} at {} by {}",
                fit(self.blocking_time),
                fit(worst.length),
                fit(worst.start),
                worst.culprit()
            );
            line(f, "long tasks", &text)?;
        }
        Ok(())
    }
}

/// A line of its own, `label: text`, cut to the width.
fn line(f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
    write!(f, "\n{label}: {}", Plain(text, WIDTH - 2 - label.len()))
}

impl Report {
    fn headline(&self) -> String {
        let mut text = format!("{}: {} tasks", Plain(&self.governor, 40), compact(self.tasks.len() as u64));
        if let (Some(start), Some(finish)) = (self.last_start, self.last_finish) {
            write!(text, "; last start {}, last end {}", fit(start), fit(finish))
                .expect("writing to a string does not fail");
        }
        text
    }

    pub(super) fn counts(&self) -> String {
        let mut counts: Vec<(&'static str, u64)> = Vec::new();
        for task in &self.tasks {
            let word = match &task.outcome {
                Some(outcome) => outcome.word(),
                None if task.started.is_some() => "running",
                None => "waiting",
            };
            match counts.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => counts.push((word, 1)),
            }
        }
        let counts: Vec<String> =
            counts.iter().map(|(word, count)| format!("{} {word}", compact(*count))).collect();
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
    }
}

/// One line a task.
struct Row<'a>(&'a TaskReport);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.0;
        let queue = task.queue.word();
        let time = |time: Option<Duration>| time.map_or("-".to_owned(), fit);
        let longest = if task.polls == 0 { "-".to_owned() } else { fit(task.longest_poll) };
        let mut outcome = match &task.outcome {
            Some(outcome) => outcome.to_string(),
            None if task.started.is_some() => "running".to_owned(),
            None => "waiting".to_owned(),
        };
        if task.demanded {
            outcome.push_str(", demanded");
        }
        if task.promoted {
            outcome.push_str(", promoted");
        }
        if task.demanded_by_governor {
            outcome.push_str(", max_hold");
        }
        if task.stuck {
            outcome.push_str(", was stuck");
        }
        write!(
            f,
            "{:>5} {} {queue:<6} {:>8} {:>8} {:>6} {longest:>8}  {}",
            compact(task.number),
            Padded(&task.name, NAME),
            time(task.waited()),
            time(task.ran()),
            compact(u64::from(task.polls)),
            Plain(&outcome, OUTCOME),
        )
    }
}

/// A number in at most five characters.
fn compact(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..10_000_000 => format!("{}k", number / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", number / 1_000_000),
        10_000_000_000..10_000_000_000_000 => format!("{}G", number / 1_000_000_000),
        _ => "many".to_owned(),
    }
}

/// A duration in the unit that fits, in at most eight characters.
pub(crate) fn fit(time: Duration) -> String {
    let micros = time.as_micros();
    let seconds = time.as_secs_f64();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..99_950 => format!("{:.1} ms", seconds * 1e3),
        99_950..999_500 => format!("{:.0} ms", seconds * 1e3),
        999_500..99_950_000 => format!("{seconds:.2} s"),
        99_950_000..6_000_000_000 => format!("{seconds:.0} s"),
        6_000_000_000..360_000_000_000 => format!("{:.0} min", seconds / 60.0),
        360_000_000_000..8_640_000_000_000 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_the_unit_that_fits_and_never_wider_than_its_column() {
        let shown: Vec<String> =
            [0, 999, 1_000, 99_949, 99_950, 999_499, 999_500, 99_949_999, 99_950_000, 6_000_000_000]
                .map(|micros| fit(Duration::from_micros(micros)))
                .into();
        assert_eq!(
            shown,
            [
                "0 µs", "999 µs", "1.0 ms", "99.9 ms", "100 ms", "999 ms", "1.00 s", "99.95 s", "100 s",
                "100 min"
            ]
        );
        for power in 0..63 {
            let text = fit(Duration::from_nanos(1 << power));
            assert!(text.chars().count() <= 8, "{text}");
        }
    }

    #[test]
    fn a_number_is_never_wider_than_its_column() {
        for power in 0..64 {
            assert!(compact(1 << power).len() <= 5, "{}", compact(1 << power));
        }
        assert_eq!([99_999, 100_000, 9_999_999, 10_000_000].map(compact), ["99999", "100k", "9999k", "10M"]);
    }
}
