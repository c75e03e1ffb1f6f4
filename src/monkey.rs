//! The monkey: one task is delayed on purpose, to learn whether it really must be early.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::table::Id;

/// A deliberate delay of one task, picked when [`report()`](crate::Governor::report) is called among the tasks
/// that have not started.
///
/// The victim waits from the moment at which it would have started and holds no slot meanwhile. A
/// [`demand`](crate::TaskHandle::demand) ends the delay; the report says so: it is the strongest sign that the
/// task was needed early.
///
/// **Only for tasks that may be late without harming data.** The usual delay is 60 s, as in the web mail
/// client whose governor has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monkey {
    pub(crate) choice: Choice,
    pub(crate) delay: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Random,
    Task(Cow<'static, str>),
    Index(usize),
}

impl Monkey {
    pub(crate) const DEFAULT_DELAY: Duration = Duration::from_secs(60);

    /// Delays a task drawn at random. The seed stands in the report; see
    /// [`Builder::seed`](crate::Builder::seed).
    pub fn random(delay: Duration) -> Monkey {
        Monkey { choice: Choice::Random, delay }
    }

    /// Delays the first task of this name. If there is none, or it has started, nothing is delayed and the
    /// report says so.
    pub fn task(name: impl Into<Cow<'static, str>>, delay: Duration) -> Monkey {
        Monkey { choice: Choice::Task(name.into()), delay }
    }

    /// Delays the task that was declared `index`-th, counted from 0.
    pub fn index(index: usize, delay: Duration) -> Monkey {
        Monkey { choice: Choice::Index(index), delay }
    }
}

impl fmt::Display for Monkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.choice {
            Choice::Random => f.write_str("monkey=random")?,
            Choice::Index(index) => write!(f, "monkey=#{index}")?,
            Choice::Task(name) => {
                f.write_str("monkey=\"")?;
                for c in name.chars() {
                    if matches!(c, '"' | '\\') {
                        f.write_str("\\")?;
                    }
                    write!(f, "{c}")?;
                }
                f.write_str("\"")?;
            }
        }
        write!(f, ",monkey_delay={:?}", self.delay)
    }
}

/// What became of the monkey's delay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Delivery {
    /// A random monkey found nobody: each task had started or ended, was demanded, or was declared `never_delay`.
    NobodyEligible,
    /// The task that was asked for had started.
    AlreadyStarted,
    /// The task that was asked for is declared with [`Task::never_delay`](crate::Task::never_delay).
    Excluded,
    /// No task of that name or number was declared.
    Unknown,
    /// The victim is picked; its turn has not come.
    Pending,
    /// The delay has begun and not ended.
    Delaying,
    /// The victim waited the whole delay.
    Delivered,
    /// The victim was demanded before the delay was over: somebody needed it.
    Demanded,
    /// The victim ended before its turn came: it was cancelled, or a predecessor did not complete.
    NotDelivered,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Delivery::NobodyEligible => "not delivered: no task was eligible",
            Delivery::AlreadyStarted => "not delivered: had already started",
            Delivery::Excluded => "not delivered: declared never_delay",
            Delivery::Unknown => "not delivered: no such task",
            Delivery::Pending => "its turn has not come",
            Delivery::Delaying => "still delayed",
            Delivery::Delivered => "delayed to the end",
            Delivery::Demanded => "demanded before the delay was over",
            Delivery::NotDelivered => "not delivered: ended before its turn",
        })
    }
}

/// The monkey's state in the core.
#[derive(Debug)]
pub(crate) struct Mischief {
    pub(crate) monkey: Monkey,
    pub(crate) seed: u64,
    pub(crate) victim: Option<Id>,
    pub(crate) delivery: Delivery,
}

/// A task the monkey may look at, in order of declaration.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) id: Id,
    pub(crate) number: u64,
    pub(crate) name: &'a str,
    pub(crate) started: bool,
    pub(crate) ended: bool,
    pub(crate) demanded: bool,
    pub(crate) excluded: bool,
}

impl Candidate<'_> {
    /// Whether a random monkey may take it.
    fn is_free(&self) -> bool {
        !(self.started || self.ended || self.demanded || self.excluded)
    }
}

impl Mischief {
    pub(crate) fn new(monkey: Monkey, seed: u64) -> Mischief {
        Mischief { monkey, seed, victim: None, delivery: Delivery::Pending }
    }

    /// Picks the victim. The same seed over the same candidates gives the same victim.
    pub(crate) fn pick(&mut self, candidates: &[Candidate<'_>]) {
        let wanted = match &self.monkey.choice {
            Choice::Random => {
                let free: Vec<&Candidate<'_>> = candidates.iter().filter(|c| c.is_free()).collect();
                if free.is_empty() {
                    self.delivery = Delivery::NobodyEligible;
                    return;
                }
                Some(free[StdRng::seed_from_u64(self.seed).random_range(0..free.len())])
            }
            Choice::Task(name) => candidates.iter().find(|c| c.name == name.as_ref()),
            Choice::Index(index) => candidates.iter().find(|c| usize::try_from(c.number) == Ok(*index)),
        };
        match wanted {
            None => self.delivery = Delivery::Unknown,
            Some(candidate) if candidate.excluded => {
                self.victim = Some(candidate.id);
                self.delivery = Delivery::Excluded;
            }
            Some(candidate) if candidate.started => {
                self.victim = Some(candidate.id);
                self.delivery = Delivery::AlreadyStarted;
            }
            Some(candidate) => {
                self.victim = Some(candidate.id);
                if candidate.ended {
                    self.delivery = Delivery::NotDelivered;
                } else if candidate.demanded {
                    self.delivery = Delivery::Demanded;
                }
            }
        }
    }

    /// Whether this task's turn begins the delay.
    pub(crate) fn delays(&self, id: Id) -> bool {
        self.victim == Some(id) && self.delivery == Delivery::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(monkey: Monkey, seed: u64, started: &[bool]) -> (Option<u32>, Delivery) {
        let names: Vec<String> = (0..started.len()).map(|n| format!("task {n}")).collect();
        let candidates: Vec<Candidate<'_>> = (0..)
            .zip(names.iter().zip(started))
            .map(|(n, (name, &started))| Candidate {
                id: Id::new(n, 0),
                number: u64::from(n),
                name,
                started,
                ended: false,
                demanded: false,
                excluded: false,
            })
            .collect();
        let mut mischief = Mischief::new(monkey, seed);
        mischief.pick(&candidates);
        (mischief.victim.map(|id| id.index), mischief.delivery)
    }

    #[test]
    fn the_same_seed_picks_the_same_victim_and_seeds_reach_all() {
        let random = || Monkey::random(Duration::from_secs(1));
        let started = [true, false, false, false];
        let mut seen = [false; 4];
        for seed in 0..64 {
            let (victim, delivery) = pick(random(), seed, &started);
            assert_eq!(pick(random(), seed, &started), (victim, delivery.clone()), "seed {seed}");
            assert_eq!(delivery, Delivery::Pending, "seed {seed}");
            seen[victim.unwrap() as usize] = true;
        }
        assert_eq!(seen, [false, true, true, true]);
    }

    #[test]
    fn a_name_or_number_that_is_not_there_is_said() {
        let delay = Duration::from_secs(1);
        assert_eq!(pick(Monkey::task("task 9", delay), 0, &[false]), (None, Delivery::Unknown));
        assert_eq!(pick(Monkey::index(1, delay), 0, &[false]), (None, Delivery::Unknown));
        assert_eq!(pick(Monkey::index(0, delay), 0, &[false]), (Some(0), Delivery::Pending));
        assert_eq!(pick(Monkey::task("task 0", delay), 0, &[true]), (Some(0), Delivery::AlreadyStarted));
        assert_eq!(pick(Monkey::random(delay), 0, &[true]), (None, Delivery::NobodyEligible));
        assert_eq!(pick(Monkey::random(delay), 0, &[]), (None, Delivery::NobodyEligible));
    }
}
