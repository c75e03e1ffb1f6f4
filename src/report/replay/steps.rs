//! A task's own work and waiting, taken from when it was polled.

use std::collections::HashMap;
use std::time::Duration;

use crate::report::{Report, Segment, TaskReport};

use super::late::{Late, Round};

/// One poll, and what the task waits for before it.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) wait: Wait,
    pub(super) busy: Duration,
    /// How long the task rests after it, where it ends an attempt.
    pub(super) rests: Option<Duration>,
    /// How long after the pulse that follows it the lane looks, where that is known.
    pub(super) pulse: Option<Duration>,
    /// How long after it could have been polled it was, where that is known.
    pub(super) lag: Option<Duration>,
    /// How long the turn took that its wake asked for, where that is known.
    pub(super) turn: Option<Duration>,
    /// How long the turn after it took.
    pub(super) gap: Option<Duration>,
    /// Where the wake came together with others.
    pub(super) round: Option<Round>,
    /// Whether the probe takes this poll for a stall, where that is known.
    pub(super) stall: Option<bool>,
    /// The tasks it declares, each this long after the poll began.
    pub(super) declares: Vec<(Duration, usize)>,
}

/// What a task waits for between two polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Something outside, for this long.
    Own(Duration),
    /// The end of another task, which it demands or does not, and `then` some more.
    For { task: usize, demands: bool, then: Duration },
}

/// A poll that ended this shortly before something happened is taken as what held that up.
pub(super) const SHORTLY: Duration = Duration::from_millis(1);

/// When a poll came to an end this shortly before `at`.
fn shortly_before(end: Duration, at: Duration) -> bool {
    end <= at && at - end < SHORTLY
}

/// Who waits for a handle is woken this shortly after the task's end, also on a busy machine.
const TOLD: Duration = Duration::from_millis(3);

/// Merged polls are played as at most this many.
const PIECES: u32 = 64;

/// All governed polls of a recording, in the order of time. Merged ones are left out.
#[derive(Debug)]
pub(super) struct Polls {
    /// Start, end, and which task.
    polls: Vec<(Duration, Duration, u64)>,
    /// When the wake for a task's n-th poll came, where the lane was busy when it was seen.
    hidden: HashMap<(u64, usize), Duration>,
}

pub(super) fn end_of(segment: &Segment) -> Duration {
    segment.start.saturating_add(segment.busy)
}

pub(super) fn middle(from: Duration, to: Duration) -> Duration {
    from + to.saturating_sub(from) / 2
}

/// When the wait for the next poll began: not where that is not known, nor where another attempt starts.
pub(super) fn waits_since(segment: &Segment) -> Option<Duration> {
    (segment.polls == 1 && segment.rests.is_none()).then(|| end_of(segment))
}

fn pieces(segment: &Segment) -> u32 {
    segment.polls.clamp(1, PIECES)
}

impl Polls {
    pub(super) fn of(tasks: &[&TaskReport]) -> Polls {
        let mut polls: Vec<(Duration, Duration, u64)> = tasks
            .iter()
            .flat_map(|task| {
                let single = task.segments.iter().filter(|segment| segment.polls == 1);
                single.map(|segment| (segment.start, end_of(segment), task.number))
            })
            .collect();
        polls.sort_unstable();
        let mut polls = Polls { polls, hidden: HashMap::new() };
        polls.find_hidden(tasks);
        polls
    }

    /// On one thread a timer that fires during another task's poll is seen when that is over. Then it fired somewhere
    /// in between: in the middle is the best guess, in the order in which the wakes were seen.
    fn find_hidden(&mut self, tasks: &[&TaskReport]) {
        let mut wakes = Vec::new();
        for task in tasks {
            for (nth, pair) in task.segments.windows(2).enumerate() {
                let [before, segment] = pair else { continue };
                if let Some(since) = waits_since(before).filter(|_| segment.polls == 1) {
                    wakes.push((since.saturating_add(segment.waited), since, (task.number, nth + 1)));
                }
            }
        }
        wakes.sort_unstable();
        // The poll that the last wake was hidden by, and when that came.
        let mut last = (Duration::ZERO, Duration::ZERO);
        for (woken, since, key) in wakes {
            let Some((start, end, other)) = self.before(woken) else { continue };
            if woken < end {
                // By another thread, which does not wait for the poll to be over.
                last = (start, woken);
                continue;
            }
            // After a short poll it rather came in the rest that followed.
            let hidden = shortly_before(end, woken) && woken - end <= end - start;
            if other == key.0 || end <= since || !hidden {
                continue;
            }
            let mut moment = middle(start.max(since), end);
            if last.0 == start {
                // Far enough apart that the order stays the same where the replay is a little off.
                moment = moment.max(last.1 + end.saturating_sub(last.1) / 4);
            }
            last = (start, moment);
            self.hidden.insert(key, moment);
        }
    }

    /// Whether the wake for a task's n-th poll fell into another poll.
    pub(super) fn is_hidden(&self, key: (u64, usize)) -> bool {
        self.hidden.contains_key(&key)
    }

    /// Under a paused clock everything happens on the millisecond.
    pub(super) fn are_on_the_millisecond(&self) -> bool {
        let whole = |at: &Duration| at.subsec_nanos().is_multiple_of(1_000_000);
        self.polls.iter().all(|(start, end, _)| whole(start) && whole(end))
    }

    /// The lane's own time a turn: the shortest that was seen. Under a paused clock it takes none.
    pub(super) fn turn(&self, report: &Report, least: Option<Duration>) -> Duration {
        if report.cost.polls == 0 || self.are_on_the_millisecond() {
            return Duration::ZERO;
        }
        let turns = u32::try_from(report.cost.polls).unwrap_or(u32::MAX);
        least.unwrap_or(report.cost.lane_time / turns).min(Duration::from_millis(1))
    }

    /// The last poll that began before this moment.
    pub(super) fn before(&self, at: Duration) -> Option<(Duration, Duration, u64)> {
        let after = self.polls.partition_point(|(start, ..)| *start < at);
        self.polls[..after].last().copied()
    }

    /// When the first poll began that began at this moment or after.
    pub(super) fn next_after(&self, at: Duration) -> Option<Duration> {
        let before = self.polls.partition_point(|(start, ..)| *start < at);
        self.polls.get(before).map(|(start, ..)| *start)
    }

    /// When somebody demanded each task.
    pub(super) fn demands(
        &self,
        tasks: &[&TaskReport],
        places: &HashMap<u64, usize>,
        turn: Duration,
    ) -> Vec<Option<Duration>> {
        let mut demands: Vec<Option<Duration>> = Vec::new();
        for task in tasks {
            let begun = task
                .begun()
                .filter(|_| task.demanded_at.is_some() || (task.demanded && !task.demanded_by_governor));
            demands.push(begun.map(|begun| {
                if let Some(at) = task.demanded_at {
                    return self.intended(at);
                }
                // Older reports do not say when.
                let queued = task.queued.unwrap_or(task.declared);
                if task.after.is_empty() || !shortly_before(queued, begun) {
                    return self.held_up(begun, turn);
                }
                // It came before the last predecessor was over; after the predecessors had started, unless they were
                // demanded with it.
                let between = |place: &usize| {
                    let begun = tasks[*place].begun()?;
                    demands.get(*place).copied().flatten().or(Some(middle(begun, queued)))
                };
                let predecessors = task.after.iter().filter_map(|number| places.get(number));
                predecessors.filter_map(between).max().unwrap_or(queued)
            }));
        }
        demands
    }

    /// When the application was to do something that it did at this moment: a timer that fires during a governed poll is
    /// seen when that is over.
    pub(super) fn intended(&self, at: Duration) -> Duration {
        self.hides(at).map_or(at, |(start, end)| middle(start, end))
    }

    /// Start and end of the governed poll that was over shortly before this moment.
    pub(super) fn hides(&self, at: Duration) -> Option<(Duration, Duration)> {
        let (start, end, _) = self.before(at).filter(|(_, end, _)| shortly_before(*end, at))?;
        Some((start, end))
    }

    /// A demanded task starts next, so the demand came between the poll before and the start. The middle of that poll
    /// comes to the same wherever replay and recording are a little apart; where the lane was at rest, it was a turn
    /// before the start.
    fn held_up(&self, begun: Duration, turn: Duration) -> Duration {
        self.hides(begun).map_or(begun.saturating_sub(turn), |(start, end)| middle(start, end))
    }

    /// In which step of `declarer` this moment lies, and how long after the step's begin.
    pub(super) fn step_at(&self, declarer: &TaskReport, at: Duration) -> Option<(usize, Duration)> {
        let mut step = 0;
        let mut found = None;
        for segment in declarer.segments.iter().take_while(|segment| segment.start <= at) {
            found = Some((step, at - segment.start));
            step += pieces(segment) as usize;
        }
        found
    }

    /// What the task at `place` does. A demand that it made itself is taken out of `demands`: it moves with the task.
    pub(super) fn steps(
        &self,
        tasks: &[&TaskReport],
        place: usize,
        late: &Late,
        demands: &mut [Option<Duration>],
    ) -> Vec<Step> {
        let task = tasks[place];
        let mut steps = Vec::new();
        let mut last: Option<Duration> = None;
        // A demand ends a rest.
        let until_next = |nth: usize| {
            let next = task.segments.get(nth + 1).map_or(Duration::MAX, |next| next.start);
            next.saturating_sub(end_of(&task.segments[nth]))
        };
        for (nth, segment) in task.segments.iter().enumerate() {
            let pieces = pieces(segment);
            // Before the very first poll there is no wait.
            let waits = if nth == 0 { (pieces - 1).max(1) } else { pieces };
            let mut wait = Wait::Own(segment.waited / waits);
            if let Some(end) = last.filter(|_| segment.polls == 1) {
                wait = self.for_another(tasks, place, end, segment.waited, demands).unwrap_or_else(|| {
                    let hidden = self.hidden.get(&(task.number, nth));
                    Wait::Own(hidden.map_or(segment.waited, |moment| moment.saturating_sub(end)))
                });
            }
            let step = Step {
                wait,
                busy: segment.busy / pieces,
                rests: segment.rests.map(|rest| rest.min(until_next(nth))),
                pulse: late.pulse(task.number, nth),
                lag: late.lag(task.number, nth),
                turn: late.turn(task.number, nth),
                gap: late.gap(task.number, nth),
                round: late.round(task.number, nth),
                stall: late.stall(task.number, nth),
                declares: Vec::new(),
            };
            steps.extend(std::iter::repeat_n(step, pieces as usize));
            last = waits_since(segment);
        }
        steps
    }

    /// Where the wait from `since` ended with the end of a task whose handle was waited for.
    fn for_another(
        &self,
        tasks: &[&TaskReport],
        place: usize,
        since: Duration,
        waited: Duration,
        demands: &mut [Option<Duration>],
    ) -> Option<Wait> {
        let woken = since.saturating_add(waited);
        let awaited = &tasks[place].awaited;
        if awaited.is_empty() {
            return None;
        }
        let (task, ended) = tasks
            .iter()
            .enumerate()
            .filter(|(other, task)| *other != place && awaited.contains(&task.name))
            .filter_map(|(other, task)| Some((other, task.finished?)))
            .filter(|(_, ended)| *ended >= since && *ended <= woken && woken - *ended < TOLD)
            .max_by_key(|(_, ended)| *ended)?;
        let demands =
            tasks[task].begun().is_some_and(|begun| begun >= since) && demands[task].take().is_some();
        Some(Wait::For { task, demands, then: woken - ended })
    }
}
