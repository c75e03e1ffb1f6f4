//! The spool, on a thread of its own: one call at a time, none waited for longer than a time limit.

mod calls;
mod last;
mod rows;
mod trouble;
mod worker;

use std::fmt;
use std::mem;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::event_loop::Driver;
use crate::base::bounds::MAX_LETTER;
use crate::driver::disk::calls::{Call, Done};
use crate::driver::disk::trouble::{Attempt, Trouble};
use crate::driver::disk::worker::Worker;
use crate::engine::{Batch, DeadBatch, Moment, Now};
use crate::state::command::DeadCommand;
use crate::state::reply::{Answerer, Asker};
use crate::state::settings::DiskOptions;

/// A disk that does not answer within this time is left behind.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);

/// On the way out so many batches are written at a time: what is written when time is up is saved, and compressing them
/// takes milliseconds.
const WRITE_AT_ONCE: usize = 10;

/// How often expired rows, and what neighbours left that have died, are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(600);

/// A user whose events in memory are gone, and whose rows are to go.
struct Erasing {
    user: String,
    answer: Answerer<Result<u64, String>>,
    in_memory: u64,
}

/// What a call has in hand, to be given back if it fails.
#[derive(Debug)]
enum InHand {
    Nothing,
    /// The call took too long, and this went on without it.
    LeftBehind,
    Rows(Vec<i64>),
    Batches(Vec<Batch>),
    Dead(Vec<DeadBatch>),
    Erase {
        answer: Answerer<Result<u64, String>>,
        in_memory: u64,
    },
    Asked(DeadCommand),
}

/// A call under way.
struct Busy {
    done: Asker<Done>,
    in_hand: InHand,
    until: Moment,
    /// It was to be done by then, and it is not: nobody waits for it any more, and nothing else is asked.
    is_late: bool,
}

pub(super) struct Disk {
    app: String,
    options: DiskOptions,
    worker: Option<Worker>,
    /// The worker has the spool.
    is_open: bool,
    /// Of a spool that went with its thread.
    last_row: i64,
    busy: Option<Busy>,
    trouble: Option<Trouble>,
    again_after: Duration,
    asked: Vec<DeadCommand>,
    erasing: Vec<Erasing>,
    tidy_at: Moment,
    closing: bool,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("options", &self.options)
            .field("busy", &self.busy.is_some())
            .finish_non_exhaustive()
    }
}

/// A call that ended with what it had in hand. None: its thread ended with it.
pub(super) struct Finished(Option<Done>, InHand);

impl Disk {
    pub(super) fn new(app: String, options: DiskOptions) -> Disk {
        Disk {
            app,
            options,
            worker: None,
            is_open: false,
            last_row: 0,
            busy: None,
            trouble: None,
            again_after: Disk::first_again(),
            asked: Vec::new(),
            erasing: Vec::new(),
            tidy_at: TIDY_EVERY,
            closing: false,
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Finished> {
        let Some(busy) = &mut self.busy else { return Poll::Pending };
        let Poll::Ready(done) = busy.done.poll(cx) else {
            // A paused clock jumps as soon as its runtime has nothing to do, and the disk's thread is none of it.
            if !busy.is_late && clock_stands_still() {
                std::thread::yield_now();
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        };
        let in_hand = self.busy.take().map_or(InHand::Nothing, |busy| busy.in_hand);
        Poll::Ready(Finished(done, in_hand))
    }

    pub(super) fn looks_again(&self) -> Moment {
        if !self.options.has_spool() {
            return Moment::MAX;
        }
        match (&self.busy, &self.trouble) {
            (Some(busy), _) if busy.is_late => Moment::MAX,
            (Some(busy), _) => busy.until,
            (None, Some(trouble)) => trouble.again(),
            (None, None) => self.tidy_at,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    pub(super) fn is_late(&self) -> bool {
        self.busy.as_ref().is_some_and(|busy| busy.is_late)
    }

    /// It works, and nothing is asked of it.
    pub(super) fn is_free(&self) -> bool {
        self.is_open && self.trouble.is_none() && !self.is_busy()
    }

    /// Before leaving, a disk that did not work is asked once more.
    pub(super) fn last_chance(&mut self) {
        self.trouble = None;
    }

    /// What is being written is as good as lost.
    pub(super) fn give_up_writing(&mut self) -> Vec<Batch> {
        match self.busy.take() {
            Some(Busy { in_hand: InHand::Batches(batches), .. }) => batches,
            other => {
                self.busy = other;
                Vec::new()
            }
        }
    }

    pub(super) fn close(&mut self, now: Now) {
        self.closing = true;
        if self.is_late() {
            // It closes by itself, if its call ever ends.
            (self.busy, self.worker) = (None, None);
        }
        if self.is_busy() {
            return;
        }
        if let Some(worker) = self.worker.take().filter(|_| self.is_open) {
            let done = worker.ask(Call::Close, self.options.durability, rows::stamp(now));
            let in_hand = InHand::Nothing;
            self.busy = Some(Busy { done, in_hand, until: Moment::MAX, is_late: false });
        }
    }
}

/// Is tokio's clock paused? A clock that runs shows two moments, and one that is too coarse for it costs nothing but a
/// look more.
fn clock_stands_still() -> bool {
    Instant::now() == Instant::now()
}

impl Driver {
    pub(super) fn work_on_disk(&mut self, now: Now) {
        if !self.disk.options.has_spool() {
            let mut core = self.shared.core();
            core.take_dead();
            let batches = core.take_for_disk(now);
            core.without_disk(batches);
            drop(core);
            return self.refuse_commands("the beacon has no spool");
        }
        match &self.disk.busy {
            Some(busy) if busy.is_late => return self.refuse_disk(now),
            Some(busy) if busy.until > now.at => return,
            Some(_) => {
                self.leave_behind(now);
                return self.refuse_disk(now);
            }
            None => {}
        }
        if self.disk.closing || self.phase().is_some_and(|phase| phase != super::shutdown::Phase::Sending) {
            return;
        }
        let attempt = self.disk.trouble.map(|trouble| trouble.attempt(now));
        if attempt == Some(Attempt::No) {
            return self.refuse_disk(now);
        }
        let wanted = attempt == Some(Attempt::Wanted);
        if wanted && !self.disk_is_wanted() {
            return;
        }
        let Some((call, in_hand)) = self.next_call(now) else {
            if attempt == Some(Attempt::Any) {
                self.ask_disk(Call::Probe, InHand::Nothing, now);
            }
            return;
        };
        self.ask_disk(call, in_hand, now);
    }

    /// Does somebody wait for it?
    fn disk_is_wanted(&self) -> bool {
        let commands = !self.disk.asked.is_empty() || !self.disk.erasing.is_empty();
        commands || self.shared.core().somebody_waits_for_the_disk()
    }

    /// False: no thread is to be had for it.
    fn ask_disk(&mut self, call: Call, in_hand: InHand, now: Now) -> bool {
        if self.disk.worker.is_none() {
            match Worker::start() {
                Ok(worker) => self.disk.worker = Some(worker),
                Err(error) => {
                    self.call_failed(&format!("no thread can be had for the disk: {error}"), in_hand, now);
                    return false;
                }
            }
        }
        if let Some(worker) = &self.disk.worker {
            let done = worker.ask(call, self.disk.options.durability, rows::stamp(now));
            let until = now.at.saturating_add(TIME_LIMIT);
            self.disk.busy = Some(Busy { done, in_hand, until, is_late: false });
        }
        true
    }

    /// On the way out: what is in memory, dead letters and rows that are done with. True: something is being done.
    pub(super) fn begin_parting_call(&mut self, now: Now) -> bool {
        if self.disk.trouble.is_some() || self.disk.is_busy() {
            return false;
        }
        if !self.disk.is_open {
            let Some(open) = self.open_call() else { return false };
            let needed = !self.shared.core().is_drained();
            return needed && self.ask_disk(open, InHand::Nothing, now);
        }
        let mut core = self.shared.core();
        let batches = core.take_to_leave(WRITE_AT_ONCE, now);
        let call =
            if batches.is_empty() { calls::leftovers(&mut core, now) } else { Some(calls::put(batches)) };
        drop(core);
        let Some((call, in_hand)) = call else { return false };
        self.ask_disk(call, in_hand, now)
    }

    fn open_call(&self) -> Option<Call> {
        let options = self.disk.options.spool.clone()?;
        Some(Call::Open { options, app: self.disk.app.clone(), last_row: self.disk.last_row })
    }

    fn next_call(&mut self, now: Now) -> Option<(Call, InHand)> {
        if !self.disk.is_open {
            return self.open_call().map(|open| (open, InHand::Nothing));
        }
        let may_replay = self.may_replay();
        let mut core = self.shared.core();
        let batches = core.take_for_disk(now);
        if !batches.is_empty() {
            return Some(calls::put(batches));
        }
        if let Some(call) = calls::leftovers(&mut core, now) {
            return Some(call);
        }
        if let Some(Erasing { user, answer, in_memory }) = self.disk.erasing.pop() {
            core.erase_replayed(&user);
            return Some((Call::Erase(user), InHand::Erase { answer, in_memory }));
        }
        if !self.disk.asked.is_empty() {
            let command = self.disk.asked.remove(0);
            return Some((Call::of(&command), InHand::Asked(command)));
        }
        if may_replay && core.wants_replay(now) {
            let user = core.begin_replay();
            let skip = core.resident_rows();
            // Who leaves takes nothing over.
            return Some((Call::Replay { user, skip, adopts: self.leaving.is_none() }, InHand::Nothing));
        }
        if now.at >= self.disk.tidy_at {
            self.disk.tidy_at = now.at + TIDY_EVERY;
            return Some((Call::Tidy, InHand::Nothing));
        }
        None
    }

    pub(super) fn disk_finished(&mut self, finished: Finished) {
        let now = self.shared.now();
        let Finished(done, in_hand) = finished;
        match done {
            Some(done) => self.call_done(done, in_hand, now),
            // A call is ours and does not panic; if it does, the spool has gone with it.
            None => {
                (self.disk.worker, self.disk.is_open) = (None, false);
                self.call_failed("the disk's thread ended", in_hand, now);
                let last = self.shared.core().spool_left_behind();
                self.disk.last_row = self.disk.last_row.max(last);
            }
        }
    }

    fn refuse_commands(&mut self, why: &str) {
        for command in mem::take(&mut self.disk.asked) {
            refuse(command, why);
        }
        for Erasing { answer, in_memory, .. } in mem::take(&mut self.disk.erasing) {
            // Where there is no spool, all that there is has been erased.
            let has_none = !self.disk.options.has_spool();
            answer.say(if has_none { Ok(in_memory) } else { Err(why.to_owned()) });
        }
    }

    pub(super) fn dead_command(&mut self, command: DeadCommand) {
        self.disk.asked.push(command);
    }

    pub(super) fn erase(&mut self, user: String, answer: Answerer<Result<u64, String>>, now: Now) {
        let in_memory = self.shared.core().erase_user(&user, now);
        // A name that fits into no row, which the database would not even look for.
        if user.len() > MAX_LETTER {
            return answer.say(Ok(in_memory));
        }
        self.disk.erasing.push(Erasing { user, answer, in_memory });
    }
}

fn refuse(command: DeadCommand, why: &str) {
    match command {
        DeadCommand::List { answer, .. } => answer.say(Err(why.to_owned())),
        DeadCommand::Replay { answer, .. } | DeadCommand::Purge { answer, .. } => {
            answer.say(Err(why.to_owned()))
        }
    }
}
