//! What the results of calls change.

use super::call::{CallResult, Done, Evidence, Result};
use super::payload::Payload;
use super::rows;
use super::state::Disk;
use super::trouble::Backoff;
use crate::engine::ledger::DropReason;
use crate::engine::{Batch, BeaconEvent, Now};
use crate::spool::{Adopted, Evicted, Row, SpoolError};
use crate::state::command::DeadCommand;

impl Disk {
    pub(super) fn call_done(&mut self, done: Done, payload: Payload, now: Now) {
        rows::lost(&mut self.shared.core(), done.lost);
        let failed = |error: SpoolError| error.to_string();
        match done.result.evidence() {
            Evidence::Wrote => {
                self.backoff = Backoff::new();
                self.works(now);
            }
            Evidence::Works => self.works(now),
            Evidence::Nothing => {}
        }
        match (done.result, payload) {
            (CallResult::Opened(Ok(())), _) => {
                self.is_open = true;
                self.shared.core().schedule_replay(now);
            }
            (CallResult::Written(Ok(put)), Payload::Batches(batches)) => {
                let events = batches.iter().map(Batch::events).sum();
                rows::spooled(&mut self.shared.core(), batches, &put, now);
                self.shared.emit(|| BeaconEvent::Spooled { events });
            }
            // What it carried went on in memory: these rows are copies, which no batch knows of.
            (CallResult::Written(Ok(put)), Payload::Abandoned) => {
                self.shared.core().note_late_rows(put.ids.iter().map(|id| id.0));
                rows::put(&mut self.shared.core(), &put);
            }
            (CallResult::Buried(Ok(put)), _) => rows::put(&mut self.shared.core(), &put),
            (CallResult::Deleted(Ok(())) | CallResult::Probed(Ok(())), _) => {}
            (CallResult::Closed, Payload::Nothing | Payload::Abandoned) => {}
            (CallResult::Replay(adopted, rows), _) => self.replay(*adopted, rows, now),
            (CallResult::Tidied(Ok(expired)), _) => {
                self.evicted(&expired);
                // A neighbour may have died since the last look.
                self.shared.core().schedule_replay(now);
            }
            (CallResult::Erased(Ok(erased)), payload) => {
                self.evicted(&erased.rows);
                rows::count_foreign_loss(&mut self.shared.core(), &erased.orphans);
                let on_disk = [erased.rows, erased.orphans, erased.dead];
                let on_disk: u64 = on_disk.iter().flatten().map(|gone| u64::from(gone.events)).sum();
                if let Payload::Erase { responder, in_memory } = payload {
                    responder.send(match erased.failed {
                        None => Ok(in_memory + on_disk),
                        Some(error) => Err(error.to_string()),
                    });
                }
            }
            (CallResult::DeadList(letters), payload) => {
                if let Payload::Command(DeadCommand::List { responder, .. }) = payload {
                    responder.send(letters.map_err(failed));
                }
            }
            (CallResult::DeadReplayed(replayed), payload) => {
                if let Ok(replayed) = &replayed {
                    self.shared.core().dead_replayed(replayed.own, replayed.others, now);
                    self.evicted(&replayed.evicted);
                }
                if let Payload::Command(DeadCommand::Replay { responder, .. }) = payload {
                    responder.send(replayed.map(|replayed| replayed.own + replayed.others).map_err(failed));
                }
            }
            (CallResult::DeadPurged(purged), payload) => {
                let events = |gone: Vec<Evicted>| gone.iter().map(|gone| u64::from(gone.events)).sum();
                if let Payload::Command(DeadCommand::Purge { responder, .. }) = payload {
                    responder.send(purged.map(events).map_err(failed));
                }
            }
            (CallResult::Opened(Err(error)), payload)
            | (CallResult::Written(Err(error)) | CallResult::Buried(Err(error)), payload)
            | (CallResult::Deleted(Err(error)) | CallResult::Probed(Err(error)), payload)
            | (CallResult::Tidied(Err(error)), payload)
            | (CallResult::Erased(Err(error)), payload) => self.call_failed(&error.to_string(), payload, now),
            // A result comes with what its call carried. Whatever else comes, nothing is lost.
            (_, payload) => self.call_failed("its answer was to another call", payload, now),
        }
    }

    fn replay(&mut self, adopted: Adopted, rows: Result<(Vec<Evicted>, Vec<Row>)>, now: Now) {
        if adopted.events > 0 {
            self.shared.core().adopted(adopted.events);
            self.shared.emit(|| BeaconEvent::Adopted { events: adopted.events });
        }
        self.evicted(&adopted.evicted);
        let mut core = self.shared.core();
        rows::count_foreign_loss(&mut core, &adopted.expired);
        rows::count_foreign_loss(&mut core, &adopted.damaged);
        rows::letters_dropped(&mut core, &adopted.dead_dropped);
        drop(core);
        if adopted.unreadable > 0 {
            tracing::warn!(
                files = adopted.unreadable,
                "the spool of a dead process cannot be read: its number of events is not known"
            );
            // How many is not known.
            self.shared.emit(|| BeaconEvent::Dropped { reason: DropReason::Corrupt, events: 0 });
        }
        if let Some(error) = &adopted.failed {
            tracing::warn!(%error, "the spool of a dead process could not be adopted");
        }
        match rows {
            Ok((expired, rows)) => {
                self.evicted(&expired);
                let (batches, damaged) = rows::read(rows, now);
                let events = batches.iter().map(|listed| listed.batch.events()).sum();
                let mut core = self.shared.core();
                core.drop_unreadable_rows(&damaged);
                core.read_back(batches, now);
                if adopted.later {
                    core.look_again(now);
                }
                drop(core);
                if events > 0 {
                    self.shared.emit(|| BeaconEvent::Replaying { events });
                }
            }
            Err(error) => self.call_failed(&error.to_string(), Payload::Nothing, now),
        }
    }

    fn evicted(&self, evicted: &[Evicted]) {
        let evicted: Vec<_> = evicted.iter().map(rows::evicted).collect();
        self.shared.core().evicted(&evicted);
    }
}
