//! What the spool can be asked for, and what the disk's thread does then.

use std::collections::HashSet;

use super::payload::Payload;
use super::rows;
use crate::engine::{Batch, Core, Now};
use crate::spool::{
    Adopted, Change, DeadId, DeadLetter, Durability, Erased, Evicted, Lost, NewDead, NewRow, Put, Replayed,
    Row, RowId, Spool, SpoolError, SpoolOptions, Stamp,
};
use crate::state::command::DeadCommand;

/// So many rows are read back at a time.
const REPLAY_AT_ONCE: usize = 50;

pub(super) type Result<T> = std::result::Result<T, SpoolError>;

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
    /// A test of a disk that failed.
    Probe,
    Close,
}

/// The result of a call, and the losses that were found meanwhile.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: CallResult,
    pub(super) lost: Lost,
}

impl Done {
    fn new(result: CallResult) -> Done {
        Done { result, lost: Lost::default() }
    }
}

#[derive(Debug)]
pub(super) enum CallResult {
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

pub(super) fn put(mut batches: Vec<Batch>) -> (Call, Payload) {
    let gone = rows::replaced(&batches);
    let rows = batches.iter_mut().map(rows::row_of).collect();
    (Call::Put { gone, rows }, Payload::Batches(batches))
}

/// Dead letters first: they are written before the rows that they were in are deleted.
pub(super) fn leftovers(core: &mut Core, now: Now) -> Option<(Call, Payload)> {
    let mut dead = core.take_dead();
    let letters = rows::letters_of(core, &mut dead, now);
    if !letters.is_empty() {
        return Some((Call::Bury(letters), Payload::Dead(dead)));
    }
    let settled = core.take_settled_rows();
    (!settled.is_empty()).then(|| (Call::Delete(settled.clone()), Payload::Rows(settled)))
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
                // Where there is one already, this changes nothing.
                let opened = match open {
                    Some(_) => Ok(()),
                    None => Spool::open_after(&options, &app, last_row).map(|spool| *open = Some(spool)),
                };
                Done::new(CallResult::Opened(opened))
            }
            Call::Close => {
                let Some(mut spool) = open.take() else { return Done::new(CallResult::Closed) };
                let lost = spool.last_look();
                // What it holds is on disk whether or not its log is written back.
                let _ = spool.close();
                Done { result: CallResult::Closed, lost }
            }
            call => {
                let Some(spool) = open else { return Done::new(CallResult::Closed) };
                let result = call.run_open(spool, durability, now);
                Done { result, lost: spool.take_lost() }
            }
        }
    }

    fn run_open(self, spool: &mut Spool, durability: Durability, now: &Stamp) -> CallResult {
        match self {
            Call::Open { .. } | Call::Close => CallResult::Closed,
            Call::Probe => CallResult::Probed(spool.probe()),
            Call::Put { gone, rows } => {
                let change = Change { gone: &gone, rows: &rows, dead: &[] };
                CallResult::Written(spool.change(change, durability, now))
            }
            Call::Last { gone, rows, dead } => {
                let change = Change { gone: &gone, rows: &rows, dead: &dead };
                CallResult::Written(spool.change(change, durability, now))
            }
            Call::Bury(dead) => {
                let change = Change { dead: &dead, ..Change::default() };
                CallResult::Buried(spool.change(change, durability, now))
            }
            Call::Delete(rows) => {
                let rows: Vec<RowId> = rows.into_iter().map(RowId).collect();
                CallResult::Deleted(spool.delete(&rows))
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
                CallResult::Replay(Box::new(adopted), rows)
            }
            Call::Tidy => CallResult::Tidied(spool.expire(now)),
            Call::Erase(user) => CallResult::Erased(spool.erase_user(&user)),
            Call::ListDead { after, limit } => CallResult::DeadList(spool.list_dead(after, limit)),
            Call::ReplayDead(ids) => CallResult::DeadReplayed(spool.replay_dead(&ids, now)),
            Call::PurgeDead(ids) => CallResult::DeadPurged(spool.purge_dead(ids.as_deref())),
        }
    }
}

/// What a result says of the disk.
pub(super) enum Evidence {
    /// It holds something that it did not hold before.
    Wrote,
    Works,
    /// It failed, or what was asked for may have been wrong.
    Nothing,
}

impl CallResult {
    pub(super) fn evidence(&self) -> Evidence {
        match self {
            CallResult::Opened(Ok(_)) | CallResult::Written(Ok(_)) | CallResult::Buried(Ok(_)) => {
                Evidence::Wrote
            }
            CallResult::Deleted(Ok(())) | CallResult::Replay(_, Ok(_)) | CallResult::Tidied(Ok(_)) => {
                Evidence::Works
            }
            CallResult::Erased(Ok(_)) | CallResult::DeadList(Ok(_)) | CallResult::DeadReplayed(Ok(_)) => {
                Evidence::Works
            }
            CallResult::DeadPurged(Ok(_)) | CallResult::Probed(Ok(())) => Evidence::Works,
            _ => Evidence::Nothing,
        }
    }
}
