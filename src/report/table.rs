//! The report as a table of at most 100 columns.

use std::fmt::{self, Write};
use std::time::Duration;

use super::{Report, TaskReport};
use crate::queue::Queue;

const NAME: usize = 28;
const OUTCOME: usize = 23;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", Plain(&self.governor, 40), self.headline())?;
        writeln!(f, "gate: {}", Plain(&self.gate.to_string(), 94))?;
        writeln!(f, "profile: {}", Plain(&self.profile, 91))?;
        if let Some(why) = &self.interactive_failed {
            writeln!(f, "interactive_when: {}; the quiet window took over", Plain(why, 50))?;
        }
        if let Some(monkey) = &self.monkey {
            let victim = monkey.victim.as_deref().unwrap_or("nobody");
            let text = format!("{victim} by {}; {} (seed {})", fit(monkey.delay), monkey.delivery, self.seed);
            writeln!(f, "monkey: {}", Plain(&text, 92))?;
        }
        writeln!(
            f,
            "{:>4} {:<NAME$} {:<6} {:>8} {:>8} {:>6} {:>8}  outcome",
            "#", "task", "queue", "waited", "ran", "polls", "longest"
        )?;
        for task in &self.tasks {
            writeln!(f, "{}", Row(task))?;
        }
        if self.late > 0 {
            writeln!(f, "{} declared after report() and not shown", self.late)?;
        }
        if self.forgotten > 0 {
            writeln!(f, "{} ended long ago and are not shown", self.forgotten)?;
        }
        if !self.long_tasks.is_empty() {
            let worst = self.long_tasks.iter().max_by_key(|long| long.length);
            let worst = worst.map_or(String::new(), |long| {
                let who = long.who.as_deref().map_or_else(
                    || long.worker.map_or("a worker".to_owned(), |worker| format!("worker {worker}")),
                    ToOwned::to_owned,
                );
                format!("; longest {} at {} by {who}", fit(long.length), fit(long.start))
            });
            let count = self.long_tasks.len() as u64 + self.long_tasks_forgotten;
            let text = format!("{count} seen, {} over 50 ms in all{worst}", fit(self.blocking_time));
            writeln!(f, "long tasks: {}", Plain(&text, 88))?;
        }
        Ok(())
    }
}

impl Report {
    fn headline(&self) -> String {
        let mut counts: Vec<(&'static str, usize)> = Vec::new();
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
        let mut text = format!("{} tasks", self.tasks.len());
        for (word, count) in counts {
            write!(text, ", {count} {word}").expect("writing to a string does not fail");
        }
        if let (Some(start), Some(finish)) = (self.last_start, self.last_finish) {
            write!(text, "; last start {}, last end {}", fit(start), fit(finish))
                .expect("writing to a string does not fail");
        }
        text
    }
}

/// One line a task.
struct Row<'a>(&'a TaskReport);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.0;
        let queue = match task.queue {
            Queue::Normal => "normal",
            Queue::Idle => "idle",
        };
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
        if task.held_too_long {
            outcome.push_str(", held too long");
        }
        write!(
            f,
            "{:>4} {} {queue:<6} {:>8} {:>8} {:>6} {longest:>8}  {}",
            task.number,
            Padded(&task.name, NAME),
            time(task.waited()),
            time(task.ran()),
            task.polls,
            Plain(&outcome, OUTCOME),
        )
    }
}

/// Untrusted text on one line: control characters and marks that turn the direction are shown as `?`, and what
/// is longer than the limit ends in an ellipsis.
struct Plain<'a>(&'a str, usize);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plain(text, limit) = *self;
        let cut = text.chars().nth(limit).is_some();
        let keep = if cut { limit - 1 } else { limit };
        for c in text.chars().take(keep) {
            f.write_char(if hostile(c) { '?' } else { c })?;
        }
        if cut { f.write_char('…') } else { Ok(()) }
    }
}

struct Padded<'a>(&'a str, usize);

impl fmt::Display for Padded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Padded(text, width) = *self;
        let used = text.chars().count().min(width);
        write!(f, "{}{:rest$}", Plain(text, width), "", rest = width - used)
    }
}

fn hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
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
    fn hostile_names_cannot_move_the_cursor_or_turn_the_line() {
        assert_eq!(Plain("a\x1b[2Jb\u{202e}c\nd", 40).to_string(), "a?[2Jb?c?d");
        assert_eq!(Plain("äöüß", 3).to_string(), "äö…");
        assert_eq!(Padded("äö", 4).to_string(), "äö  ");
    }
}
