//! What is asked of the spool, and what its answers change.

use std::collections::HashSet;

use super::{InHand, rows};
use crate::driver::event_loop::Driver;
use crate::engine::ledger::DropReason;
use crate::engine::{Batch, BeaconEvent, Core, Now};
use crate::spool::{
    Adopted, Change, DeadId, DeadLetter, Durability, Erased, Evicted, Lost, NewDead, NewRow, Put, Replayed,
    Row, RowId, Spool, SpoolError, SpoolOptions, Stamp,
};
use crate::state::command::DeadCommand;

/// So many rows are read back at a time.
const REPLAY_AT_ONCE: usize = 50;

type Result<T> = std::result::Result<T, SpoolError>;

#[derive(Debug)]
pub(super) enum Call {
    Open {
        options: SpoolOptions,
        app: String,
        last_row: i64,
    },
    Put {
        gone: Vec<RowId>,
        rows: Vec<NewRow>,
    },
    Bury(Vec<NewDead>),
    Delete(Vec<i64>),
    Replay {
        user: Option<String>,
        skip: HashSet<i64>,
        adopts: bool,
    },
    Tidy,
    Erase(String),
    ListDead {
        after: Option<DeadId>,
        limit: usize,
    },
    ReplayDead(Vec<DeadId>),
    PurgeDead(Option<Vec<DeadId>>),
    /// All that there is, when there is no runtime any more.
    Last {
        gone: Vec<RowId>,
        rows: Vec<NewRow>,
        dead: Vec<NewDead>,
    },
    /// Does it work again?
    Probe,
    Close,
}

/// What a call brought, and what was found to be lost meanwhile.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) answer: Answer,
    lost: Lost,
}

impl Done {
    fn new(answer: Answer) -> Done {
        Done { answer, lost: Lost::default() }
    }
}

#[derive(Debug)]
pub(super) enum Answer {
    Opened(Result<()>),
    Written(Result<Put>),
    Buried(Result<Put>),
    Deleted(Result<()>),
    Replay(Box<Adopted>, Result<(Vec<Evicted>, Vec<Row>)>),
    Tidied(Result<Vec<Evicted>>),
    Erased(Result<Erased>),
    DeadList(Result<Vec<DeadLetter>>),
    DeadReplayed(Result<Replayed>),
    DeadPurged(Result<Vec<Evicted>>),
    Probed(Result<()>),
    Closed,
}

pub(super) fn put(mut batches: Vec<Batch>) -> (Call, InHand) {
    let gone = rows::replaced(&batches);
    let rows = batches.iter_mut().map(rows::row_of).collect();
    (Call::Put { gone, rows }, InHand::Batches(batches))
}

/// Dead letters first: they are written before the rows that they were in are deleted.
pub(super) fn leftovers(core: &mut Core, now: Now) -> Option<(Call, InHand)> {
    let mut dead = core.take_dead();
    let letters = rows::letters_of(core, &mut dead, now);
    if !letters.is_empty() {
        return Some((Call::Bury(letters), InHand::Dead(dead)));
    }
    let settled = core.take_settled_rows();
    (!settled.is_empty()).then(|| (Call::Delete(settled.clone()), InHand::Rows(settled)))
}

impl Call {
    pub(super) fn of(command: &DeadCommand) -> Call {
        match command {
            DeadCommand::List { after, limit, .. } => Call::ListDead { after: *after, limit: *limit },
            DeadCommand::Replay { ids, .. } => Call::ReplayDead(ids.clone()),
            DeadCommand::Purge { ids, .. } => Call::PurgeDead(ids.clone()),
        }
    }

    /// What the disk's thread does, with the spool that it has open.
    pub(super) fn run(self, open: &mut Option<Spool>, durability: Durability, now: &Stamp) -> Done {
        match self {
            Call::Open { options, app, last_row } => {
                // Where there is one already, this changes nothing for anybody.
                let opened = match open {
                    Some(_) => Ok(()),
                    None => Spool::open_after(&options, &app, last_row).map(|spool| *open = Some(spool)),
                };
                Done::new(Answer::Opened(opened))
            }
            Call::Close => {
                let Some(mut spool) = open.take() else { return Done::new(Answer::Closed) };
                let lost = spool.last_look();
                // What it holds is on disk whether or not its log is written back.
                let _ = spool.close();
                Done { answer: Answer::Closed, lost }
            }
            call => {
                let Some(spool) = open else { return Done::new(Answer::Closed) };
                let answer = call.ask(spool, durability, now);
                Done { answer, lost: spool.take_lost() }
            }
        }
    }

    fn ask(self, spool: &mut Spool, durability: Durability, now: &Stamp) -> Answer {
        match self {
            Call::Open { .. } | Call::Close => Answer::Closed,
            Call::Probe => Answer::Probed(spool.probe()),
            Call::Put { gone, rows } => {
                let change = Change { gone: &gone, rows: &rows, dead: &[] };
                Answer::Written(spool.change(change, durability, now))
            }
            Call::Last { gone, rows, dead } => {
                let change = Change { gone: &gone, rows: &rows, dead: &dead };
                Answer::Written(spool.change(change, durability, now))
            }
            Call::Bury(dead) => {
                let change = Change { dead: &dead, ..Change::default() };
                Answer::Buried(spool.change(change, durability, now))
            }
            Call::Delete(rows) => {
                let rows: Vec<RowId> = rows.into_iter().map(RowId).collect();
                Answer::Deleted(spool.delete(&rows))
            }
            Call::Replay { user, skip, adopts } => {
                let adopted = if adopts {
                    spool.adopt(user.as_deref(), now, REPLAY_AT_ONCE * 20)
                } else {
                    Adopted::default()
                };
                let expired = spool.expire(now);
                let skips = |row: RowId| skip.contains(&row.0);
                let rows = expired.and_then(|expired| {
                    let rows = spool.list(user.as_deref(), now, skips, REPLAY_AT_ONCE)?;
                    Ok((expired, rows))
                });
                Answer::Replay(Box::new(adopted), rows)
            }
            Call::Tidy => Answer::Tidied(spool.expire(now)),
            Call::Erase(user) => Answer::Erased(spool.erase_user(&user)),
            Call::ListDead { after, limit } => Answer::DeadList(spool.list_dead(after, limit)),
            Call::ReplayDead(ids) => Answer::DeadReplayed(spool.replay_dead(&ids, now)),
            Call::PurgeDead(ids) => Answer::DeadPurged(spool.purge_dead(ids.as_deref())),
        }
    }
}

/// What an answer says of the disk.
enum Verdict {
    /// It holds something that it did not hold before.
    Took,
    Works,
    /// It failed, or what was asked for may have been wrong.
    Neither,
}

impl Answer {
    fn verdict(&self) -> Verdict {
        match self {
            Answer::Opened(Ok(_)) | Answer::Written(Ok(_)) | Answer::Buried(Ok(_)) => Verdict::Took,
            Answer::Deleted(Ok(())) | Answer::Replay(_, Ok(_)) | Answer::Tidied(Ok(_)) => Verdict::Works,
            Answer::Erased(Ok(_)) | Answer::DeadList(Ok(_)) | Answer::DeadReplayed(Ok(_)) => Verdict::Works,
            Answer::DeadPurged(Ok(_)) | Answer::Probed(Ok(())) => Verdict::Works,
            _ => Verdict::Neither,
        }
    }
}

impl Driver {
    pub(super) fn call_done(&mut self, done: Done, in_hand: InHand, now: Now) {
        rows::lost(&mut self.shared.core(), done.lost);
        let failed = |error: SpoolError| error.to_string();
        match done.answer.verdict() {
            Verdict::Took => {
                self.disk.took_something();
                self.works();
            }
            Verdict::Works => self.works(),
            Verdict::Neither => {}
        }
        match (done.answer, in_hand) {
            (Answer::Opened(Ok(())), _) => {
                self.disk.is_open = true;
                self.shared.core().begin(now);
            }
            (Answer::Written(Ok(put)), InHand::Batches(batches)) => {
                let events = batches.iter().map(Batch::events).sum();
                rows::spooled(&mut self.shared.core(), batches, &put, now);
                self.tell(|| BeaconEvent::Spooled { events });
            }
            // What it had in hand went on in memory: these rows are copies, which nobody knows of.
            (Answer::Written(Ok(put)), InHand::LeftBehind) => {
                self.shared.core().written_late(put.ids.iter().map(|id| id.0));
                rows::put(&mut self.shared.core(), &put);
            }
            (Answer::Buried(Ok(put)), _) => rows::put(&mut self.shared.core(), &put),
            (Answer::Deleted(Ok(())) | Answer::Probed(Ok(())), _) => {}
            (Answer::Closed, InHand::Nothing | InHand::LeftBehind) => {}
            (Answer::Replay(adopted, rows), _) => self.replay(*adopted, rows, now),
            (Answer::Tidied(Ok(expired)), _) => {
                self.evicted(&expired);
                // A neighbour may have died since the last look.
                self.shared.core().begin(now);
            }
            (Answer::Erased(Ok(erased)), in_hand) => {
                self.evicted(&erased.rows);
                rows::found_lost(&mut self.shared.core(), &erased.orphans);
                let on_disk = [erased.rows, erased.orphans, erased.dead];
                let on_disk: u64 = on_disk.iter().flatten().map(|gone| u64::from(gone.events)).sum();
                if let InHand::Erase { answer, in_memory } = in_hand {
                    answer.say(match erased.failed {
                        None => Ok(in_memory + on_disk),
                        Some(error) => Err(error.to_string()),
                    });
                }
            }
            (Answer::DeadList(letters), in_hand) => {
                if let InHand::Asked(DeadCommand::List { answer, .. }) = in_hand {
                    answer.say(letters.map_err(failed));
                }
            }
            (Answer::DeadReplayed(replayed), in_hand) => {
                if let Ok(replayed) = &replayed {
                    self.shared.core().dead_replayed(replayed.own, replayed.others, now);
                    self.evicted(&replayed.evicted);
                }
                if let InHand::Asked(DeadCommand::Replay { answer, .. }) = in_hand {
                    answer.say(replayed.map(|replayed| replayed.own + replayed.others).map_err(failed));
                }
            }
            (Answer::DeadPurged(purged), in_hand) => {
                let events = |gone: Vec<Evicted>| gone.iter().map(|gone| u64::from(gone.events)).sum();
                if let InHand::Asked(DeadCommand::Purge { answer, .. }) = in_hand {
                    answer.say(purged.map(events).map_err(failed));
                }
            }
            (Answer::Opened(Err(error)), in_hand)
            | (Answer::Written(Err(error)) | Answer::Buried(Err(error)), in_hand)
            | (Answer::Deleted(Err(error)) | Answer::Probed(Err(error)), in_hand)
            | (Answer::Tidied(Err(error)), in_hand)
            | (Answer::Erased(Err(error)), in_hand) => self.call_failed(&error.to_string(), in_hand, now),
            // A call's answer comes with what the call had in hand: whatever else comes, nothing is let fall.
            (_, in_hand) => self.call_failed("its answer was to another call", in_hand, now),
        }
    }

    fn replay(&mut self, adopted: Adopted, rows: Result<(Vec<Evicted>, Vec<Row>)>, now: Now) {
        if adopted.events > 0 {
            self.shared.core().adopted(adopted.events);
            self.tell(|| BeaconEvent::Adopted { events: adopted.events });
        }
        self.evicted(&adopted.evicted);
        let mut core = self.shared.core();
        rows::found_lost(&mut core, &adopted.expired);
        rows::found_lost(&mut core, &adopted.damaged);
        rows::letters_dropped(&mut core, &adopted.dead_dropped);
        drop(core);
        if adopted.unreadable > 0 {
            tracing::warn!(
                files = adopted.unreadable,
                "a spool that another process left behind cannot be read, nor how many events it held"
            );
            // How many is not known.
            self.tell(|| BeaconEvent::Dropped { reason: DropReason::Corrupt, events: 0 });
        }
        if let Some(error) = &adopted.failed {
            tracing::warn!(%error, "a spool that another process left behind could not be taken over");
        }
        match rows {
            Ok((expired, rows)) => {
                self.evicted(&expired);
                let (batches, damaged) = rows::read(rows, now);
                let events = batches.iter().map(|listed| listed.batch.events()).sum();
                let mut core = self.shared.core();
                core.unreadable(&damaged);
                core.listed(batches, now);
                if adopted.later {
                    core.look_again(now);
                }
                drop(core);
                if events > 0 {
                    self.tell(|| BeaconEvent::Replaying { events });
                }
            }
            Err(error) => self.call_failed(&error.to_string(), InHand::Nothing, now),
        }
    }

    fn evicted(&self, evicted: &[Evicted]) {
        let evicted: Vec<_> = evicted.iter().map(rows::evicted).collect();
        self.shared.core().evicted(&evicted);
    }
}
