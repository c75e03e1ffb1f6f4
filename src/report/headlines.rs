//! The summary of a run in four sentences.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use super::table::fit;
use super::{Report, TaskReport};
use crate::base::text::Plain;
use crate::model::gate_state::{GateState, OpenedBy, WaitReason};
use crate::model::outcome::Outcome;

/// How many names a sentence lists before it counts the rest.
const LISTED: usize = 3;
/// How much of a name a sentence shows, in columns; of a reason twice that.
const SHOWN: usize = 40;

/// A sentence in pieces: a renderer can set names, which are untrusted text, apart from its own words.
#[derive(Debug, Default)]
pub(super) struct Sentence(pub(super) Vec<Piece>);

#[derive(Debug)]
pub(super) enum Piece {
    Words(Cow<'static, str>),
    /// Of a task, or of what a long task is attributed to: on one line and cut.
    Name(String),
    /// Another text from outside, on one line and cut.
    Foreign(String),
}

impl Report {
    /// Returns a summary in four sentences: what ran, and what was skipped or held; when and why the gate opened; the
    /// longest long task and its attribution; which chain of tasks determined the end (see
    /// [`critical_chain`](Report::critical_chain)).
    ///
    /// Names in them are shortened, and control characters and direction marks are removed.
    pub fn headlines(&self) -> [String; 4] {
        self.sentences().map(|sentence| sentence.to_string())
    }

    pub(super) fn sentences(&self) -> [Sentence; 4] {
        [self.what_ran(), self.how_the_gate_opened(), self.what_froze_longest(), self.what_set_the_end()]
    }

    fn what_ran(&self) -> Sentence {
        let mut says = Sentence::default();
        match self.tasks.len() {
            0 => return says.words("No task was declared."),
            1 => says = says.words("1 task: "),
            n => says = says.words(format!("{n} tasks: ")),
        }
        says = says.words(format!("{}.", self.counts()));
        let skipped = self.tasks.iter().filter_map(|task| match &task.outcome {
            Some(Outcome::Skipped(why)) => Some((task, why)),
            _ => None,
        });
        let skipped: Vec<(&TaskReport, String)> =
            skipped.map(|(task, why)| (task, why.to_string())).collect();
        if !skipped.is_empty() {
            says = says.words(" Skipped: ");
            for (place, (task, why)) in skipped.iter().take(LISTED).enumerate() {
                says = says.words(if place > 0 { ", " } else { "" }).name(&task.name);
                says = says.words(" (").foreign(why).words(")");
            }
            says = says.and_more(skipped.len());
        }
        let held = self.holds.len() as u64 + self.holds_forgotten;
        if let Some(worst) = self.holds.iter().max_by_key(|hold| hold.until.saturating_sub(hold.since)) {
            let lasted = fit(worst.until.saturating_sub(worst.since));
            says = says.words(match held {
                1 => " 1 idle start was held: ".to_owned(),
                _ => format!(" {held} idle starts were held, the longest: "),
            });
            says = says.name(&worst.task).words(format!(" for {lasted} by ")).reason(&worst.why).words(".");
        }
        says
    }

    fn how_the_gate_opened(&self) -> Sentence {
        let mut says = Sentence::default();
        match &self.gate {
            GateState::Open { by, at, shut_by } => {
                let by = match by {
                    OpenedBy::Quiet => "the application was quiet",
                    OpenedBy::Timeout => "the timeout passed",
                    OpenedBy::Manual => "open_gate() was called",
                    OpenedBy::Interactive => "interactive_when resolved",
                };
                says = says.words(format!("The gate opened at {}: {by}; last reason to wait: ", fit(*at)));
                says = says.reason(shut_by).words(match shut_by {
                    // They may have been over a moment later.
                    WaitReason::InFlight { .. } => ", at that moment.",
                    _ => ".",
                });
            }
            GateState::Shut { why: WaitReason::NoIdleTask, .. } => {
                says = says.words("The gate stayed shut: no idle task waits.");
            }
            GateState::Shut { why, until } => {
                says = says.words("The gate is shut: ").reason(why);
                says = says.words(match until {
                    Some(until) => format!("; it opens at {} at the earliest.", fit(*until)),
                    None => ".".to_owned(),
                });
            }
        }
        if let Some(why) = &self.interactive_failed {
            says = says.words(" interactive_when failed (").foreign(why);
            says = says.words("), so the quiet window was used.");
        }
        says
    }

    fn what_froze_longest(&self) -> Sentence {
        let says = self.longest_freeze();
        if self.stops.is_empty() {
            return says;
        }
        let stopped: Duration =
            self.stops.iter().map(|stop| stop.length).fold(Duration::ZERO, Duration::saturating_add);
        says.words(format!(" The whole process was stopped for {}.", fit(stopped)))
    }

    fn longest_freeze(&self) -> Sentence {
        let says = Sentence::default();
        let Some(worst) = self.long_tasks.iter().max_by_key(|long| long.length) else {
            return says.words(match self.cost.looks {
                0 => "Long tasks were not observed: the probe runs only while idle tasks wait.",
                _ => "No long task was observed: no worker was blocked for 50 ms while the probe ran.",
            });
        };
        let count = self.long_tasks.len() as u64 + self.long_tasks_forgotten;
        let says = says.words(format!(
            "A worker was blocked for {} at {}, by ",
            fit(worst.length),
            fit(worst.start)
        ));
        let says = match &worst.who {
            Some(name) => says.name(name),
            None => says.words("an unknown task"),
        };
        let says = match worst.worker {
            Some(worker) => says.words(format!(" on worker {worker}")),
            None => says,
        };
        match count {
            1 => says.words("."),
            _ => says.words(format!(
                "; in total {count} long tasks exceeded 50 ms by {}.",
                fit(self.blocking_time)
            )),
        }
    }

    fn what_set_the_end(&self) -> Sentence {
        let says = Sentence::default();
        let chain = self.critical_chain();
        let tasks: Vec<&TaskReport> = chain.iter().filter_map(|number| self.numbered(*number)).collect();
        let (Some(first), Some(last)) = (tasks.first(), tasks.last()) else {
            return says.words("No task has ended yet.");
        };
        let ran: Duration =
            tasks.iter().filter_map(|task| task.ran()).fold(Duration::ZERO, Duration::saturating_add);
        let end = fit(last.finished.unwrap_or_default());
        let begun = fit(first.started.unwrap_or_default());
        if tasks.len() == 1 {
            let says = says.words(format!("The end, at {end}, was determined by ")).name(&last.name);
            return says.words(format!(" alone: it started at {begun} and ran {}.", fit(ran)));
        }
        let mut says =
            says.words(format!("The end, at {end}, was determined by a chain of {}: ", tasks.len()));
        for (place, task) in tasks.iter().enumerate() {
            let left_out = tasks.len().saturating_sub(2 * LISTED);
            match place {
                LISTED if left_out > 0 => says = says.words(format!(" → {left_out} more")),
                _ if (LISTED..LISTED + left_out).contains(&place) => {}
                0 => says = says.name(&task.name),
                _ => says = says.words(" → ").name(&task.name),
            }
        }
        says.words(format!("; from {begun} on they ran {}.", fit(ran)))
    }

    fn numbered(&self, number: u64) -> Option<&TaskReport> {
        let place = self.tasks.binary_search_by_key(&number, |task| task.number).ok();
        let found = place.and_then(|place| self.tasks.get(place));
        found.or_else(|| self.listed().find(|task| task.number == number))
    }
}

impl Sentence {
    fn words(mut self, words: impl Into<Cow<'static, str>>) -> Sentence {
        self.0.push(Piece::Words(words.into()));
        self
    }

    fn name(mut self, name: &str) -> Sentence {
        self.0.push(Piece::Name(Plain(name, SHOWN).to_string()));
        self
    }

    fn foreign(mut self, text: &str) -> Sentence {
        self.0.push(Piece::Foreign(Plain(text, 2 * SHOWN).to_string()));
        self
    }

    /// Our own reasons are words; those with a name in them are foreign as a whole.
    fn reason(self, why: &WaitReason) -> Sentence {
        match why {
            WaitReason::LongTask { .. } | WaitReason::InFlight { .. } => self.foreign(&why.to_string()),
            _ => self.words(why.to_string()),
        }
    }

    fn and_more(self, count: usize) -> Sentence {
        match count.saturating_sub(LISTED) {
            0 => self.words("."),
            more => self.words(format!(" and {more} more.")),
        }
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Words(words) => f.write_str(words),
            Piece::Name(text) | Piece::Foreign(text) => f.write_str(text),
        })
    }
}
