//! Long tasks and their attribution. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Stamp;
use crate::model::queue::Queue;

/// W3C Long Tasks: work of 50 ms and more is felt. (A browser says "more than 50"; here 50 counts.)
pub(crate) const LONG_TASK: Duration = Duration::from_millis(50);

/// How long the probe sleeps between two looks. tokio rounds up to whole milliseconds, so a look comes every 6
/// to 7 ms: a stall of 60 ms is late by at least 52 ms whenever in between it began, and one of 50 ms by no
/// more than 51.
pub(crate) const PROBE_PERIOD: Duration = Duration::from_millis(6);
/// A look that comes this much too late means that a loop did not come round for a long task's time; the one millisecond
/// is the timer's own step.
pub(crate) const PROBE_LATE: Duration = Duration::from_millis(51);

/// How many long tasks are kept for the report; the oldest fall out and are counted.
const KEPT: usize = 1000;
/// How many polls are remembered for attribution. A stall is told within a few milliseconds of its end, so a handful
/// a worker would do.
const POLLS: usize = 64;
/// How many of the last long tasks a new sighting may belong to: more workers are not held at once.
const NEAR: usize = 256;
/// Polls shorter than this cannot be the greater part of a long task.
pub(crate) const WORTH_REMEMBERING: Duration = Duration::from_millis(10);

/// A period in which a worker was blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) start: Stamp,
    pub(crate) end: Stamp,
    pub(crate) worker: Option<usize>,
    /// The governed task or observed future that filled most of it, if one did.
    pub(crate) who: Option<Arc<str>>,
}

/// One poll whose owner is known.
#[derive(Debug, Clone)]
pub(crate) struct Poll {
    pub(crate) start: Stamp,
    /// None while it lasts.
    pub(crate) end: Option<Stamp>,
    pub(crate) name: Arc<str>,
    pub(crate) whose: Whose,
    /// The worker it ran on; none for a thread that is no worker.
    pub(crate) worker: Option<usize>,
}

/// Who asked for a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A governed task, and the queue it waited in.
    Governed(Queue),
    /// The application itself: an observed future, a span.
    Application,
}

/// What a new sighting means for the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) length: Duration,
    pub(crate) who: Arc<str>,
    /// Idle tasks are started because the application is quiet: what they hold up is no sign that it is not.
    pub(crate) by_idle_task: bool,
    /// A governed poll filled most of it: no sign of what the application does.
    pub(crate) governed: bool,
    /// Not one that was told before.
    pub(crate) new: bool,
}

/// The long tasks of one run.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    seen: VecDeque<Stall>,
    forgotten: u64,
    polls: VecDeque<Poll>,
    /// It is unknown whether the process ran: see the witness.
    pub(crate) unattributed: bool,
    /// On multi_thread a poll on a thread that is no worker keeps no loop.
    pub(crate) on_workers_only: bool,
}

impl Stalls {
    /// A poll ended that is long enough to matter. It explains stalls that are told later, and those that were told
    /// while it lasted.
    pub(crate) fn poll_ended(&mut self, poll: Poll) {
        if !self.may_explain(&poll) {
            return;
        }
        let nameless = |stall: &&mut Stall| stall.who.is_none() && !self.unattributed;
        for stall in self.seen.iter_mut().rev().take(NEAR).filter(nameless) {
            if explains(&poll, stall.start, stall.end, stall.worker, self.on_workers_only) {
                stall.who = Some(Arc::clone(&poll.name));
            }
        }
        if self.polls.len() == POLLS {
            self.polls.pop_front();
        }
        self.polls.push_back(poll);
    }

    /// A loop did not come round from `start` to `end`, where `end` may be now and the stall go on. Sightings
    /// that overlap are one stall, told by two witnesses or twice by one.
    ///
    /// `in_progress` are the polls that are known to run now.
    pub(crate) fn saw(
        &mut self,
        start: Stamp,
        end: Stamp,
        worker: Option<usize>,
        in_progress: &[Poll],
    ) -> Sighting {
        // The last remembered is the innermost: an observed future inside another one ends first.
        let explains = |poll: &&Poll| explains(poll, start, end, worker, self.on_workers_only);
        let culprit = self.polls.iter().chain(in_progress).find(explains).cloned();
        let who = culprit.as_ref().map(|poll| Arc::clone(&poll.name)).filter(|_| !self.unattributed);
        let whose = culprit.map(|poll| poll.whose);
        let mut new = false;
        let same = |stall: &Stall| stall.worker == worker || worker.is_none() || stall.worker.is_none();
        // Workers that are held at the same time are told in turn, so the one meant need not be the last.
        let known = self.seen.iter_mut().rev().take(NEAR).find(|stall| stall.end > start && same(stall));
        let stall = match known {
            Some(last) => {
                last.start = last.start.min(start);
                last.end = last.end.max(end);
                last.worker = last.worker.or(worker);
                last.who = last.who.take().or(who);
                last
            }
            None => {
                new = true;
                self.keep(Stall { start, end, worker, who })
            }
        };
        Sighting {
            length: stall.end.since(stall.start),
            who: name_of(stall.who.as_ref(), stall.worker),
            governed: matches!(whose, Some(Whose::Governed(_))),
            by_idle_task: whose == Some(Whose::Governed(Queue::Idle)),
            new,
        }
    }

    pub(crate) fn may_explain(&self, poll: &Poll) -> bool {
        poll.worker.is_some() || !self.on_workers_only
    }

    /// A long task that somebody else saw and names.
    pub(crate) fn record(&mut self, start: Stamp, end: Stamp, who: Arc<str>) {
        self.keep(Stall { start, end, worker: None, who: Some(who) });
    }

    fn keep(&mut self, stall: Stall) -> &mut Stall {
        if self.seen.len() == KEPT {
            self.seen.pop_front();
            self.forgotten += 1;
        }
        self.seen.push_back(stall);
        self.seen.back_mut().expect("just pushed")
    }

    pub(crate) fn seen(&self) -> impl Iterator<Item = &Stall> {
        self.seen.iter()
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

/// Whether a poll fills at least half of a stall of this worker. Where it is not known which worker was held, but which one
/// polled, the poll has to be a long one itself: a shorter one on another worker may have lain beside it.
fn explains(poll: &Poll, start: Stamp, end: Stamp, worker: Option<usize>, on_workers_only: bool) -> bool {
    let ended = poll.end.unwrap_or(end);
    let there = match worker {
        Some(_) => worker == poll.worker,
        None => !on_workers_only || ended.since(poll.start) >= LONG_TASK,
    };
    let overlap = ended.min(end).since(poll.start.max(start));
    there && 2 * overlap >= end.since(start)
}

/// The name a long task is shown under.
pub(crate) fn name_of(who: Option<&Arc<str>>, worker: Option<usize>) -> Arc<str> {
    match (who, worker) {
        (Some(name), _) => Arc::clone(name),
        (None, Some(worker)) => format!("unknown (worker {worker})").into(),
        (None, None) => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Stamp {
        Stamp::from_duration(Duration::from_millis(millis))
    }

    fn poll(start: u64, end: Option<u64>, name: &str, whose: Whose) -> Poll {
        Poll { start: at(start), end: end.map(at), name: name.into(), whose, worker: Some(0) }
    }

    #[test]
    fn a_poll_that_ends_after_its_stall_was_told_explains_it_and_the_inner_one_wins() {
        let mut stalls = Stalls::default();
        assert_eq!(&*stalls.saw(at(10), at(62), Some(0), &[]).who, "unknown (worker 0)");
        stalls.saw(at(10), at(90), Some(0), &[]);
        stalls.poll_ended(poll(12, Some(88), "inner", Whose::Application));
        stalls.poll_ended(poll(5, Some(95), "outer", Whose::Application));
        stalls.poll_ended(Poll { worker: Some(1), ..poll(5, Some(95), "elsewhere", Whose::Application) });
        assert_eq!(stalls.seen().next().unwrap().who.as_deref(), Some("inner"));
        // Told once more, after its end, it stays one long task of the same name.
        assert!(!stalls.saw(at(10), at(91), None, &[]).new);
        assert_eq!(stalls.seen().count(), 1);
    }

    #[test]
    fn a_poll_on_another_worker_explains_nothing() {
        let mut stalls = Stalls::default();
        stalls.poll_ended(poll(10, Some(90), "elsewhere", Whose::Application));
        assert_eq!(&*stalls.saw(at(10), at(90), Some(1), &[]).who, "unknown (worker 1)");
    }

    #[test]
    fn a_stall_is_attributed_to_the_governed_poll_that_filled_most_of_it() {
        let mut stalls = Stalls::default();
        stalls.poll_ended(poll(100, Some(180), "index", Whose::Governed(Queue::Normal)));
        let sighting = stalls.saw(at(104), at(182), None, &[]);
        assert_eq!(&*sighting.who, "index");
        assert!(!sighting.by_idle_task);
        // A poll that ended before does not explain a later stall.
        assert_eq!(&*stalls.saw(at(300), at(380), Some(1), &[]).who, "unknown (worker 1)");
    }

    /// I24: on several workers, a lag of the probe alone does not say whose.
    #[test]
    fn a_short_poll_beside_a_stall_of_an_unknown_worker_is_not_named() {
        let mut stalls = Stalls { on_workers_only: true, ..Stalls::default() };
        stalls.poll_ended(poll(100, Some(145), "short", Whose::Governed(Queue::Normal)));
        let sighting = stalls.saw(at(104), at(180), None, &[]);
        assert_eq!((&*sighting.who, sighting.governed), ("unknown", false));
        stalls.poll_ended(poll(300, Some(360), "long", Whose::Governed(Queue::Normal)));
        assert_eq!(&*stalls.saw(at(304), at(362), None, &[]).who, "long");
    }

    #[test]
    fn a_poll_in_progress_explains_the_stall_it_is_making() {
        let mut stalls = Stalls::default();
        let sighting =
            stalls.saw(at(10), at(62), Some(0), &[poll(9, None, "warm", Whose::Governed(Queue::Idle))]);
        assert_eq!(&*sighting.who, "warm");
        assert!(sighting.by_idle_task);
    }

    #[test]
    fn two_witnesses_of_one_stall_make_one_long_task_and_two_workers_make_two() {
        let mut stalls = Stalls::default();
        stalls.saw(at(10), at(70), Some(0), &[]);
        stalls.saw(at(10), at(130), Some(0), &[]);
        stalls.saw(at(16), at(140), None, &[]);
        let seen: Vec<_> = stalls.seen().cloned().collect();
        assert_eq!(seen, [Stall { start: at(10), end: at(140), worker: Some(0), who: None }]);
        stalls.saw(at(60), at(139), Some(1), &[]);
        assert_eq!(stalls.seen().count(), 2);
    }

    #[test]
    fn old_long_tasks_fall_out_and_are_counted() {
        let mut stalls = Stalls::default();
        for n in 0..(KEPT as u64 + 7) {
            stalls.saw(at(n * 100), at(n * 100 + 60), None, &[]);
        }
        assert_eq!((stalls.seen().count(), stalls.forgotten()), (KEPT, 7));
    }
}
