//! What is played, the profile apart: each task's own work and waiting, and what the application did when.

use std::collections::HashMap;
use std::time::Duration;

use crate::core::delay::{Candidate, DelayInjector};
use crate::core::table::Spec;
use crate::model::gate_rules::GateRules;
use crate::model::gate_state::{GateState, OpenedBy, WaitReason};
use crate::model::id::Id;
use crate::model::monkey::Delivery;
use crate::model::name::Name;
use crate::model::outcome::{Outcome, SkipReason};
use crate::model::profile::Profile;
use crate::report::{Report, Segment, TaskReport};

/// What is seen this shortly after a poll has ended happened during that poll, which kept the thread.
const SHORTLY: Duration = Duration::from_millis(1);

/// A task that waits for a handle is woken this shortly after the other task's end, also on a busy machine.
const TOLD: Duration = Duration::from_millis(3);

/// What the application does within this time it does in one poll of its own.
const AT_ONCE: Duration = Duration::from_micros(200);

/// Merged polls are played as at most this many.
const PIECES: u32 = 64;

/// A task's place is its index in `tasks`.
#[derive(Debug)]
pub(super) struct Script {
    /// In the order of their declaration.
    pub(super) tasks: Vec<Part>,
    pub(super) rules: GateRules,
    /// What the application does, in the order of time.
    pub(super) happenings: Vec<(Duration, What)>,
    /// What the lane spends on a turn, the poll left out.
    pub(super) turn: Duration,
    /// The task that the monkey delays.
    pub(super) victim: Option<usize>,
}

/// One task.
#[derive(Debug)]
pub(super) struct Part {
    /// Without its predecessors, whose ids the core gives.
    pub(super) spec: Spec,
    /// Its predecessors, each with whether any outcome will do.
    pub(super) after: Vec<(usize, bool)>,
    pub(super) outcome: Outcome,
    pub(super) steps: Vec<Step>,
}

/// One poll, and what the task waits for before it.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) wait: Wait,
    pub(super) busy: Duration,
    /// How long the task rests after it, where it ends an attempt.
    pub(super) rests: Option<Duration>,
    /// The tasks it declares and demands, each this long after the poll began.
    pub(super) does: Vec<(Duration, What)>,
}

/// What a task waits for between two polls.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wait {
    /// Something outside, for this long.
    Own(Duration),
    /// The end of another task.
    For(usize),
}

/// Something that happens at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Declare(usize),
    Demand(usize),
    Cancel(usize),
    /// The task is woken.
    Wake(usize),
    Ready,
    OpenGate,
    /// The application begins to be busy with requests, or is so no more.
    Requests(bool),
    /// The application keeps the thread, or a worker of this number, for so long.
    Stall(Duration, Option<usize>),
}

impl Script {
    pub(super) fn of(report: &Report, tasks: &[&TaskReport], profile: &Profile) -> Script {
        let recording = Recording::of(tasks);
        let mut parts: Vec<Part> = (0..tasks.len()).map(|place| recording.part(place)).collect();
        let mut happenings = Vec::new();
        let rules = recording.gate(report, profile, &mut happenings);
        recording.stalls_and_requests(report, &mut happenings);
        let mut happens = |inside, at, what| match inside {
            Some(Inside { place, step, since, .. }) => parts[place].steps[step].does.push((since, what)),
            None => happenings.push((at, what)),
        };
        let mut declared = Duration::ZERO;
        for (place, task) in tasks.iter().enumerate() {
            // In the order in which they were declared.
            declared = declared.max(recording.intended(task.declared));
            happens(recording.declarer(task), declared, What::Declare(place));
            let begins = task.begun().is_some();
            if let Some(at) = task.demanded_at.filter(|_| begins) {
                happens(recording.demander(task, at), recording.intended(at), What::Demand(place));
            }
            let cancelled = matches!(task.outcome, Some(Outcome::Cancelled(_))) && !begins;
            if let Some(at) = task.finished.filter(|_| cancelled) {
                happens(None, recording.intended(at), What::Cancel(place));
            }
        }
        parts.iter_mut().flat_map(|part| &mut part.steps).for_each(|step| step.does.sort());
        happenings.sort_by_key(|(at, _)| *at);
        for place in (1..happenings.len()).rev() {
            let next = happenings[place].0;
            let at = &mut happenings[place - 1].0;
            *at = if next - *at < AT_ONCE { next } else { *at };
        }
        let victim = victim(report, tasks, profile);
        Script { tasks: parts, rules, happenings, turn: recording.turn(), victim }
    }
}

impl TaskReport {
    /// When its first poll began, whatever came of it.
    fn begun(&self) -> Option<Duration> {
        self.segments.first().map(|segment| segment.start).or(self.started)
    }
}

fn end_of(segment: &Segment) -> Duration {
    segment.start.saturating_add(segment.busy)
}

fn pieces(segment: &Segment) -> u32 {
    segment.polls.clamp(1, PIECES)
}

/// A moment in a task's own time: how long after the begin of one of its steps.
struct Inside {
    place: usize,
    step: usize,
    since: Duration,
    in_poll: bool,
}

/// The recorded polls of all tasks.
struct Recording<'a> {
    tasks: &'a [&'a TaskReport],
    /// Which place each number has.
    places: HashMap<u64, usize>,
    /// Start and end of each poll, in the order of time. Merged ones are left out.
    polls: Vec<(Duration, Duration)>,
    /// When a task was woken for its n-th poll, where that is known.
    wakes: HashMap<(usize, usize), Duration>,
}

impl<'a> Recording<'a> {
    fn of(tasks: &'a [&'a TaskReport]) -> Recording<'a> {
        let segments = tasks.iter().flat_map(|task| &task.segments).filter(|segment| segment.polls == 1);
        let mut polls: Vec<_> = segments.map(|segment| (segment.start, end_of(segment))).collect();
        polls.sort_unstable();
        let places = tasks.iter().enumerate().map(|(place, task)| (task.number, place)).collect();
        let mut recording = Recording { tasks, places, polls, wakes: HashMap::new() };
        recording.find_wakes();
        recording
    }

    /// The last poll that began before this moment.
    fn before(&self, at: Duration) -> Option<(Duration, Duration)> {
        self.polls[..self.polls.partition_point(|(start, _)| *start < at)].last().copied()
    }

    /// The poll that kept the thread when something happened that was seen at this moment.
    fn hiding(&self, at: Duration) -> Option<(Duration, Duration)> {
        let (start, end) = self.before(at)?;
        // After a short poll it rather came in the rest that followed.
        (end <= at && at - end < SHORTLY.min(end - start)).then_some((start, end))
    }

    /// When the application was to do something that it did at this moment: nothing is known but the poll that hid it.
    fn intended(&self, at: Duration) -> Duration {
        self.hiding(at).map_or(at, |(start, end)| start + (end - start) / 2)
    }

    /// Of the wakes that a poll hid only their order is known: they are spread over it.
    fn find_wakes(&mut self) {
        let mut wakes = Vec::new();
        for (place, task) in self.tasks.iter().enumerate() {
            for (nth, pair) in (1..).zip(task.segments.windows(2)) {
                if pair[0].polls == 1 && pair[1].polls == 1 && pair[0].rests.is_none() {
                    let since = end_of(&pair[0]);
                    wakes.push((since.saturating_add(pair[1].waited), since, (place, nth)));
                }
            }
        }
        wakes.sort_unstable();
        let hiding = |(woken, since, _): &(Duration, Duration, (usize, usize))| {
            self.hiding(*woken).filter(|(start, _)| since <= start)
        };
        for wakes in wakes.chunk_by_mut(|one, other| hiding(one).is_some() && hiding(one) == hiding(other)) {
            let parts = u32::try_from(wakes.len() + 1).unwrap_or(u32::MAX);
            for (part, wake) in (1..).zip(wakes) {
                if let Some((start, end)) = hiding(wake) {
                    wake.0 = start + (end - start) / parts * part;
                }
            }
        }
        self.wakes = wakes.into_iter().map(|(woken, _, key)| (key, woken)).collect();
    }

    /// From when a poll could have begun to when it did: the middle one of all. Under a paused clock it is none.
    fn turn(&self) -> Duration {
        let turn = |((place, nth), woken): (&(usize, usize), &Duration)| {
            let start = self.tasks[*place].segments[*nth].start;
            let busy = self.before(start).map_or(Duration::ZERO, |(_, end)| end);
            start.saturating_sub(busy.max(*woken))
        };
        let mut turns: Vec<Duration> = self.wakes.iter().map(turn).collect();
        turns.sort_unstable();
        turns.get(turns.len() / 2).copied().unwrap_or_default()
    }

    fn part(&self, place: usize) -> Part {
        let task = self.tasks[place];
        let count = |numbers: &[u64], number| numbers.iter().filter(|other| **other == number).count();
        let after = task.after.iter().filter_map(|number| {
            // Named twice, the stricter word holds.
            let any_outcome = count(&task.after, *number) == count(&task.after_settled, *number);
            Some((*self.places.get(number)?, any_outcome))
        });
        let after: Vec<(usize, bool)> = after.collect();
        let condition = match &task.outcome {
            // The one that did not complete is not in the report any more.
            Some(Outcome::Skipped(SkipReason::Predecessor(_))) => !after.is_empty(),
            // A condition that was asked in the task's own tick is part of what is played.
            Some(Outcome::Skipped(_) | Outcome::Invalid(_)) => task.begun().is_some(),
            _ => true,
        };
        let spec = Spec {
            name: task.name.clone().into(),
            queue: task.queue,
            condition,
            blocking: task.blocking,
            timeout: None,
            no_later_than: task.no_later_than,
            never_delay: false,
            after: Vec::new(),
            declared_in: None,
            invalid: None,
        };
        let outcome = task.outcome.clone().unwrap_or(Outcome::Completed);
        Part { spec, after, outcome, steps: self.steps(place) }
    }

    fn steps(&self, place: usize) -> Vec<Step> {
        let segments = &self.tasks[place].segments;
        let mut steps = Vec::new();
        for (nth, segment) in segments.iter().enumerate() {
            let pieces = pieces(segment);
            // Before the very first poll there is no wait.
            let waits = if nth == 0 { (pieces - 1).max(1) } else { pieces };
            let wait = match self.wakes.get(&(place, nth)) {
                Some(woken) => {
                    let since = end_of(&segments[nth - 1]);
                    let awaited = self.awaited(place, since, since.saturating_add(segment.waited));
                    awaited.map_or(Wait::Own(*woken - since), Wait::For)
                }
                None => Wait::Own(segment.waited / waits),
            };
            // A demand ends a rest.
            let next = segments.get(nth + 1).map_or(Duration::MAX, |next| next.start);
            let rests = segment.rests.map(|rest| rest.min(next.saturating_sub(end_of(segment))));
            let step = Step { wait, busy: segment.busy / pieces, rests, does: Vec::new() };
            steps.extend(std::iter::repeat_n(step, pieces as usize));
        }
        steps
    }

    /// The task that a task waited for, where its wait from `since` ended with that task's end.
    fn awaited(&self, place: usize, since: Duration, woken: Duration) -> Option<usize> {
        let names = &self.tasks[place].awaited;
        let in_time = |ended: &Duration| *ended >= since && *ended <= woken && woken - *ended < TOLD;
        let others = self.tasks.iter().enumerate().filter(|(_, task)| names.contains(&task.name));
        let ended = others.filter_map(|(other, task)| Some((task.finished.filter(in_time)?, other)));
        ended.max().map(|(_, other)| other)
    }

    fn inside(&self, place: usize, at: Duration) -> Option<Inside> {
        let segments = &self.tasks[place].segments;
        let begun = segments.partition_point(|segment| segment.start <= at);
        let (last, before) = segments[..begun].split_last()?;
        let step = before.iter().map(pieces).sum::<u32>() as usize;
        Some(Inside { place, step, since: at.saturating_sub(last.start), in_poll: at <= end_of(last) })
    }

    fn declarer(&self, task: &TaskReport) -> Option<Inside> {
        self.inside(*self.places.get(&task.declared_in?)?, task.declared)
    }

    /// Where another task demanded this one in a poll at this moment, and waited for it.
    fn demander(&self, task: &TaskReport, at: Duration) -> Option<Inside> {
        let mut waiting = (0..).zip(self.tasks).filter(|(_, other)| other.awaited.contains(&task.name));
        waiting.find_map(|(place, _)| self.inside(place, at).filter(|inside| inside.in_poll))
    }

    /// What the application did that kept the thread or held idle starts, as far as it was seen.
    fn stalls_and_requests(&self, report: &Report, happenings: &mut Vec<(Duration, What)>) {
        for long in &report.long_tasks {
            if !self.tasks.iter().any(|task| Some(&task.name) == long.who.as_ref()) {
                happenings.push((long.start, What::Stall(long.length, long.worker)));
            }
        }
        for hold in report.holds.iter().filter(|hold| matches!(hold.why, WaitReason::InFlight { .. })) {
            // The hold went on for as long as the application had to be quiet again, or was cut off.
            let cut_off = hold.until.saturating_sub(hold.since) >= report.gate_rules.max_hold;
            let rest = if cut_off { Duration::ZERO } else { report.gate_rules.resume_quiet };
            happenings.push((hold.since, What::Requests(true)));
            happenings.push((hold.until.saturating_sub(rest).max(hold.since), What::Requests(false)));
        }
    }

    /// Under another profile the quiet window is played where it opened the gate; else the gate opens when it did.
    fn gate(&self, report: &Report, profile: &Profile, happenings: &mut Vec<(Duration, What)>) -> GateRules {
        // Requests are known only where they held a start.
        let mut rules = GateRules { interactive: false, max_in_flight: 0, ..report.gate_rules.clone() };
        let as_recorded = profile.to_string() == report.profile || report.interactive_failed.is_some();
        match &report.gate {
            GateState::Open { by: OpenedBy::Quiet, shut_by, .. }
                if !as_recorded && !matches!(shut_by, WaitReason::InFlight { .. }) =>
            {
                happenings.extend(report.ready.map(|at| (at, What::Ready)));
                return rules;
            }
            GateState::Open { by: OpenedBy::Timeout, .. } | GateState::Shut { .. } => {}
            GateState::Open { at, .. } => happenings.push((self.intended(*at), What::OpenGate)),
        }
        // No window: that is never said to be ready.
        rules.await_ready = true;
        rules
    }
}

/// The recorded victim where the profile asks for the recorded monkey; else whom that monkey picks among all.
fn victim(report: &Report, tasks: &[&TaskReport], profile: &Profile) -> Option<usize> {
    let monkey = profile.monkey.clone()?;
    if let Some(recorded) = report.monkey.as_ref().filter(|recorded| recorded.asked == monkey.to_string()) {
        let spared = matches!(recorded.delivery, Delivery::AlreadyStarted | Delivery::Excluded);
        let number = recorded.victim_number.filter(|_| !spared)?;
        return tasks.iter().position(|task| task.number == number);
    }
    let names: Vec<Name> = tasks.iter().map(|task| Name::new(task.name.clone().into(), 1)).collect();
    let candidates = (0..).zip(tasks.iter().zip(&names)).map(|(place, (task, name))| Candidate {
        id: Id::new(place, 0),
        number: task.number,
        name,
        started: false,
        ended: task.begun().is_none(),
        demanded: task.demanded,
        excluded: false,
    });
    let mut delay_injector = DelayInjector::new(monkey, report.seed);
    delay_injector.pick(&candidates.collect::<Vec<_>>());
    Some(delay_injector.victim?.place())
}
