//! How late the loop came round in the recording: some milliseconds decide who comes first, and with that the end.

use std::collections::HashMap;
use std::time::Duration;

use crate::model::gate_state::{GateState, OpenedBy, WaitReason};
use crate::model::profile::Profile;
use crate::report::{Report, TaskReport};

use super::steps::{Polls, SHORTLY, end_of, middle, waits_since};

/// So late a thread may be on a busy machine.
const BUSY: Duration = Duration::from_millis(25);

/// And so late on one that stops for a while. What else keeps a lane is played, so that it does not count; but it is no
/// measure for another profile.
const STOPPED: Duration = Duration::from_millis(250);

/// This near the recorded end of the window, it is the recorded one.
const NEAR: Duration = Duration::from_millis(5);

/// One round of the loop wakes all that are due within this time.
pub(super) const ONE_ROUND: Duration = Duration::from_micros(50);

/// Whether the probe takes a shorter poll for a stall is no question: looks lie 6 to 7 ms apart.
const MAYBE_A_STALL: Duration = Duration::from_millis(42);

/// What is not known is modelled.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// How long after the delay the lane looked.
    delay: Option<Duration>,
    /// And after the pulse that followed a task's n-th segment, where that began an attempt.
    pulses: HashMap<(u64, usize), Duration>,
    /// When the quiet window that opened the gate was over, and how long after that the probe looked.
    look: Option<(Duration, Duration)>,
    /// From when a task's n-th segment could have been polled, all seen, until it was.
    lags: HashMap<(u64, usize), Duration>,
    /// The shortest of them: so long a turn takes at least.
    least: Option<Duration>,
    /// From the end of a task's n-th segment to the next poll: so long the turn took, where the lane went on at once.
    gaps: HashMap<(u64, usize), Duration>,
    /// From the wake for a task's n-th segment to the next poll, whoever's: so long the turn took, where the lane rested.
    turns: HashMap<(u64, usize), Duration>,
    /// From a task's declaration to the next poll: the declaration may have ended the rest.
    declared: HashMap<u64, Duration>,
    /// The wakes that came in one round of the loop: which round, and their order in the recording.
    rounds: HashMap<(u64, usize), Round>,
    /// Whether the probe took a poll of about its limit for a stall; none where that is not known of any.
    stalls: Option<HashMap<(u64, usize), bool>>,
}

/// A wake that came together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) round: usize,
    pub(super) rank: usize,
}

impl Late {
    pub(super) fn of(report: &Report, tasks: &[&TaskReport], polls: &Polls, profile: &Profile) -> Late {
        let mut late = Late::default();
        late.find_rounds(tasks, polls);
        let Ok(recorded) = report.profile.parse::<Profile>() else { return late };
        let merged = tasks.iter().flat_map(|task| &task.segments).any(|segment| segment.polls > 1);
        if merged || polls.are_on_the_millisecond() {
            // Between which polls the lane rested is not known; under a paused clock nothing is late.
            return late;
        }
        let same = profile.to_string() == report.profile;
        let dues = dues(tasks, &recorded);
        // Under another profile a start long after the last poll may have been asked for by something that is not known.
        let most = if same { (STOPPED, STOPPED) } else { (SHORTLY, BUSY) };
        late.find_lags(tasks, polls, &dues, most);
        let rounds = Rounds::of(tasks, late.least.unwrap_or_default());
        for due in &dues {
            let found = rounds.after(due.at, same);
            match due.after {
                None if profile.delay == recorded.delay => late.delay = found,
                Some(key) if profile.pulse == recorded.pulse => {
                    late.pulses.extend(found.map(|late| (key, late)));
                }
                _ => {}
            }
        }
        if same {
            late.look = look(report, tasks, polls);
            late.stalls = Some(stalls(report, tasks, polls));
            late.find_gaps(tasks, polls);
        }
        late
    }

    /// How long after a quiet window that was over at `quiet` the probe looks, where it is the recorded window.
    pub(super) fn look(&self, quiet: Duration) -> Option<Duration> {
        self.look.filter(|(recorded, _)| recorded.abs_diff(quiet) < NEAR).map(|(_, late)| late)
    }

    pub(super) fn round(&self, number: u64, nth: usize) -> Option<Round> {
        self.rounds.get(&(number, nth)).copied()
    }

    pub(super) fn stall(&self, number: u64, nth: usize) -> Option<bool> {
        self.stalls.as_ref()?.get(&(number, nth)).copied()
    }

    /// Then every stall is one of those, or is played as the application's.
    pub(super) fn knows_stalls(&self) -> bool {
        self.stalls.is_some()
    }

    pub(super) fn delay(&self) -> Option<Duration> {
        self.delay
    }

    pub(super) fn pulse(&self, number: u64, nth: usize) -> Option<Duration> {
        self.pulses.get(&(number, nth)).copied()
    }

    pub(super) fn lag(&self, number: u64, nth: usize) -> Option<Duration> {
        self.lags.get(&(number, nth)).copied()
    }

    pub(super) fn gap(&self, number: u64, nth: usize) -> Option<Duration> {
        self.gaps.get(&(number, nth)).copied()
    }

    pub(super) fn turn(&self, number: u64, nth: usize) -> Option<Duration> {
        self.turns.get(&(number, nth)).copied()
    }

    pub(super) fn declared(&self, number: u64) -> Option<Duration> {
        self.declared.get(&number).copied()
    }

    pub(super) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// `most`: after a start and after a wake.
    fn find_lags(&mut self, tasks: &[&TaskReport], polls: &Polls, dues: &[Due], most: (Duration, Duration)) {
        let mut declared: Vec<Duration> = tasks.iter().map(|task| task.declared).collect();
        declared.sort_unstable();
        for task in tasks {
            let mut since = None;
            for (nth, segment) in task.segments.iter().enumerate() {
                // The lane was busy until then; zero where nobody was polled yet.
                let busy = polls.before(segment.start).map_or(Duration::ZERO, |(_, end, _)| end);
                let (could, most) = match since {
                    Some(since) => (Some(busy.max(segment.waited.saturating_add(since))), most.1),
                    // A start may have been asked for by a declaration. One that the lane rested before is no lag.
                    None => {
                        let before = declared.partition_point(|at| *at <= segment.start);
                        let asked = declared[..before].last().map_or(busy, |at| busy.max(*at));
                        (Some(asked).filter(|asked| due_before(dues, segment.start) <= *asked), most.0)
                    }
                };
                if let Some(lag) = could.and_then(|could| segment.start.checked_sub(could))
                    && lag < most
                {
                    self.lags.insert((task.number, nth), lag);
                }
                since = waits_since(segment);
            }
        }
        self.least = self.lags.values().copied().min();
    }

    fn find_rounds(&mut self, tasks: &[&TaskReport], polls: &Polls) {
        let mut wakes = Vec::new();
        for task in tasks {
            for (nth, pair) in task.segments.windows(2).enumerate() {
                let [before, segment] = pair else { continue };
                let key = (task.number, nth + 1);
                if let Some(since) = waits_since(before)
                    && segment.polls == 1
                    && !polls.is_hidden(key)
                {
                    wakes.push((segment.waited.saturating_add(since), segment.start, key));
                }
            }
        }
        wakes.sort_unstable();
        let together = wakes.chunk_by(|(one, ..), (other, ..)| *other - *one < ONE_ROUND);
        for (round, wakes) in together.filter(|wakes| wakes.len() > 1).enumerate() {
            let ranks = wakes.iter().enumerate();
            self.rounds.extend(ranks.map(|(rank, (.., key))| (*key, Round { round, rank })));
        }
    }

    fn find_gaps(&mut self, tasks: &[&TaskReport], polls: &Polls) {
        let until_next = |at| polls.next_after(at).map(|start| start - at).filter(|gap| *gap <= STOPPED);
        for task in tasks {
            self.declared.extend(until_next(task.declared).map(|turn| (task.number, turn)));
            let mut since = None;
            for (nth, segment) in task.segments.iter().enumerate() {
                let key = (task.number, nth);
                if let Some(since) = since.filter(|_| !polls.is_hidden(key)) {
                    let turn = until_next(segment.waited.saturating_add(since));
                    self.turns.extend(turn.map(|turn| (key, turn)));
                }
                since = waits_since(segment);
                self.gaps.extend(until_next(end_of(segment)).map(|gap| (key, gap)));
            }
        }
    }
}

/// Whether each poll of about the probe's limit was told as a stall.
fn stalls(report: &Report, tasks: &[&TaskReport], polls: &Polls) -> HashMap<(u64, usize), bool> {
    let mut stalls = HashMap::new();
    for task in tasks {
        for (nth, segment) in task.segments.iter().enumerate() {
            if segment.busy < MAYBE_A_STALL {
                continue;
            }
            let end = end_of(segment);
            let next = polls.next_after(end).unwrap_or(Duration::MAX);
            let told = report.long_tasks.iter().any(|long| {
                let seen = long.start.saturating_add(long.length);
                long.start < end && seen >= end && seen <= next
            });
            stalls.insert((task.number, nth), told);
        }
    }
    stalls
}

/// From when on the next ordinary start was allowed.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Duration,
    /// After which segment; none for the delay.
    after: Option<(u64, usize)>,
}

/// In the order of time.
fn dues(tasks: &[&TaskReport], recorded: &Profile) -> Vec<Due> {
    let declared = tasks.iter().map(|task| task.declared).min().unwrap_or_default();
    let mut dues = vec![Due { at: declared.saturating_add(recorded.delay), after: None }];
    for task in tasks {
        let mut starts = true;
        for (nth, segment) in task.segments.iter().enumerate() {
            if std::mem::replace(&mut starts, segment.rests.is_some()) {
                let at = end_of(segment).saturating_add(recorded.pulse);
                dues.push(Due { at, after: Some((task.number, nth)) });
            }
        }
    }
    dues.sort_unstable_by_key(|due| due.at);
    dues
}

/// What the start at `start` had to wait for: pulses are of one length, so it is the last one that was over.
fn due_before(dues: &[Due], start: Duration) -> Duration {
    let over = dues.partition_point(|due| due.at <= start);
    dues[..over].last().map_or(Duration::MAX, |due| due.at)
}

/// When the lane is known to have looked, and whether that was a start.
#[derive(Debug)]
struct Rounds(Vec<(Duration, bool)>);

impl Rounds {
    fn of(tasks: &[&TaskReport], turn: Duration) -> Rounds {
        let mut rounds = Vec::new();
        for task in tasks {
            let mut since = None;
            for segment in &task.segments {
                rounds.extend(since.map(|since| (segment.waited.saturating_add(since), false)));
                rounds.push((segment.start.saturating_sub(turn), since.is_none()));
                rounds.push((end_of(segment), false));
                since = waits_since(segment);
            }
        }
        rounds.sort_unstable();
        Rounds(rounds)
    }

    /// How long after `at` the lane looked. Under another profile only a start tells that there was a timer at all.
    fn after(&self, at: Duration, same: bool) -> Option<Duration> {
        let next = self.0.partition_point(|(round, _)| *round < at);
        let (round, start) = self.0.get(next)?;
        Some(*round - at).filter(|late| if same { *late <= STOPPED } else { *start && *late <= BUSY })
    }
}

/// From the end of the quiet window to the look that opened the gate.
fn look(report: &Report, tasks: &[&TaskReport], polls: &Polls) -> Option<(Duration, Duration)> {
    let GateState::Open { by: OpenedBy::Quiet, at, shut_by } = &report.gate else { return None };
    let since = match shut_by {
        WaitReason::LongTask { at, .. } => *at,
        WaitReason::Window => {
            let idle = tasks.iter().filter(|task| task.queue == crate::model::queue::Queue::Idle);
            idle.map(|task| task.declared).min()?.max(report.ready.unwrap_or_default())
        }
        _ => return None,
    };
    let quiet = since.saturating_add(report.gate_rules.quiet);
    let late = at.checked_sub(quiet)?;
    let late = match polls.hides(*at) {
        // Seen when the poll was over: any moment in it comes to the same.
        Some((start, end)) if quiet < end => middle(start.max(quiet), end) - quiet,
        _ => Some(late).filter(|late| *late <= STOPPED)?,
    };
    Some((quiet, late))
}
