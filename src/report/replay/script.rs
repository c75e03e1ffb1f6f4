//! From a report to what is played: each task's own work and waiting, and what the application did when.

use std::collections::HashMap;
use std::time::Duration;

use crate::core::delay::{Candidate, Mischief};
use crate::model::gate_rules::GateRules;
use crate::model::gate_state::{GateState, OpenedBy, WaitReason};
use crate::model::id::Id;
use crate::model::monkey::{Delivery, Monkey};
use crate::model::name::Name;
use crate::model::outcome::{Outcome, SkipReason};
use crate::model::profile::Profile;
use crate::model::queue::Queue;
use crate::report::{Report, TaskReport};

use super::late::Late;
use super::steps::{Polls, Step};

/// All that is played, the profile apart.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) tasks: Vec<Part>,
    pub(super) rules: GateRules,
    pub(super) happenings: Vec<(Duration, What)>,
    /// What the lane itself spends on a turn.
    pub(super) turn: Duration,
    pub(super) late: Late,
    /// The victim, and its delay.
    pub(super) monkey: Option<(usize, Monkey)>,
}

/// One task.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) queue: Queue,
    pub(super) blocking: bool,
    pub(super) condition: bool,
    pub(super) invalid: Option<Box<str>>,
    pub(super) no_later_than: Option<Duration>,
    /// Each with whether its mere end will do.
    pub(super) after: Vec<(usize, bool)>,
    pub(super) outcome: Outcome,
    pub(super) steps: Vec<Step>,
    /// How long the turn took that its declaration asked for, where that is known.
    pub(super) turn: Option<Duration>,
}

/// Something that happens at a moment of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Declare(usize),
    Demand(usize),
    Cancel(usize),
    /// The task is woken.
    Wake(usize),
    Ready,
    OpenGate,
    /// The application is busy with requests, or is so no more.
    Crowded,
    Deserted,
    /// The application keeps the thread, or a worker of this number, for so long.
    Stall(Duration, Option<usize>),
}

/// The tasks that are played, in order of declaration.
pub(super) fn tasks(report: &Report) -> Vec<&TaskReport> {
    let late = report.late_tasks.iter().filter(|task| task.outcome.is_some());
    let mut tasks: Vec<&TaskReport> = report.tasks.iter().chain(late).collect();
    tasks.sort_by_key(|task| task.number);
    tasks
}

impl What {
    pub(super) fn is_by_the_application(self) -> bool {
        match self {
            What::Declare(_) | What::Demand(_) | What::Cancel(_) | What::Ready | What::OpenGate => true,
            What::Wake(_) | What::Crowded | What::Deserted | What::Stall(..) => false,
        }
    }
}

impl TaskReport {
    /// When its first poll began, whatever came of it.
    pub(super) fn begun(&self) -> Option<Duration> {
        self.segments.first().map(|segment| segment.start).or(self.started)
    }
}

impl Script {
    pub(super) fn of(report: &Report, profile: &Profile) -> Script {
        let tasks = tasks(report);
        let places: HashMap<u64, usize> =
            tasks.iter().enumerate().map(|(place, task)| (task.number, place)).collect();
        let polls = Polls::of(&tasks);
        let late = Late::of(report, &tasks, &polls, profile);
        let turn = polls.turn(report, late.least());
        let mut demands = polls.demands(&tasks, &places, turn);
        let mut happenings = Vec::new();
        let mut last = Duration::ZERO;
        let mut parts: Vec<Part> = tasks
            .iter()
            .enumerate()
            .map(|(place, task)| {
                let steps = polls.steps(&tasks, place, &late, &mut demands);
                Part { turn: late.declared(task.number), ..part(task, steps, &places) }
            })
            .collect();
        for (place, task) in tasks.iter().enumerate() {
            let declared_in = task.declared_in.and_then(|number| places.get(&number)).copied();
            let inside = declared_in.and_then(|declarer| {
                let step = polls.step_at(tasks[declarer], task.declared)?;
                Some((declarer, step))
            });
            match inside {
                Some((declarer, (step, since))) => {
                    parts[declarer].steps[step].declares.push((since, place));
                }
                None => {
                    // In the order in which they were declared.
                    last = last.max(polls.intended(task.declared));
                    happenings.push((last, What::Declare(place)));
                }
            }
            if let Some(Outcome::Cancelled(_)) = task.outcome
                && task.begun().is_none()
            {
                happenings.extend(task.finished.map(|at| (polls.intended(at), What::Cancel(place))));
            }
            happenings.extend(demands[place].map(|at| (at, What::Demand(place))));
        }
        application(report, &mut happenings);
        let rules = gate(report, &mut happenings);
        let monkey = victim(report, &tasks, profile);
        Script { tasks: parts, rules, happenings, turn, late, monkey }
    }
}

fn part(task: &TaskReport, steps: Vec<Step>, places: &HashMap<u64, usize>) -> Part {
    let after: Vec<(usize, bool)> = task
        .after
        .iter()
        .filter_map(|number| {
            let strict = |numbers: &[u64]| numbers.iter().filter(|other| *other == number).count();
            Some((*places.get(number)?, strict(&task.after) == strict(&task.after_settled)))
        })
        .collect();
    let condition = match &task.outcome {
        // Asked in its own tick, it is part of what is played.
        Some(Outcome::Skipped(SkipReason::Condition)) => task.begun().is_some(),
        // The one that did not complete is not in the report any more.
        Some(Outcome::Skipped(SkipReason::Predecessor(_))) => !after.is_empty(),
        _ => true,
    };
    let invalid = match &task.outcome {
        Some(Outcome::Invalid(why)) => Some(why.as_ref().into()),
        _ => None,
    };
    Part {
        name: task.name.clone(),
        queue: task.queue,
        blocking: task.blocking,
        condition,
        invalid,
        no_later_than: task.no_later_than,
        after,
        outcome: task.outcome.clone().unwrap_or(Outcome::Completed),
        steps,
        turn: None,
    }
}

/// What the application did that kept idle starts or the thread, as far as it was seen.
fn application(report: &Report, happenings: &mut Vec<(Duration, What)>) {
    for long in &report.long_tasks {
        let governed = long.who.as_ref().is_some_and(|who| report.tasks.iter().any(|task| task.name == *who));
        if !governed {
            happenings.push((long.start, What::Stall(long.length, long.worker)));
        }
    }
    for hold in report.holds.iter().filter(|hold| matches!(hold.why, WaitReason::InFlight { .. })) {
        // The hold went on for as long as the application had to be quiet again, or was cut off.
        let lasted = hold.until.saturating_sub(hold.since);
        let rest = if lasted >= report.gate_rules.max_hold {
            Duration::ZERO
        } else {
            report.gate_rules.resume_quiet
        };
        happenings.push((hold.since, What::Crowded));
        happenings.push((hold.until.saturating_sub(rest).max(hold.since), What::Deserted));
    }
}

/// By what the gate opens: what the application or its users did is taken from the recording, time and the quiet
/// window are played.
fn gate(report: &Report, happenings: &mut Vec<(Duration, What)>) -> GateRules {
    let mut rules = report.gate_rules.clone();
    rules.interactive = false;
    // Requests are known only where they held a start.
    rules.max_in_flight = 0;
    let no_window = GateRules { await_ready: true, ..rules.clone() };
    match &report.gate {
        GateState::Open { by: OpenedBy::Quiet, shut_by, at } => {
            if matches!(shut_by, WaitReason::InFlight { .. }) || report.interactive_failed.is_some() {
                happenings.push((*at, What::OpenGate));
                return no_window;
            }
            happenings.extend(report.ready.map(|at| (at, What::Ready)));
            rules
        }
        GateState::Open { by: OpenedBy::Manual | OpenedBy::Interactive, at, .. } => {
            happenings.push((*at, What::OpenGate));
            no_window
        }
        GateState::Open { by: OpenedBy::Timeout, .. } | GateState::Shut { .. } => no_window,
    }
}

/// The recorded victim where the profile asks for the recorded monkey; else whom that monkey picks among all.
fn victim(report: &Report, tasks: &[&TaskReport], profile: &Profile) -> Option<(usize, Monkey)> {
    let monkey = profile.monkey.clone()?;
    let recorded = report.monkey.as_ref().filter(|recorded| recorded.asked == monkey.to_string());
    let place = match recorded {
        Some(recorded) => {
            let none = matches!(
                recorded.delivery,
                Delivery::AlreadyStarted | Delivery::NoneEligible | Delivery::Excluded | Delivery::Unknown
            );
            let number = recorded.victim_number.filter(|_| !none)?;
            tasks.iter().position(|task| task.number == number)?
        }
        None => {
            let names: Vec<Name> = tasks.iter().map(|task| Name::new(task.name.clone().into(), 1)).collect();
            let candidates: Vec<Candidate<'_>> = (0..)
                .zip(tasks.iter().zip(&names))
                .map(|(place, (task, name))| Candidate {
                    id: Id::new(place, 0),
                    number: task.number,
                    name,
                    started: false,
                    ended: task.begun().is_none(),
                    demanded: task.demanded,
                    excluded: false,
                })
                .collect();
            let mut mischief = Mischief::new(monkey.clone(), report.seed);
            mischief.pick(&candidates);
            mischief.victim?.place()
        }
    };
    Some((place, monkey))
}
