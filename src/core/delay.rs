//! Which task the monkey delays.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::model::id::Id;
use crate::model::monkey::{Choice, Delivery, Monkey};
use crate::model::name::Name;

/// The monkey's state in the core.
#[derive(Debug)]
pub(crate) struct DelayInjector {
    pub(crate) monkey: Monkey,
    pub(crate) seed: u64,
    pub(crate) victim: Option<Id>,
    pub(crate) delivery: Delivery,
}

/// A task the monkey may look at, in order of declaration.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) id: Id,
    pub(crate) number: u64,
    pub(crate) name: &'a Name,
    pub(crate) started: bool,
    pub(crate) ended: bool,
    pub(crate) demanded: bool,
    pub(crate) excluded: bool,
}

impl Candidate<'_> {
    /// Whether a random monkey may take it.
    fn is_free(&self) -> bool {
        !(self.started || self.ended || self.demanded || self.excluded)
    }
}

impl DelayInjector {
    pub(crate) fn new(monkey: Monkey, seed: u64) -> DelayInjector {
        DelayInjector { monkey, seed, victim: None, delivery: Delivery::Pending }
    }

    /// Picks the victim. The same seed over the same candidates gives the same victim.
    pub(crate) fn pick(&mut self, candidates: &[Candidate<'_>]) {
        let wanted = match &self.monkey.choice {
            Choice::Random => {
                let free: Vec<&Candidate<'_>> = candidates.iter().filter(|c| c.is_free()).collect();
                if free.is_empty() {
                    self.delivery = Delivery::NoneEligible;
                    return;
                }
                Some(free[StdRng::seed_from_u64(self.seed).random_range(0..free.len())])
            }
            Choice::Task(name) => candidates.iter().find(|c| c.name.is(name)),
            Choice::Index(index) => candidates.iter().find(|c| usize::try_from(c.number) == Ok(*index)),
        };
        match wanted {
            None => self.delivery = Delivery::Unknown,
            Some(candidate) if candidate.excluded => {
                self.victim = Some(candidate.id);
                self.delivery = Delivery::Excluded;
            }
            Some(candidate) if candidate.started => {
                self.victim = Some(candidate.id);
                self.delivery = Delivery::AlreadyStarted;
            }
            Some(candidate) => {
                self.victim = Some(candidate.id);
                if candidate.ended {
                    self.delivery = Delivery::NotDelivered;
                } else if candidate.demanded {
                    self.delivery = Delivery::Demanded;
                }
            }
        }
    }

    /// Whether this task's turn begins the delay.
    pub(crate) fn delays(&self, id: Id) -> bool {
        self.victim == Some(id) && self.delivery == Delivery::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pick(monkey: Monkey, seed: u64, started: &[bool]) -> (Option<u32>, Delivery) {
        let names: Vec<Name> = (0..started.len()).map(|n| Name::new(format!("task {n}").into(), 1)).collect();
        let candidates: Vec<Candidate<'_>> = (0..)
            .zip(names.iter().zip(started))
            .map(|(n, (name, &started))| Candidate {
                id: Id::new(n, 0),
                number: u64::from(n),
                name,
                started,
                ended: false,
                demanded: false,
                excluded: false,
            })
            .collect();
        let mut delay_injector = DelayInjector::new(monkey, seed);
        delay_injector.pick(&candidates);
        (delay_injector.victim.map(|id| id.index), delay_injector.delivery)
    }

    #[test]
    fn the_same_seed_picks_the_same_victim_and_seeds_reach_all() {
        let random = || Monkey::random(Duration::from_secs(1));
        let started = [true, false, false, false];
        let mut seen = [false; 4];
        for seed in 0..64 {
            let (victim, delivery) = pick(random(), seed, &started);
            assert_eq!(pick(random(), seed, &started), (victim, delivery.clone()), "seed {seed}");
            assert_eq!(delivery, Delivery::Pending, "seed {seed}");
            seen[victim.unwrap() as usize] = true;
        }
        assert_eq!(seen, [false, true, true, true]);
    }

    #[test]
    fn a_name_or_number_that_is_not_there_is_said() {
        let delay = Duration::from_secs(1);
        assert_eq!(pick(Monkey::task("task 9", delay), 0, &[false]), (None, Delivery::Unknown));
        assert_eq!(pick(Monkey::index(1, delay), 0, &[false]), (None, Delivery::Unknown));
        assert_eq!(pick(Monkey::index(0, delay), 0, &[false]), (Some(0), Delivery::Pending));
        assert_eq!(pick(Monkey::task("task 0", delay), 0, &[true]), (Some(0), Delivery::AlreadyStarted));
        assert_eq!(pick(Monkey::random(delay), 0, &[true]), (None, Delivery::NoneEligible));
        assert_eq!(pick(Monkey::random(delay), 0, &[]), (None, Delivery::NoneEligible));
    }
}
