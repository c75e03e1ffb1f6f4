//! What if: simulates a recorded run under another profile, in virtual time.
//!
//! The governor's own core decides; `script` reads its input from the report, and `world` drives it.

mod script;
mod world;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use crate::base::text::{Padded, Plain};
use crate::model::gate_state::{GateState, OpenedBy, WaitReason};
use crate::model::profile::Profile;
use crate::model::queue::Queue;
use crate::model::replay_error::{ReplayError, Unplayable};

use super::{Report, TaskReport, fit};
use script::Script;
use world::World;

/// The form of report that is understood here.
const VERSION: u32 = 1;

/// The simulation of a recorded run under a profile; see [`Report::replay`]. All times are since `build()`.
///
/// `Display` prints a table of at most 100 columns.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Replay {
    /// The profile's text form.
    pub profile: String,
    /// The tasks in the report, in order of declaration.
    pub tasks: Vec<ReplayedTask>,
    /// The numbers of the tasks that start, in the order of their starts.
    pub start_order: Vec<u64>,
    /// When the last task started.
    pub last_start: Option<Duration>,
    /// When the last started task ended.
    pub last_finish: Option<Duration>,
    /// When the gate opened, if it did.
    pub gate_opened: Option<Duration>,
    /// The longest period in which the lane was never idle: governed polls one after another, with one tick between any
    /// two.
    pub longest_stretch: Duration,
    /// Whether this is an estimate, not a reproduction of the recorded run: the profile differs, or the report lacks
    /// something that influenced the run.
    pub is_estimate: bool,
}

/// One task in a [`Replay`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ReplayedTask {
    /// The number of tasks declared before it in the recorded run.
    pub number: u64,
    /// Its name in the report.
    pub name: String,
    /// The queue it was declared for.
    pub queue: Queue,
    /// When its first poll began; `None` if it does not run.
    pub started: Option<Duration>,
    /// When it ended.
    pub finished: Option<Duration>,
}

impl Report {
    /// Simulates the recorded run under this profile in virtual time, without a clock, a runtime or the tasks' code.
    /// Deterministic: the same report and profile give the same replay.
    ///
    /// The governor's scheduler decides the order, on one thread. The recording provides each task's declaration,
    /// predecessors and outcome, the lengths of its polls and its own waits between them, and the application's
    /// actions: demands, cancellations, `ready`, `open_gate`, and its long tasks while the probe ran. A wait for
    /// another task's handle ends with that task. A retried task waits as long as recorded and queues again; if its
    /// polls were merged because there were too many, its attempts are simulated as one.
    ///
    /// Under the recorded profile the gate opens when it did and the same tasks start by the same rules, nearly always in
    /// the recorded order and within a few milliseconds of the recorded times on a current_thread runtime; under a paused
    /// clock to the nanosecond. How late threads woke up is not simulated: if that decided which of two tasks was polled
    /// first, the replay may poll the other one first, and everything after it moves. That is rare on an idle machine,
    /// and affects one run of ten on an overloaded one.
    ///
    /// Under any other profile it is an **estimate**, see [`Replay::is_estimate`]. Not modelled are:
    ///
    /// - the effect of contention and caches on the length of polls and waits, and work on other workers:
    ///   everything on a multi_thread runtime is an estimate at best;
    /// - dependencies between tasks other than handles and declared order;
    /// - how the application would have reacted: it declares, demands and cancels at the recorded times, or when the
    ///   governed task that did so reaches that point;
    /// - timeouts: a task that timed out does so after the same polls and waits;
    /// - requests in flight, except where they held an idle start; a gate that they kept shut opens at the recorded
    ///   time.
    ///
    /// If the profile's monkey is the recorded one, it delays the recorded victim; otherwise it selects among all
    /// tasks.
    ///
    /// # Errors
    /// Returns a [`ReplayError`] if the profile is invalid, if the report was made without
    /// [`record_segments`](crate::Builder::record_segments) or before all its tasks had ended, or if its version is not
    /// supported.
    pub fn replay(&self, profile: &Profile) -> Result<Replay, ReplayError> {
        profile.check().map_err(|error| ReplayError::new(Unplayable::Profile(error)))?;
        if self.version != VERSION {
            return Err(ReplayError::new(Unplayable::Version(self.version)));
        }
        let unended =
            self.tasks.iter().filter(|task| task.outcome.is_none() || task.finished.is_none()).count();
        if unended > 0 {
            return Err(ReplayError::new(Unplayable::Unended(unended)));
        }
        if self.tasks.iter().any(|task| task.polls > 0 && task.segments.is_empty()) {
            return Err(ReplayError::new(Unplayable::NoSegments));
        }
        let ended = self.tasks.iter().chain(&self.late_tasks).filter(|task| task.outcome.is_some());
        let mut played: Vec<&TaskReport> = ended.collect();
        played.sort_by_key(|task| task.number);
        let script = Script::of(self, &played, profile);
        let mut world = World::new(&script, profile, self.seed);
        world.play();
        Ok(self.replayed(profile, &played, &world))
    }

    fn replayed(&self, profile: &Profile, played: &[&TaskReport], world: &World<'_>) -> Replay {
        let in_scope: HashSet<u64> = self.tasks.iter().map(|task| task.number).collect();
        let mut tasks = Vec::new();
        for (place, task) in played.iter().enumerate().filter(|(_, task)| in_scope.contains(&task.number)) {
            let (started, finished) = world.times(place);
            let TaskReport { number, queue, .. } = **task;
            tasks.push(ReplayedTask { number, name: task.name.clone(), queue, started, finished });
        }
        let started = tasks.iter().filter(|task| task.started.is_some());
        // A condition that was false in its own tick began no code.
        let starts: HashSet<u64> = started.clone().map(|task| task.number).collect();
        let order = world.started.iter().map(|place| played[*place].number);
        let profile = profile.to_string();
        Replay {
            start_order: order.filter(|number| starts.contains(number)).collect(),
            last_start: started.clone().filter_map(|task| task.started).max(),
            last_finish: started.filter_map(|task| task.finished).max(),
            gate_opened: world.gate_opened(),
            longest_stretch: world.longest_stretch,
            is_estimate: profile != self.profile || self.leaves_out_what_mattered(),
            profile,
            tasks,
        }
    }

    fn leaves_out_what_mattered(&self) -> bool {
        let held_by_requests = matches!(
            &self.gate,
            GateState::Open { by: OpenedBy::Quiet, shut_by: WaitReason::InFlight { .. }, .. }
        );
        self.forgotten > 0
            || self.holds_forgotten > 0
            || self.long_tasks_forgotten > 0
            || held_by_requests
            || self.tasks.iter().any(|task| task.stuck)
    }
}

impl Replay {
    /// Returns when the last started task of this queue ended.
    pub fn last_finish_of(&self, queue: Queue) -> Option<Duration> {
        let of_it = self.tasks.iter().filter(|task| task.queue == queue && task.started.is_some());
        of_it.filter_map(|task| task.finished).max()
    }
}

/// The width of the whole, and of a name in it.
const WIDTH: usize = 100;
const NAME: usize = 40;

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: Option<Duration>| time.map_or("-".to_owned(), fit);
        let what = if self.is_estimate { "estimate" } else { "replay of the recorded run" };
        let (start, finish) = (time(self.last_start), time(self.last_finish));
        let text = format!("{what}: {} tasks; last start {start}, last end {finish}", self.tasks.len());
        write!(f, "{}", Plain(&text, WIDTH))?;
        write!(f, "\nprofile: {}", Plain(&self.profile, WIDTH - 9))?;
        let gate = self.gate_opened.map_or("shut".to_owned(), |at| format!("opened at {}", fit(at)));
        write!(f, "\ngate: {gate}")?;
        write!(f, "\n\n{:>10} {:<NAME$} {:<6} {:>9} {:>9}", "#", "task", "queue", "start", "end")?;
        for task in &self.tasks {
            let (queue, name) = (task.queue.word(), Padded(&task.name, NAME));
            let (start, finish) = (time(task.started), time(task.finished));
            write!(f, "\n{:>10} {name} {queue:<6} {start:>9} {finish:>9}", task.number)?;
        }
        Ok(())
    }
}
