//! The critical chain: the tasks that determined the end of a run.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::{Report, TaskReport};
use crate::model::gate_state::GateState;
use crate::model::profile::Profile;
use crate::model::queue::Queue;

impl Report {
    /// Returns the critical chain: the numbers of the tasks that determined the end of the run, in the order in which
    /// they ran.
    ///
    /// The last task of the chain is the one in scope that finished last. Each task is preceded by what it waited for
    /// last before it started:
    ///
    /// 1. the gate, if an idle task waited for it longer than for anything else: the chain begins with that task;
    /// 2. a slot, if a task ended while this one waited and `concurrency` tasks were running until then: the chain
    ///    continues with the last such task. A demanded task does not wait for slots;
    /// 3. otherwise, the predecessor that finished last.
    ///
    /// Pulses and lent slots are not considered. Empty if no task in scope has started and finished.
    pub fn critical_chain(&self) -> Vec<u64> {
        let Some(last) =
            self.tasks.iter().filter(|task| ran(task).is_some()).max_by_key(|task| task.finished)
        else {
            return Vec::new();
        };
        let slots = Slots::of(self);
        let by_number: HashMap<u64, &TaskReport> = self.listed().map(|task| (task.number, task)).collect();
        let mut seen = HashSet::from([last.number]);
        let mut chain = vec![last.number];
        let mut task = last;
        while let Some(before) = self.waited_last_for(task, &slots, &by_number) {
            // In a report from elsewhere the times may make a circle.
            if !seen.insert(before.number) {
                break;
            }
            chain.push(before.number);
            task = before;
        }
        chain.reverse();
        chain
    }

    /// Every task the report lists, the late ones too: they hold slots like the others.
    pub(super) fn listed(&self) -> impl Iterator<Item = &TaskReport> {
        self.tasks.iter().chain(&self.late_tasks)
    }

    fn waited_last_for<'a>(
        &self,
        task: &TaskReport,
        slots: &Slots<'a>,
        by_number: &HashMap<u64, &'a TaskReport>,
    ) -> Option<&'a TaskReport> {
        let (queued, started) = (task.queued?, task.started?);
        let pushed = task.demanded || task.demanded_by_governor;
        let freed = if pushed { None } else { slots.freed_last(queued, started) };
        let last_end = freed.map_or(queued, |(end, _)| end);
        if let GateState::Open { at, .. } = self.gate
            && task.queue == Queue::Idle
            && !task.promoted
            && !pushed
            && (last_end..=started).contains(&at)
            && at > queued
        {
            return None;
        }
        match freed {
            Some((_, by)) => Some(by),
            None => task
                .after
                .iter()
                .filter_map(|number| by_number.get(number).copied())
                .filter(|before| ran(before).is_some())
                .max_by_key(|before| before.finished),
        }
    }
}

fn ran(task: &TaskReport) -> Option<(Duration, Duration)> {
    Some((task.started?, task.finished?))
}

/// When slots were taken and given back.
struct Slots<'a> {
    concurrency: usize,
    starts: Vec<Duration>,
    ends: Vec<(Duration, &'a TaskReport)>,
}

impl<'a> Slots<'a> {
    fn of(report: &'a Report) -> Slots<'a> {
        // A profile that cannot be read is one under which nobody waited for a slot.
        let concurrency = report.profile.parse::<Profile>().map_or(usize::MAX, |profile| profile.concurrency);
        let mut starts: Vec<Duration> = report.listed().filter_map(|task| task.started).collect();
        let mut ends: Vec<(Duration, &TaskReport)> =
            report.listed().filter_map(|task| Some((ran(task)?.1, task))).collect();
        starts.sort_unstable();
        ends.sort_by_key(|(end, _)| *end);
        Slots { concurrency, starts, ends }
    }

    /// The last end after `queued` and not after `started`, if every slot was taken until then.
    fn freed_last(&self, queued: Duration, started: Duration) -> Option<(Duration, &'a TaskReport)> {
        let upto = self.ends.partition_point(|(end, _)| *end <= started);
        let (end, by) = *self.ends[..upto].last()?;
        let begun = self.starts.partition_point(|start| *start < end);
        let over = self.ends.partition_point(|(other, _)| *other < end);
        (end > queued && begun.saturating_sub(over) >= self.concurrency).then_some((end, by))
    }
}
