//! The spool, on the runtime's blocking pool: one call at a time, none waited for longer than a time limit.

mod calls;
mod last;
mod rows;

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};

use self::calls::{Call, Done};
use super::Driver;
use crate::answer::Answerer;
use crate::core::{Batch, DeadBatch, MAX_LETTER, Moment, Now};
use crate::dead::{DeadId, DeadLetter};
use crate::event::BeaconEvent;
use crate::shared::lock;
use crate::spool::{Durability, Spool, SpoolOptions};

/// A disk that does not answer within this time is left behind.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);

/// On the way out so many batches are written at a time: what is written when time is up is saved, and compressing them
/// takes milliseconds.
const WRITE_AT_ONCE: usize = 10;

/// A spool that does not work is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// How often expired rows, and what neighbours left that have died, are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(600);

#[derive(Debug, Clone)]
pub(crate) struct DiskOptions {
    pub(crate) spool: Option<SpoolOptions>,
    pub(crate) durability: Durability,
}

impl DiskOptions {
    pub(crate) fn has_spool(&self) -> bool {
        self.spool.is_some()
    }

    pub(crate) fn is_buffered(&self) -> bool {
        self.durability == Durability::Buffered
    }
}

/// What the application asks of the dead letters.
#[derive(Debug)]
pub(crate) enum DeadCommand {
    List { after: Option<DeadId>, limit: usize, answer: Answerer<Result<Vec<DeadLetter>, String>> },
    Replay { ids: Vec<DeadId>, answer: Answerer<Result<u64, String>> },
    Purge { ids: Option<Vec<DeadId>>, answer: Answerer<Result<u64, String>> },
}

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
    Rows(Vec<i64>),
    Batches(Vec<Batch>),
    Dead(Vec<DeadBatch>),
    Erase { answer: Answerer<Result<u64, String>>, in_memory: u64 },
    Asked(DeadCommand),
}

pub(super) struct Disk {
    app: String,
    options: DiskOptions,
    spool: Option<Arc<Mutex<Spool>>>,
    /// Of a spool that was left behind.
    last_row: i64,
    busy: Option<(JoinHandle<Done>, InHand, Moment)>,
    /// It does not work, and is looked at again at this moment.
    trouble_until: Option<Moment>,
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

/// A call that ended, or was left behind, with what it had in hand.
pub(super) struct Finished(Result<Done, String>, InHand);

impl Disk {
    pub(super) fn new(app: String, options: DiskOptions) -> Disk {
        Disk {
            app,
            options,
            spool: None,
            last_row: 0,
            busy: None,
            trouble_until: None,
            asked: Vec::new(),
            erasing: Vec::new(),
            tidy_at: TIDY_EVERY,
            closing: false,
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Finished> {
        let Some((call, ..)) = &mut self.busy else { return Poll::Pending };
        let Poll::Ready(done) = std::pin::Pin::new(call).poll(cx) else { return Poll::Pending };
        let in_hand = self.busy.take().map_or(InHand::Nothing, |(_, in_hand, _)| in_hand);
        // A call is ours and does not panic; if it does, it has failed.
        Poll::Ready(Finished(done.map_err(|error| error.to_string()), in_hand))
    }

    pub(super) fn looks_again(&self) -> Moment {
        if !self.options.has_spool() {
            return Moment::MAX;
        }
        match (&self.busy, self.trouble_until) {
            (Some((_, _, until)), _) => *until,
            (None, Some(until)) => until,
            (None, None) => self.tidy_at,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// It works, and nothing is asked of it.
    pub(super) fn is_free(&self) -> bool {
        self.spool.is_some() && self.trouble_until.is_none() && !self.is_busy()
    }

    /// Before leaving, a disk that did not work is asked once more.
    pub(super) fn last_chance(&mut self) {
        self.trouble_until = None;
    }

    fn call(&mut self, call: Call, in_hand: InHand, now: Now) {
        let job = call.job(self.spool.clone(), self.options.durability, rows::stamp(now));
        self.busy = Some((spawn_blocking(job), in_hand, now.at + TIME_LIMIT));
    }

    /// What is being written is as good as lost.
    pub(super) fn give_up_writing(&mut self) -> Vec<Batch> {
        match self.busy.take() {
            Some((call, InHand::Batches(batches), _)) => {
                call.abort();
                batches
            }
            other => {
                self.busy = other;
                Vec::new()
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
        if self.is_busy() {
            return;
        }
        if let Some(spool) = self.spool.take() {
            self.busy = Some((spawn_blocking(move || calls::close(spool)), InHand::Nothing, Moment::MAX));
        }
    }
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
        if let Some((_, _, until)) = &self.disk.busy {
            if *until > now.at {
                return;
            }
            self.leave_behind(now);
        }
        if self.disk.closing || self.phase().is_some_and(|phase| phase != super::leave::Phase::Sending) {
            return;
        }
        match self.disk.trouble_until {
            Some(until) if until > now.at => return self.refuse_disk(now),
            Some(_) => {
                self.disk.trouble_until = None;
                if self.disk.spool.is_some() {
                    self.recovered();
                }
            }
            None => {}
        }
        if let Some((call, in_hand)) = self.next_call(now) {
            self.disk.call(call, in_hand, now);
        }
    }

    /// On the way out: what is in memory, dead letters and rows that are done with. True: something is being done.
    pub(super) fn begin_parting_call(&mut self, now: Now) -> bool {
        if self.disk.spool.is_none() || self.disk.trouble_until.is_some() {
            return false;
        }
        let mut core = self.shared.core();
        let batches = core.take_to_leave(WRITE_AT_ONCE, now);
        let call = if batches.is_empty() {
            calls::leftovers(&mut core, now)
        } else {
            Some(calls::put(batches, now))
        };
        drop(core);
        let Some((call, in_hand)) = call else { return false };
        self.disk.call(call, in_hand, now);
        true
    }

    fn next_call(&mut self, now: Now) -> Option<(Call, InHand)> {
        if self.disk.spool.is_none() {
            let options = self.disk.options.spool.clone()?;
            let open = Call::Open { options, app: self.disk.app.clone(), last_row: self.disk.last_row };
            return Some((open, InHand::Nothing));
        }
        let may_replay = self.may_replay();
        let mut core = self.shared.core();
        let batches = core.take_for_disk(now);
        if !batches.is_empty() {
            return Some(calls::put(batches, now));
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
            Ok(done) => self.call_done(done, in_hand, now),
            Err(why) => self.call_failed(&why, in_hand, now),
        }
    }

    /// The call goes on somewhere, and what it had in hand goes on here.
    fn leave_behind(&mut self, now: Now) {
        let Some((_, in_hand, _)) = self.disk.busy.take() else { return };
        self.disk.spool = None;
        self.call_failed("the disk did not answer in time", in_hand, now);
        let last = self.shared.core().spool_left_behind();
        self.disk.last_row = self.disk.last_row.max(last);
    }

    fn call_failed(&mut self, why: &str, in_hand: InHand, now: Now) {
        self.disk.trouble_until = Some(now.at + TRY_AGAIN);
        self.shared.core().spool_lost();
        match in_hand {
            InHand::Nothing => {}
            InHand::Rows(rows) => self.shared.core().keep_settled_rows(rows),
            InHand::Batches(batches) => self.shared.core().not_spooled(batches, why),
            InHand::Dead(dead) => self.shared.core().keep_dead(dead),
            InHand::Erase { answer, .. } => answer.say(Err(why.to_owned())),
            InHand::Asked(command) => refuse(command, why),
        }
        let first = lock(&self.shared.quality).spool_trouble.replace(why.to_owned()).is_none();
        if first {
            tracing::warn!(why, "the spool does not work: events stay in memory");
            self.tell(|| BeaconEvent::SpoolTrouble { why: why.to_owned() });
        }
    }

    fn recovered(&mut self) {
        self.shared.core().spool_found();
        if lock(&self.shared.quality).spool_trouble.take().is_some() {
            self.tell(|| BeaconEvent::SpoolBack);
        }
    }

    /// While it does not work, nobody waits for it.
    fn refuse_disk(&mut self, now: Now) {
        let why = lock(&self.shared.quality).spool_trouble.clone().unwrap_or_default();
        let mut core = self.shared.core();
        let batches = core.take_for_disk(now);
        core.not_spooled(batches, &why);
        drop(core);
        self.refuse_commands(&why);
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
