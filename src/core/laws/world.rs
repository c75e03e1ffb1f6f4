//! The core as the shell drives it, beside a plain account of what must be true. Every step checks every law.

mod account;
mod declare;
mod drain;
mod ends;
mod gate;
mod lane;
mod told;
mod turns;
mod waits;

use std::time::Duration;

use super::{Event, STUCK_AFTER, Settings};
use crate::base::clock::Stamp;
use crate::core::{Actions, Class, Core, Loan};
use crate::model::id::Id;
use crate::model::outcome::{CancelReason, Outcome};
use crate::model::queue::Queue;

/// What is known of a task without asking the core.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: Id,
    /// Where it waits: a predecessor is promoted to the queue of its successors.
    pub(super) line: Queue,
    pub(super) head: bool,
    class: Class,
    /// Predecessors, each once, and whether it is enough that they end.
    after: Vec<(usize, bool)>,
    blocking: bool,
    never_delay: bool,
    timeout: Option<Duration>,
    deadline: Option<Stamp>,
    no_later: Option<Stamp>,
    pub(super) started: Option<Stamp>,
    /// It was started, whether or not its condition then let it.
    begun: bool,
    /// Its code may still run: it holds a slot, unless it is stuck.
    live: bool,
    pub(super) stuck: bool,
    pub(super) outcome: Option<Outcome>,
    demanded: bool,
    /// Demanded by the core itself.
    pub(super) demanded_by_governor: bool,
    /// In which step it came to stand among the demanded.
    jumped: Option<u64>,
    cancel_asked: bool,
    polls: u32,
    in_scope: bool,
    excluded_from_started: bool,
    awaits_the_end: bool,
    /// Its waits for the end of the run that it has not given up.
    ends_awaited: u32,
    /// Whom it waits for, once for each wait.
    waits_for: Vec<(usize, Loan)>,
    /// A wait that is over for the core and whose future is still there.
    stale_wait: Option<Loan>,
    delayed: Option<Stamp>,
    slow: bool,
    /// How many late tasks had left before it did.
    retired: Option<u64>,
    told_start: bool,
    told_starved: bool,
    told_end: bool,
}

impl Known {
    fn waits(&self) -> bool {
        self.started.is_none() && self.outcome.is_none()
    }

    fn runs_unresolved(&self) -> bool {
        self.live && self.outcome.is_none()
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) core: Core,
    settings: Settings,
    pub(super) now: Stamp,
    pub(super) tasks: Vec<Known>,
    /// Whom the lane polls, and since when.
    pub(super) polling: Option<usize>,
    poll_began: Stamp,
    /// Polls that were given up.
    stuck: Vec<usize>,
    turns: turns::Turns,
    steps: u64,
    /// What happens in this step, and who is cancelled by it.
    cause: Event,
    asked_to_end: Option<usize>,
    /// There is a lane.
    lane: bool,
    /// The lane was told to look since it went to sleep.
    awake: bool,
    /// The lane has seen something to do and lets a tick pass.
    ticking: bool,
    alarm: Option<Stamp>,
    first_declared: Option<Stamp>,
    last_first_poll: Option<Stamp>,
    /// When a task of the normal queue last started.
    queue_moved: Option<Stamp>,
    starving: Option<Stamp>,
    quiet: gate::Facts,
    sealed: bool,
    closed: Option<CancelReason>,
    /// Up to which place the shutdown has cancelled what waits, while there is more.
    cancelled_to: Option<usize>,
    floods: usize,
    /// Late tasks that were declared, and that have left.
    late: u64,
    late_left: u64,
    told: told::Told,
    announced: bool,
    come: [bool; 2],
}

impl World {
    pub(super) fn new(settings: &Settings) -> World {
        let now = Stamp::from_duration(Duration::ZERO);
        let mut core = Core::new(settings.profile.clone(), settings.gate.clone(), settings.seed);
        core.listen(true);
        World {
            core,
            settings: settings.clone(),
            now,
            tasks: Vec::new(),
            polling: None,
            poll_began: now,
            stuck: Vec::new(),
            turns: turns::Turns::default(),
            steps: 0,
            cause: Event::Look,
            asked_to_end: None,
            lane: false,
            awake: false,
            ticking: false,
            alarm: None,
            first_declared: None,
            last_first_poll: None,
            queue_moved: None,
            starving: None,
            quiet: gate::Facts::default(),
            sealed: false,
            closed: None,
            cancelled_to: None,
            floods: 0,
            late: 0,
            late_left: 0,
            told: told::Told::default(),
            announced: false,
            come: [true; 2],
        }
    }

    pub(super) fn step(&mut self, event: &Event) {
        self.steps += 1;
        self.cause = event.clone();
        self.announced = false;
        self.asked_to_end = None;
        let mut actions = Actions::default();
        match event {
            Event::Declare(declaration) => self.declare(declaration, &mut actions),
            Event::Flood => self.flood(),
            Event::Look => self.look(),
            Event::Pick => self.pick(&mut actions),
            Event::Turn => {
                self.look();
                self.pick(&mut actions);
            }
            Event::PollEnds(verdict) => self.poll_ends(*verdict),
            Event::GiveUpStuck => self.give_up_stuck(STUCK_AFTER),
            Event::StuckReturns(n, verdict) => self.stuck_returns(*n, *verdict),
            Event::Wake(n) => {
                if let Some(i) = self.which(*n) {
                    self.wake(i);
                }
            }
            Event::Demand(n) => {
                if let Some(i) = self.which(*n) {
                    self.core.demand(self.tasks[i].id, self.now, &mut actions);
                    self.demanded(i);
                }
            }
            Event::Cancel(n) => {
                self.asked_to_end = self.which(*n);
                if let Some(i) = self.asked_to_end {
                    let task = &mut self.tasks[i];
                    task.cancel_asked |= task.runs_unresolved() && !task.blocking && !task.stuck;
                    self.core.cancel(task.id, self.now, &mut actions);
                }
            }
            Event::WaitBegins { stuck, target } => self.wait_begins(*stuck, *target, &mut actions),
            Event::WaitEnds(n) => self.wait_ends(*n),
            Event::Wait(millis) => {
                self.now = self.now.after(Duration::from_millis(*millis));
                self.awake |= self.alarm.is_some_and(|at| at <= self.now);
            }
            Event::Seal => self.seal(),
            Event::AwaitEnd => {
                if let Some(i) = self.polling {
                    self.announced |= self.core.awaits_the_end(self.tasks[i].id);
                    self.tasks[i].ends_awaited += 1;
                    for i in self.with_successors(i) {
                        let task = &mut self.tasks[i];
                        task.awaits_the_end |= task.outcome.is_none();
                    }
                }
            }
            Event::AwaitEndNoMore(n) => {
                if let Some(i) = self.which(*n) {
                    self.core.awaits_the_end_no_more(self.tasks[i].id);
                    self.gives_up_the_end(i);
                }
            }
            Event::Close { lost } => {
                let why = if *lost { CancelReason::RuntimeGone } else { CancelReason::Shutdown };
                self.core.close_for(why, &mut actions);
                self.seal();
                if self.closed.is_none() {
                    (self.closed, self.cancelled_to) = (Some(why), Some(0));
                }
            }
            Event::CancelPiece => {
                let more = self.core.cancel_piece(self.now, &mut actions);
                self.a_piece_is_cancelled();
                assert_eq!(more, self.cancelled_to.is_some(), "whether there is more to cancel");
            }
            Event::EndRunning => {
                if self.cancelled_to.is_none() {
                    self.core.end_running(self.now, &mut actions);
                }
            }
            told => self.hear(told, &mut actions),
        }
        self.take(actions);
        self.nobody_sees_blocking_tasks_out(event);
        self.check();
    }

    /// Which task a number in an event means.
    pub(super) fn which(&self, n: usize) -> Option<usize> {
        let unended: Vec<usize> =
            (0..self.tasks.len()).filter(|&i| self.tasks[i].outcome.is_none()).collect();
        match unended.len() {
            0 => n.checked_rem(self.tasks.len()),
            _ if n < 16 => Some(n % self.tasks.len()),
            some => Some(unended[n % some]),
        }
    }

    fn place(&self, id: Id) -> usize {
        self.tasks.iter().position(|task| task.id == id).expect("the core names tasks that were declared")
    }

    pub(super) fn name(i: usize) -> String {
        format!("task {i}")
    }

    fn inside_a_poll(&self, i: usize) -> bool {
        self.polling == Some(i) || self.tasks[i].stuck
    }

    fn demanded(&mut self, i: usize) {
        if self.tasks[i].outcome.is_none() {
            self.tasks[i].demanded |= self.tasks[i].waits();
            self.raise(i, Class::Demanded, &[]);
        }
    }
}
