//! The gate's decisions: plain functions of (state, event, now).

use std::time::Duration;

use crate::gate_policy::GatePolicy;
use crate::random::JitterRng;

/// The state of a gate. Times are passed in, on one monotonic clock.
#[derive(Debug)]
pub(super) struct Core {
    policy: GatePolicy,
    rng: JitterRng,
    phase: Phase,
    /// Counts the changes of state. The result of a call that passed before the last change is ignored.
    epoch: u64,
    /// Counts the holders of the seat: the last one's id.
    seats: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    Up,
    Down {
        since: Duration,
        probes: u32,
        previous: Option<Duration>,
        next_probe: Duration,
        seat: Option<Seat>,
    },
    Ramp {
        since: Duration,
        until: Duration,
    },
}

/// The holder of the next probe, or of the one that is running.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    id: u64,
    /// When the probe began that is under way.
    probing: Option<Duration>,
    /// When it is lost to the next caller.
    lease: Duration,
}

/// One caller's place in front of the gate.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    /// It waited here, or failed before: after the recovery it is released by the ramp.
    waited: bool,
    /// The seat it holds, if that one is still current.
    seat: Option<u64>,
    /// Its moment in the ramp, and the epoch for which it was drawn.
    release: Option<(u64, Duration)>,
}

impl Ticket {
    /// Of a caller that failed before.
    pub(super) fn again() -> Ticket {
        Ticket { waited: true, ..Ticket::default() }
    }
}

/// What a call was let through on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    pub(super) epoch: u64,
    /// Of the probe.
    pub(super) seat: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Go(Admission),
    /// Ask again then, or when something has changed.
    Until(Duration),
    /// Ask again when something has changed, or when the lease of the seat ends.
    Parked {
        lease: Duration,
    },
}

/// Which waiting callers have to ask again because of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wake {
    None,
    /// Any one: there is one seat.
    One,
    All,
}

impl Core {
    pub(super) fn new(policy: GatePolicy, rng: JitterRng) -> Core {
        Core { policy, rng, phase: Phase::Up, epoch: 0, seats: 0 }
    }

    pub(super) fn phase(&mut self, now: Duration) -> Phase {
        if matches!(self.phase, Phase::Ramp { until, .. } if now >= until) {
            // No new epoch: what passed during the ramp is current.
            self.phase = Phase::Up;
        }
        self.phase
    }

    pub(super) fn ask(&mut self, ticket: &mut Ticket, now: Duration) -> Turn {
        let pass = Turn::Go(Admission { epoch: self.epoch, seat: None });
        match self.phase(now) {
            Phase::Up => pass,
            Phase::Ramp { until, .. } => {
                if !ticket.waited {
                    return pass;
                }
                let at = match ticket.release {
                    Some((epoch, at)) if epoch == self.epoch => at,
                    _ => now.saturating_add(self.rng.within(until - now)),
                };
                ticket.release = Some((self.epoch, at));
                if now >= at { pass } else { Turn::Until(at) }
            }
            Phase::Down { .. } => {
                ticket.waited = true;
                self.end_lease(now);
                self.ask_for_the_seat(ticket, now)
            }
        }
    }

    fn ask_for_the_seat(&mut self, ticket: &mut Ticket, now: Duration) -> Turn {
        let (epoch, lease) = (self.epoch, self.policy.probe_lease());
        let Phase::Down { next_probe, seat, .. } = &mut self.phase else { unreachable!("asked while down") };
        let held = match *seat {
            Some(other) if ticket.seat != Some(other.id) => return Turn::Parked { lease: other.lease },
            Some(own) => own,
            None => {
                self.seats += 1;
                Seat { id: self.seats, probing: None, lease: now.max(*next_probe).saturating_add(lease) }
            }
        };
        if now < *next_probe {
            (*seat, ticket.seat) = (Some(held), Some(held.id));
            return Turn::Until(*next_probe);
        }
        // From here on the seat is the admission's.
        *seat = Some(Seat { probing: Some(now), lease: now.saturating_add(lease), ..held });
        ticket.seat = None;
        Turn::Go(Admission { epoch, seat: Some(held.id) })
    }

    /// Frees the seat once its lease is over. A probe that was running counts as made.
    fn end_lease(&mut self, now: Duration) {
        let Phase::Down { since, probes, previous, seat, .. } = &mut self.phase else { return };
        match *seat {
            Some(Seat { lease, probing, .. }) if now >= lease => {
                *seat = None;
                if let Some(began) = probing {
                    let (since, probes, previous) = (*since, *probes, *previous);
                    self.schedule_probe(since, probes, previous, began);
                }
            }
            _ => {}
        }
    }

    /// Admits a call in any state: it was demanded.
    pub(super) fn bypass(&self) -> Admission {
        Admission { epoch: self.epoch, seat: None }
    }

    /// A ticket was dropped before its turn.
    pub(super) fn left(&mut self, ticket: &Ticket) -> Wake {
        match &mut self.phase {
            Phase::Down { seat, .. } if seat.is_some_and(|held| ticket.seat == Some(held.id)) => {
                *seat = None;
                Wake::One
            }
            _ => Wake::None,
        }
    }

    pub(super) fn succeeded(&mut self, admission: Admission, now: Duration) -> Wake {
        match self.phase(now) {
            Phase::Down { since, .. } if admission.epoch == self.epoch => {
                let until = now.saturating_add(self.policy.ramp(now.saturating_sub(since)));
                self.epoch += 1;
                self.phase = Phase::Ramp { since, until };
                Wake::All
            }
            _ => Wake::None,
        }
    }

    /// The call failed in a way that means "down", or was dropped while the dependency is. Either way a request went out,
    /// so the next probe is due a delay later: a row of cancelled probes must not become a burst.
    pub(super) fn failed(&mut self, admission: Admission, dropped: bool, now: Duration) -> Wake {
        if admission.epoch != self.epoch {
            return Wake::None;
        }
        match self.phase(now) {
            Phase::Down { since, probes, previous, seat: Some(held), .. }
                if admission.seat == Some(held.id) =>
            {
                self.schedule_probe(since, probes, previous, now);
                Wake::One
            }
            Phase::Down { .. } => Wake::None,
            Phase::Up | Phase::Ramp { .. } if dropped => Wake::None,
            Phase::Up => {
                self.epoch += 1;
                self.schedule_probe(now, 0, None, now);
                Wake::None
            }
            // It was not back for good: still the same outage, so the next ramp is no shorter.
            Phase::Ramp { since, .. } => {
                self.epoch += 1;
                self.schedule_probe(since, 0, None, now);
                Wake::All
            }
        }
    }

    fn schedule_probe(&mut self, since: Duration, probes: u32, previous: Option<Duration>, now: Duration) {
        let probes = probes.saturating_add(1);
        let probe = self.policy.probe();
        // A gate policy's probe schedule has no end; the cap is what would be due if it had.
        let delay = probe.delay(probes, previous, &mut self.rng).unwrap_or(probe.max_delay());
        let next_probe = now.saturating_add(delay);
        self.phase = Phase::Down { since, probes, previous: Some(delay), next_probe, seat: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn core(unit: f64) -> Core {
        Core::new(GatePolicy::default(), JitterRng::constant(unit))
    }

    fn admitted(core: &mut Core, ticket: &mut Ticket, now: Duration) -> Admission {
        match core.ask(ticket, now) {
            Turn::Go(admission) => admission,
            other => panic!("not let through at {now:?}: {other:?}"),
        }
    }

    #[test]
    fn probes_back_off_by_1_4_from_the_first_up_to_6_8_s() {
        let mut core = core(1.0);
        let mut now = Duration::ZERO;
        let first = core.bypass();
        core.failed(first, false, now);
        let mut waits = Vec::new();
        for _ in 0..11 {
            let mut ticket = Ticket::default();
            let Turn::Until(at) = core.ask(&mut ticket, now) else { panic!("a probe is due at once") };
            waits.push((at - now).as_millis());
            now = at;
            let probe = admitted(&mut core, &mut ticket, now);
            assert!(probe.seat.is_some());
            assert_eq!(core.failed(probe, false, now), Wake::One);
        }
        assert_eq!(waits, [500, 700, 980, 1372, 1920, 2689, 3764, 5270, 6800, 6800, 6800]);
    }

    #[test]
    fn one_seat_and_the_rest_are_parked_until_it_is_left() {
        let mut core = core(0.0);
        let first = core.bypass();
        core.failed(first, false, Duration::ZERO);
        let (mut seated, mut parked) = (Ticket::default(), Ticket::default());
        assert_eq!(core.ask(&mut seated, MS), Turn::Until(250 * MS));
        assert_eq!(core.ask(&mut parked, MS), Turn::Parked { lease: 30_250 * MS });
        assert_eq!(core.left(&parked), Wake::None);
        assert_eq!(core.left(&seated), Wake::One);
        assert_eq!(core.ask(&mut parked, MS), Turn::Until(250 * MS), "the other one takes the seat");
    }

    #[test]
    fn a_call_from_before_the_change_neither_closes_nor_opens() {
        let mut core = core(0.0);
        let old = core.bypass();
        core.failed(core.bypass(), false, Duration::ZERO);
        assert_eq!(core.succeeded(old, MS), Wake::None, "it was let through before the outage");
        let mut ticket = Ticket::default();
        let probe = admitted(&mut core, &mut ticket, 250 * MS);
        assert_eq!(core.succeeded(probe, 250 * MS), Wake::All);
        assert_eq!(core.failed(old, false, 251 * MS), Wake::None);
        assert_eq!(core.failed(probe, false, 251 * MS), Wake::None);
        assert!(matches!(core.phase(251 * MS), Phase::Ramp { .. }));
    }

    #[test]
    fn a_relapse_in_the_ramp_goes_on_with_the_same_outage() {
        let mut core = core(0.5);
        core.failed(core.bypass(), false, Duration::ZERO);
        let recovery = 100_000 * MS;
        let probe = admitted(&mut core, &mut Ticket::default(), recovery);
        core.succeeded(probe, recovery);
        let mut waiting = Ticket::again();
        assert_eq!(core.ask(&mut waiting, recovery), Turn::Until(recovery + 12_500 * MS));
        let mut fresh = Ticket::default();
        let call = admitted(&mut core, &mut fresh, recovery + MS);
        assert_eq!(core.failed(call, false, recovery + MS), Wake::All);
        let Phase::Down { since, probes, .. } = core.phase(recovery + MS) else { panic!("not down") };
        assert_eq!((since, probes), (Duration::ZERO, 1));
    }

    #[test]
    fn a_seat_of_an_outage_that_is_over_counts_for_nothing_in_the_next() {
        let mut core = core(0.0);
        core.failed(core.bypass(), false, Duration::ZERO);
        let (mut old, mut new) = (Ticket::default(), Ticket::default());
        assert!(matches!(core.ask(&mut old, MS), Turn::Until(_)));
        core.succeeded(core.bypass(), 2 * MS);
        core.failed(core.bypass(), false, 3 * MS);
        assert!(matches!(core.ask(&mut new, 4 * MS), Turn::Until(_)), "the seat is free in the new outage");
        assert_eq!(core.left(&old), Wake::None);
        assert_eq!(core.ask(&mut old, 5 * MS), Turn::Parked { lease: 30_253 * MS });
    }

    #[test]
    fn a_probe_that_was_dropped_paces_the_next_one() {
        let mut core = core(0.0);
        core.failed(core.bypass(), false, Duration::ZERO);
        let mut now = Duration::ZERO;
        let mut probes = 0;
        while now < 10_000 * MS {
            let mut ticket = Ticket::default();
            if let Turn::Go(probe) = core.ask(&mut ticket, now) {
                probes += 1;
                core.failed(probe, true, now);
            } else {
                core.left(&ticket);
            }
            now += MS;
        }
        assert!(probes < 10, "{probes} probes in 10 s");
    }
}
