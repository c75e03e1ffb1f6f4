//! Who starts, and when.

use super::*;
use Event::{Cancel, Demand, OpenGate, Seal, Wait, Wake};

/// I4.
#[test]
fn an_idle_task_declared_first_does_not_hold_back_a_normal_one() {
    let world = after(&plain(), [idle().now(), normal().now(), Wait(1), TURN]);
    assert_eq!(world.polling, Some(1));
}

/// I2: an await holds its slot.
#[test]
fn a_slot_is_held_from_start_to_end_and_not_only_during_polls() {
    let mut world = after(&narrow(), [normal().now(), normal().now(), TURN, PENDING, Wait(9), TURN]);
    assert_eq!(world.polling, None);
    world.go([Wake(0), TURN, Event::PollEnds(Verdict::Panicked), TURN]);
    assert_eq!(world.polling, Some(1));
}

/// I5: a demanded start is no way round the delay.
#[test]
fn a_demanded_start_does_not_shorten_the_delay_of_the_ordinary_ones() {
    let settings = Settings { profile: Profile::default().delay(millis(1_000)), ..plain() };
    let world = after(&settings, [normal().now(), normal().now(), Demand(0), TURN, COMPLETED, Wait(5), TURN]);
    assert_eq!(world.tasks[1].started, None, "the delay is a second, counted from the first declaration");
}

/// I9, I10: who is demanded brings what it comes after.
#[test]
fn a_demand_reaches_through_a_chain_and_past_a_full_house() {
    let mut world = after(&narrow(), [normal().now(), idle().now(), idle().after(&[1]), TURN, PENDING]);
    world.go([Demand(2), TURN, COMPLETED, TURN]);
    assert_eq!(world.polling, Some(2));
}

/// I4, I10: an idle task that a normal one comes after does not wait for the gate.
#[test]
fn a_predecessor_is_drawn_into_the_queue_of_its_successor_and_keeps_its_number() {
    let declared = [idle().now(), idle().after(&[0]), normal().now(), normal().after(&[1])];
    let mut world = after(&narrow(), declared);
    assert_eq!(world.core.queued(), (2, 0));
    assert!(!world.core.wants_probe(), "no idle task waits for the gate");
    for first in [0, 1, 2, 3] {
        world.go([TURN]);
        assert_eq!(world.polling, Some(first));
        world.go([COMPLETED]);
    }
}

/// I10: it will never run, so nothing has to run for it.
#[test]
fn a_task_whose_condition_is_false_draws_nothing() {
    let skipped = Declaration { condition: false, ..normal() };
    let world = after(&plain(), [idle().now(), skipped.after(&[0])]);
    assert_eq!(world.core.queued(), (0, 1));
}

/// I3: past its own deadline an idle task goes before normal ones, and still takes a slot.
#[test]
fn a_task_past_its_own_deadline_is_next_with_what_it_comes_after_once_a_slot_is_free() {
    let late = Declaration { no_later_than: Some(20), ..idle() };
    let mut world = after(&narrow(), [normal().now(), normal().now(), idle().now(), late.after(&[2])]);
    world.go([TURN, PENDING, Wait(20), TURN]);
    assert_eq!(world.polling, None, "the only slot is taken");
    for next in [2, 3, 1] {
        world.go([if next == 2 { Wake(0) } else { Wait(0) }, TURN, COMPLETED, TURN]);
        assert_eq!(world.polling, Some(next));
    }
}

/// I4: normal tasks that hold every slot do not keep the idle queue out for ever.
#[test]
fn an_idle_task_that_starved_for_max_hold_is_demanded_by_the_core_one_at_a_time() {
    let mut world = after(&narrow(), [OpenGate, normal().now(), TURN, PENDING]);
    world.go([idle().now(), idle().now(), TURN, Wait(4_999), TURN]);
    assert_eq!(world.polling, None);
    world.go([Wait(1), TURN]);
    assert_eq!(world.polling, Some(1));
    world.go([PENDING, Wait(20_000), TURN]);
    assert!(world.tasks[1].demanded_by_governor && !world.tasks[2].demanded_by_governor, "an idle task runs");
}

/// I15: the core's own demand must not take the monkey's victim past its delay.
#[test]
fn a_victim_that_starves_waits_for_its_delay_all_the_same() {
    let mut settings = narrow();
    settings.profile.monkey = Some(Monkey::index(1, millis(60_000)));
    let mut world = after(&settings, [OpenGate, normal().now(), TURN, PENDING, idle().now(), Seal]);
    world.go([TURN, Wait(5_000), TURN]);
    assert_eq!(world.tasks[1].started, None);
    world.go([Wake(0), TURN, COMPLETED]);
    world.drain();
    assert_eq!(world.delivery(), &Delivery::Delivered);
}

/// I15: a delay of nothing is over when it begins, and leaves the lane no moment in the past to wait for.
#[test]
fn a_victim_that_starves_and_whose_delay_is_nothing_starts_at_once() {
    let mut settings = narrow();
    settings.profile.monkey = Some(Monkey::index(1, millis(0)));
    let mut world = after(&settings, [OpenGate, normal().now(), TURN, PENDING, idle().now(), Seal]);
    world.go([TURN, Wait(5_000), Event::Look]);
    world.drain();
    assert_eq!(world.delivery(), &Delivery::Delivered);
}

/// I15: what the core has demanded itself starts at once, so it cannot be delayed any more.
#[test]
fn a_task_that_is_about_to_be_fed_is_no_victim() {
    let mut settings = narrow();
    settings.profile.monkey = Some(Monkey::random(millis(60_000)));
    let mut world = after(&settings, [OpenGate, normal().now(), TURN, PENDING, idle().now(), TURN]);
    world.go([Wait(5_000), Event::Look, Seal, Event::Pick]);
    assert_eq!(world.polling, Some(1));
    assert_eq!(world.delivery(), &Delivery::NoneEligible);
}

/// I15: a demand before `report()` is a demand.
#[test]
fn a_victim_that_was_demanded_before_the_report_is_not_said_to_wait_for_its_turn() {
    let world = after(&monkey(0), [normal().now(), Demand(0), Seal, TURN, COMPLETED]);
    assert_eq!(world.delivery(), &Delivery::Demanded);
}

/// I15: what was skipped has not started.
#[test]
fn a_victim_that_was_skipped_is_not_said_to_have_started() {
    let skipped = Declaration { condition: false, ..normal() };
    let world = after(&monkey(0), [skipped.now(), normal().now(), Seal]);
    assert_eq!(world.delivery(), &Delivery::NotDelivered);
}

/// I15, I16: it will not be late, so `started()` waits for it.
#[test]
fn a_task_that_the_monkey_may_not_delay_is_not_left_out_of_what_started_waits_for() {
    let excluded = Declaration { never_delay: true, ..normal() };
    let world = after(&monkey(0), [excluded.now(), Seal]);
    assert_eq!(world.delivery(), &Delivery::Excluded);
    assert!(!world.core.has_come(crate::core::Waits::Started));
}

/// I15, I16.
#[test]
fn a_victim_demanded_before_the_report_is_not_left_out_of_what_started_waits_for() {
    let world = after(&monkey(0), [normal().now(), Demand(0), Seal]);
    assert!(!world.core.has_come(crate::core::Waits::Started));
}

/// I6, I10: a diamond of predecessors skips its end once.
#[test]
fn two_predecessors_that_fail_skip_their_successor_once() {
    let declared = [normal().now(), normal().after(&[0]), normal().after(&[0]), normal().after(&[1, 2])];
    let mut world = after(&plain(), declared);
    world.go([Cancel(0), TURN]);
    assert!(!world.core.has_work());
}

/// I10: named twice, the stricter word holds; else the end of a predecessor is enough.
#[test]
fn a_task_that_comes_after_the_end_of_another_starts_however_that_ended() {
    let settled = |twice: bool| {
        let after = if twice { vec![(0, true), (0, false), (0, true)] } else { vec![(0, true)] };
        Event::Declare(Declaration { after, ..normal() })
    };
    let mut world = after(&narrow(), [normal().now(), settled(false), settled(true), TURN]);
    world.go([Event::PollEnds(Verdict::Failed), TURN]);
    assert_eq!(world.polling, Some(1));
    assert_eq!(
        world.outcome(2),
        Some(&Outcome::Skipped(SkipReason::Predecessor("task 0".into()))),
        "one of the three words was strict"
    );
}

/// I36: the first of the queue is named, once, and behind whom.
#[test]
fn a_normal_task_that_no_slot_comes_to_is_named_with_those_that_hold_them() {
    let mut world = after(&narrow(), [normal().now(), TURN, PENDING, normal().now(), normal().now(), TURN]);
    world.go([Wait(59_999), TURN]);
    assert_eq!(world.core.starved().count(), 0);
    world.go([Wait(1), TURN, Wait(60_000), TURN]);
    let starved: Vec<_> = world.core.starved().collect();
    assert_eq!(starved.len(), 1);
    assert_eq!(
        (&*starved[0].name.to_string(), starved[0].since, starved[0].reported_at),
        ("task 1", millis_at(0), millis_at(60_000))
    );
    assert_eq!(starved[0].behind, [(0, "task 0".into())]);
    assert!(world.core.starved_now().is_some());
    world.go([Wake(0), TURN, COMPLETED, TURN]);
    assert!(world.core.starved_now().is_none());
}

fn millis_at(n: u64) -> crate::base::clock::Stamp {
    crate::base::clock::Stamp::from_duration(millis(n))
}
