//! Two ways to the end.

use super::World;
use crate::core::laws::Event;
use crate::core::laws::{Verdict, millis};
use crate::model::monkey::Delivery;

impl World {
    /// Runs everything to its end. Every poll ends and who was waited for wakes who waits; what is stuck
    /// returns when nothing else is left to do.
    pub(in super::super) fn drain(&mut self) {
        for _ in 0..20_000 {
            self.step(&Event::Turn);
            if !self.core.has_work() {
                break;
            }
            let asleep = !self.awake && !self.ticking;
            let can_go_on = |&i: &usize| self.tasks[i].live && !self.tasks[i].stuck && !self.lends(i);
            if let Some(i) = self.polling {
                self.step(&Event::PollEnds(self.end_of_poll(i)));
            } else if !asleep {
                continue;
            } else if let Some(i) = (0..self.tasks.len()).find(can_go_on) {
                self.step(&Event::Wake(i));
            } else if let Some(at) = self.alarm {
                let rest = at.since(self.now).max(millis(1));
                self.step(&Event::Wait(u64::try_from(rest.as_millis()).unwrap()));
            } else {
                assert!(!self.stuck.is_empty(), "tasks are left, nothing runs and the lane sleeps for ever");
                self.step(&Event::StuckReturns(0, self.end_of_poll(self.stuck[0])));
            }
        }
        assert!(!self.core.has_work(), "it goes on for ever");
        self.step(&Event::Turn);
        assert!(!self.lane, "the lane outlives its work");
        for (i, task) in self.tasks.iter().enumerate() {
            assert!(task.outcome.is_some() && !task.live, "task {i} is forgotten");
        }
        if let Some(delay_injector) =
            self.core.delay_injector().filter(|delay_injector| delay_injector.victim.is_some())
        {
            assert!(
                !matches!(delay_injector.delivery, Delivery::Pending | Delivery::Delaying),
                "{delay_injector:?}"
            );
        }
    }

    /// A task that waits for another cannot be done.
    fn end_of_poll(&self, i: usize) -> Verdict {
        if self.tasks[i].waits_for.is_empty() { Verdict::Completed } else { Verdict::Pending }
    }

    /// A whole shutdown; polls in progress end after it.
    pub(in super::super) fn shut_down(&mut self) {
        self.step(&Event::Close { lost: false });
        // The lane may have looked before.
        self.step(&Event::Pick);
        while self.cancelled_to.is_some() {
            self.step(&Event::CancelPiece);
        }
        self.step(&Event::EndRunning);
        assert!(self.tasks.iter().all(|task| task.outcome.is_some()), "a handle is left");
        self.step(&Event::PollEnds(Verdict::Pending));
        while !self.stuck.is_empty() {
            self.step(&Event::StuckReturns(0, Verdict::Pending));
        }
        for i in 0..self.tasks.len() {
            while self.tasks[i].live {
                self.step(&Event::Wake(i));
                self.step(&Event::Turn);
                self.step(&Event::PollEnds(Verdict::Completed));
            }
        }
        self.step(&Event::Turn);
        assert!(!self.core.has_work());
    }
}
