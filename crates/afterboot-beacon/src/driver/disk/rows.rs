//! Batches as rows, and rows as batches.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::base::machine::boot_id;
use crate::engine::ledger::DropReason;
use crate::engine::{Batch, Core, DeadBatch, EvictedRow, Now, ReplayedRow, RowRef};
use crate::spool::{
    self, Lost, MAX_INFLATED, MAX_ROW, NewDead, NewRow, Numbers, Put, Row, RowId, Stamp, Until, Why,
};
use crate::wire::{self, Gap, gunzip};

/// The clocks that the spool computes ages from.
pub(super) fn stamp(now: Now) -> Stamp {
    Stamp { wall: now.wall, mono: now.mono, boot: boot_id() }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn row_of(batch: &mut Batch) -> NewRow {
    let numbers = batch.slots().iter().map(|slot| slot.seq);
    let end = batch.head.end.unwrap_or(0);
    let first_seq = numbers.clone().min().unwrap_or(end);
    let last_seq = numbers.max().unwrap_or(end);
    NewRow {
        stream: batch.head.stream,
        first_seq,
        last_seq,
        priority: batch.priority(),
        user: batch.head.user.clone(),
        session: batch.head.session.clone(),
        events: u32::try_from(batch.len()).unwrap_or(u32::MAX),
        newest_at: batch.newest_at,
        expires_at: batch.newest_at.saturating_add(millis(batch.life)),
        until: Some(batch.expires),
        boot: batch.boot.to_string(),
        body: batch.body(),
    }
}

/// The rows that these batches are all that is left of: written anew they have the same numbers, at least at one end. A row
/// that holds a part of yet another batch stays.
pub(super) fn replaced(batches: &[Batch]) -> Vec<RowId> {
    let partial = || batches.iter().filter(|batch| batch.partial).flat_map(|batch| &batch.rows);
    let parts = |row: &RowRef| partial().filter(|other| Arc::ptr_eq(other, row)).count();
    let replaced: BTreeSet<i64> =
        partial().filter(|row| parts(row) == Arc::strong_count(row)).map(|row| **row).collect();
    replaced.into_iter().map(RowId).collect()
}

/// What is too large even for that is counted, and its content goes.
pub(super) fn letters_of(core: &mut Core, dead: &mut Vec<DeadBatch>, now: Now) -> Vec<NewDead> {
    let mut letters = Vec::with_capacity(dead.len());
    dead.retain_mut(|dead| match letter_of(dead, now) {
        Some(letter) => {
            letters.push(letter);
            true
        }
        None => {
            core.drop_dead_letters(DropReason::TooLarge, dead.batch.events());
            false
        }
    });
    letters
}

fn letter_of(dead: &mut DeadBatch, now: Now) -> Option<NewDead> {
    let batch = row_of(&mut dead.batch);
    (batch.body.len() <= MAX_ROW).then(|| NewDead {
        batch,
        at: now.wall,
        reason: dead.reason.to_owned(),
        status: dead.status,
        own: true,
    })
}

/// The rows that could be read, and those that could not.
pub(super) fn read(rows: Vec<Row>, now: Now) -> (Vec<ReplayedRow>, Vec<EvictedRow>) {
    let (mut batches, mut damaged) = (Vec::new(), Vec::new());
    for Row { id, until, batch: row } in rows {
        let body = gunzip(&row.body, MAX_INFLATED).ok().and_then(|body| wire::Batch::parse(&body).ok());
        match body {
            Some(parsed) if parsed.events.len() == row.events as usize => {
                let mut batch = Batch::read(parsed, row.boot.as_str().into(), now.at);
                batch.newest_at = row.newest_at;
                batch.life = Duration::from_millis(row.expires_at.saturating_sub(row.newest_at));
                batch.expires = expires(until.as_ref(), batch.life, now);
                batches.push(ReplayedRow { row: id.0, batch });
            }
            _ => damaged.push(EvictedRow {
                row: id.0,
                stream: row.stream,
                first: row.first_seq,
                last: row.last_seq,
                events: u64::from(row.events),
                reason: DropReason::Corrupt,
            }),
        }
    }
    (batches, damaged)
}

/// All rows of a beacon's spool are of this start of the machine.
fn expires(until: Option<&Until>, life: Duration, now: Now) -> u64 {
    let known = until.filter(|until| *until.boot == *boot_id());
    known.map_or_else(|| now.after(life), |until| until.mono)
}

/// The core learns which rows its batches are in now, and which rows had to go for them.
pub(super) fn spooled(core: &mut Core, batches: Vec<Batch>, put: &Put, now: Now) {
    let goes = |row: i64| put.evicted.iter().any(|gone| gone.id.0 == row);
    let rows = batches.into_iter().zip(&put.ids).map(|(batch, id)| (batch, id.0));
    // There is no room for it: its receipts must not report that it is on disk.
    let (refused, rows): (Vec<_>, Vec<_>) =
        rows.partition(|(batch, row)| !batch.receipts.is_empty() && goes(*row));
    let kept = |gone: &&spool::Evicted| !refused.iter().any(|(_, row)| *row == gone.id.0);
    let evicted: Vec<EvictedRow> = put.evicted.iter().filter(kept).map(evicted).collect();
    core.spooled(rows, now);
    core.not_spooled(refused.into_iter().map(|(batch, _)| batch).collect(), "the spool is full");
    core.evicted(&evicted);
    letters_dropped(core, &put.dead_dropped);
}

/// What had to go for dead letters.
pub(super) fn put(core: &mut Core, put: &Put) {
    let evicted: Vec<EvictedRow> = put.evicted.iter().map(evicted).collect();
    core.evicted(&evicted);
    letters_dropped(core, &put.dead_dropped);
}

/// Dead letters that had to go for newer ones.
pub(super) fn letters_dropped(core: &mut Core, gone: &[spool::Evicted]) {
    for letter in gone {
        let events = u64::from(letter.events);
        if letter.own {
            core.drop_dead_letters(DropReason::DeadFull, events);
        } else {
            // It was adopted as a dead letter, which no count was made of.
            core.count_foreign_loss(DropReason::DeadFull, events);
        }
    }
}

/// Our own rows and files that cannot be read.
pub(super) fn lost(core: &mut Core, lost: Lost) {
    if lost.file {
        core.forget_file();
    }
    let corrupt = DropReason::Corrupt;
    core.lost_on_disk(lost.events, lost.numbers.into_iter().map(|numbers| gap(numbers, corrupt)).collect());
    core.drop_dead_letters(corrupt, lost.letters);
}

/// What another process left, and is gone. It was never in this ledger.
pub(super) fn count_foreign_loss(core: &mut Core, gone: &[spool::Evicted]) {
    for gone in gone {
        core.count_foreign_loss(reason(gone.why), u64::from(gone.events));
        core.declare(gone.numbers().map(|numbers| gap(numbers, reason(gone.why))));
    }
}

pub(super) fn evicted(gone: &spool::Evicted) -> EvictedRow {
    EvictedRow {
        row: gone.id.0,
        stream: gone.stream,
        first: gone.first_seq,
        last: gone.last_seq,
        events: u64::from(gone.events),
        reason: reason(gone.why),
    }
}

fn reason(why: Why) -> DropReason {
    match why {
        Why::Expired => DropReason::Expired,
        Why::Room => DropReason::SpoolFull,
        Why::Erased => DropReason::Erased,
        Why::Corrupt => DropReason::Corrupt,
    }
}

fn gap(numbers: Numbers, reason: DropReason) -> Gap {
    let Numbers { stream, first, last } = numbers;
    Gap { stream, first, last, why: reason.as_str().to_owned() }
}
