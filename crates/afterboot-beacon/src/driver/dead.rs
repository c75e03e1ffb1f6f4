//! Dead letters without a spool: the latest few, in memory.

use std::collections::VecDeque;

use super::Driver;
use crate::core::{DeadBatch, Now};
use crate::dead_letter::{DeadCommand, DeadLetter, Which};

/// So many batches are kept where there is no disk to keep them on. Older ones are forgotten; they stay counted.
const KEPT: usize = 100;

#[derive(Debug, Default)]
pub(super) struct DeadStore {
    letters: VecDeque<(DeadLetter, DeadBatch)>,
    next: i64,
}

impl DeadStore {
    fn keep(&mut self, mut dead: DeadBatch, now: Now) {
        if self.letters.len() == KEPT {
            self.letters.pop_front();
        }
        self.next += 1;
        let batch = &mut dead.batch;
        let letter = DeadLetter {
            id: self.next,
            at: now.wall,
            reason: dead.reason.to_owned(),
            status: dead.status,
            user: batch.head.user.clone(),
            session: batch.head.session.clone(),
            priority: batch.priority(),
            events: batch.len() as u32,
            body: batch.body().to_vec(),
        };
        self.letters.push_back((letter, dead));
    }

    fn take(&mut self, which: &Which) -> Vec<DeadBatch> {
        let (taken, kept): (VecDeque<_>, _) =
            self.letters.drain(..).partition(|(letter, _)| which.includes(letter.id));
        self.letters = kept;
        taken.into_iter().map(|(_, dead)| dead).collect()
    }
}

impl Driver {
    /// Keeps in memory what the disk does not take.
    pub(super) fn store_dead(&mut self, now: Now) {
        if self.disk.keeps_dead_letters() {
            return;
        }
        let dead = self.shared.core().take_dead();
        for dead in dead {
            self.dead.keep(dead, now);
        }
    }

    pub(super) fn dead_command(&mut self, command: DeadCommand) {
        if self.disk.keeps_dead_letters() {
            return self.disk.ask(command);
        }
        match command {
            DeadCommand::List { after, limit, answer } => {
                let letters = self.dead.letters.iter().map(|(letter, _)| letter);
                let letters = letters.filter(|letter| letter.id > after).take(limit).cloned().collect();
                answer.say(Ok(letters));
            }
            DeadCommand::Replay { which, answer } => {
                let now = self.shared.now();
                let dead = self.dead.take(&which);
                let events = dead.iter().map(|dead| dead.batch.events()).sum();
                let mut core = self.shared.core();
                for dead in dead {
                    core.revive(dead.batch, now);
                }
                answer.say(Ok(events));
            }
            DeadCommand::Purge { which, answer } => {
                let dead = self.dead.take(&which);
                answer.say(Ok(dead.iter().map(|dead| dead.batch.events()).sum()));
            }
        }
    }

    pub(super) fn erase_dead(&mut self, user: &str) {
        self.dead.letters.retain(|(letter, _)| letter.user.as_deref() != Some(user));
    }
}
