//! A report is made: copied in pieces, then put in order, without the lock and, where somebody can wait, with
//! ticks of the event loop between.

use std::collections::BTreeMap;

use crate::base::clock::Stamp;
use crate::core::Core;

use super::copied::{self, AT_ONCE, Walk};
use super::pace::Pace;
use super::{Report, TaskReport};

impl Report {
    /// The report as it stands now. `look` gives the core and the time, and holds the lock meanwhile: it is called once for
    /// each piece.
    pub(crate) async fn made(
        governor: &str,
        look: impl Fn(&mut dyn FnMut(&Core, Stamp)),
        mut pace: Pace,
    ) -> Report {
        let mut piece = Vec::with_capacity(AT_ONCE);
        let mut begun = None;
        look(&mut |core, now| {
            let mut walk = Walk::begin(core, now);
            // A boot of ordinary size is copied as a whole.
            let more = walk.piece(core, &mut piece);
            begun = Some((copied::begun(core, governor, now), walk, more));
        });
        let ((mut report, lists), mut walk, mut more) = begun.expect("whoever is asked to look calls back");
        lists.written_into(&mut report);
        report.tasks.reserve(piece.len() + walk.left());
        loop {
            for copied in piece.drain(..) {
                let tasks = if copied.in_scope { &mut report.tasks } else { &mut report.late_tasks };
                tasks.push(walk.as_of_then(copied.written()));
                pace.one().await;
            }
            if !more {
                break;
            }
            look(&mut |core, _| more = walk.piece(core, &mut piece));
        }
        // A late one may have been forgotten before its turn came.
        report.forgotten = walk.unlisted(report.tasks.len() + report.late_tasks.len());
        report.put_in_order(&mut pace).await;
        report
    }

    /// In order of declaration.
    async fn put_in_order(&mut self, pace: &mut Pace) {
        sort(&mut self.tasks, pace).await;
        sort(&mut self.late_tasks, pace).await;
        for task in &self.tasks {
            self.last_start = self.last_start.max(task.started);
            self.last_finish = self.last_finish.max(task.finished.filter(|_| task.started.is_some()));
            pace.one().await;
        }
    }
}

/// By their numbers. Where no place in the table was used twice they stand so already, and nothing is moved.
async fn sort(tasks: &mut [TaskReport], pace: &mut Pace) {
    let mut sorted = true;
    for place in 1..tasks.len() {
        sorted &= tasks[place - 1].number < tasks[place].number;
        pace.one().await;
    }
    if sorted {
        return;
    }
    // A tree, because it grows by small steps.
    let mut places = BTreeMap::new();
    for (place, task) in tasks.iter().enumerate() {
        places.insert(task.number, place);
        pace.one().await;
    }
    let mut from = Vec::with_capacity(tasks.len());
    while let Some((_, place)) = places.pop_first() {
        from.push(place);
        pace.one().await;
    }
    for first in 0..tasks.len() {
        let mut place = first;
        while from[place] != first {
            let next = std::mem::replace(&mut from[place], place);
            tasks.swap(place, next);
            place = next;
            pace.one().await;
        }
        from[place] = place;
        pace.one().await;
    }
}
