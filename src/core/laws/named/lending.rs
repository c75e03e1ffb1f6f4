//! Tasks that wait for each other.

use super::*;
use crate::core::Actions;
use Event::{Demand, Wait, WaitEnds, Wake};

fn waits_for(target: usize) -> Event {
    Event::WaitBegins { stuck: false, target }
}

/// I2: a chain of waits needs one slot.
#[test]
fn tasks_that_wait_for_each_others_slot_do_not_hang() {
    let mut world = after(&narrow(), [normal().now(), normal().now(), normal().now()]);
    world.go([TURN, waits_for(1), PENDING, TURN]);
    assert_eq!(world.polling, Some(1));
    world.go([waits_for(2), PENDING, TURN]);
    assert_eq!(world.polling, Some(2));
    world.drain();
}

/// I2: its owner may be about to come back.
#[test]
fn a_lent_slot_is_not_filled_while_a_task_waits_for_its_poll() {
    let declared = [normal().now(), normal().now(), normal().now()];
    let mut world = after(&narrow(), declared);
    world.go([TURN, waits_for(1), PENDING, Wake(0), TURN]);
    assert_eq!(world.polling, Some(0), "who was woken goes first");
    world.go([PENDING, TURN]);
    assert_eq!(world.polling, Some(1));
}

/// I2: who waited comes back to its slot, whether or not it has been woken yet.
#[test]
fn a_slot_is_not_lent_any_more_once_its_owner_has_nobody_to_wait_for() {
    let declared = [normal().now(), normal().now(), normal().now()];
    let mut world = after(&narrow(), declared);
    world.go([TURN, waits_for(1), PENDING, TURN, COMPLETED, TURN]);
    assert_eq!(world.polling, None);
    world.go([Wake(0), TURN]);
    assert_eq!(world.polling, Some(0));
}

/// I2: a wait that is given up lends nothing any more.
#[test]
fn a_slot_is_lent_only_as_long_as_its_task_waits() {
    let declared = [normal().now(), normal().now()];
    let mut world = after(&narrow(), declared);
    world.go([TURN, waits_for(1), PENDING, WaitEnds(0), Wait(9), TURN]);
    assert_eq!(world.polling, None);
}

/// I14: nobody would ever wake them.
#[test]
fn a_wait_that_closes_a_cycle_is_refused_with_its_path() {
    let mut world = after(&plain(), [normal().now(), normal().now(), normal().after(&[1]), Wait(1)]);
    world.go([TURN, PENDING, Wait(2), TURN, waits_for(0), PENDING]);
    let [a, b, after_b] = [0, 1, 2].map(|i| world.tasks[i].id);
    let (now, mut actions) = (world.now, Actions::default());
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(world.core.wait_begins(a, a, now, &mut actions), Err(names(&["task 0", "task 0"])));
    assert_eq!(world.core.wait_begins(a, b, now, &mut actions), Err(names(&["task 0", "task 1", "task 0"])));
    let path = names(&["task 0", "task 2", "task 1", "task 0"]);
    assert_eq!(world.core.wait_begins(a, after_b, now, &mut actions), Err(path));
}

/// I2: demanded starts may exceed the limit, and then the lent slot is not there to be filled.
#[test]
fn what_is_demanded_over_the_limit_counts_against_what_is_lent() {
    let declared = [normal().now(), normal().now(), normal().now()];
    let mut world = after(&narrow(), declared);
    world.go([TURN, waits_for(1), PENDING, Demand(1), TURN, PENDING, TURN]);
    assert_eq!(world.polling, None, "one lends, one runs, one waits");
}
