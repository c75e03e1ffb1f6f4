//! Writes notes for event listeners and counts the governor's overhead.

use std::time::Duration;

use super::notes::{Cost, Note};
use super::scheduler::Core;

impl Core {
    pub(crate) fn cost(&self) -> Cost {
        self.cost
    }

    /// The lane took this long for a turn, the governed poll left out.
    pub(crate) fn turn_took(&mut self, own: Duration) {
        self.cost.measured += 1;
        self.cost.measured_time += own;
    }

    pub(super) fn note(&mut self, note: Note) {
        if self.journal.listening {
            self.journal.notes.push(note);
        }
    }

    /// Begins or ends to write notes.
    pub(crate) fn listen(&mut self, listening: bool) {
        self.journal.listening = listening;
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.journal.notes)
    }
}
