//! The gate, the quiet window, long tasks.

use super::*;
use crate::model::gate_state::{GateState, OpenedBy};
use Event::{Beat, Demand, Interactive, LongTask, RequestEnters, RequestLeaves, Wait};

fn opened_by(world: &World) -> Option<OpenedBy> {
    match world.core.gate().state(world.now) {
        GateState::Open { by, .. } => Some(by),
        GateState::Shut { .. } => None,
    }
}

/// I12: a window in which nobody looked is none.
#[test]
fn an_idle_task_that_comes_later_waits_for_a_window_of_its_own() {
    let demanded = [idle().now(), Demand(0), TURN, COMPLETED, Beat, Wait(10_000)];
    let mut world = after(&plain(), demanded);
    assert!(!world.core.wants_probe(), "nobody has looked for ten seconds");
    world.go([idle().now(), Wait(7), Beat]);
    assert_eq!(opened_by(&world), None);
    world.go([Wait(493), Beat]);
    assert_eq!(opened_by(&world), Some(OpenedBy::Quiet));
}

/// I12: an idle task that is promoted to the normal queue does not wait for the gate any more.
#[test]
fn the_timeout_counts_from_the_first_idle_task_that_still_waits() {
    let events = [idle().now(), Wait(40_000), normal().after(&[0]), idle().now(), Wait(44_999), TURN];
    let mut world = after(&plain(), events);
    assert_eq!(opened_by(&world), None);
    world.go([COMPLETED, Wait(1), TURN]);
    assert_eq!(opened_by(&world), Some(OpenedBy::Timeout));
}

/// I12: the built-in window takes over, from then on.
#[test]
fn a_future_that_fails_in_the_windows_place_gives_way_to_the_window() {
    let mut settings = plain();
    settings.gate.interactive = true;
    let mut world = after(&settings, [idle().now(), Wait(5_000), Beat]);
    assert_eq!(opened_by(&world), None, "the window does not count");
    world.go([Interactive { failed: true }, Wait(499), Beat]);
    assert_eq!(opened_by(&world), None);
    world.go([Wait(1), Beat]);
    assert_eq!(opened_by(&world), Some(OpenedBy::Quiet));

    let world = after(&settings, [idle().now(), Interactive { failed: false }]);
    assert_eq!(opened_by(&world), Some(OpenedBy::Interactive));
}

/// I12, I13.
#[test]
fn the_window_begins_anew_when_no_more_than_allowed_are_in_flight() {
    let mut settings = plain();
    settings.gate.max_in_flight = 0;
    let mut world = after(&settings, [idle().now(), RequestEnters(0), Wait(600), Beat]);
    assert_eq!(opened_by(&world), None);
    world.go([RequestLeaves(0), Wait(499), Beat]);
    assert_eq!(opened_by(&world), None);
    world.go([Wait(1), Beat]);
    assert_eq!(opened_by(&world), Some(OpenedBy::Quiet));
}

/// I12.
#[test]
fn the_window_begins_anew_at_the_end_of_a_long_task_and_not_of_a_shorter_one() {
    let mut world = after(&plain(), [idle().now(), Wait(400), LongTask(50), Wait(499), LongTask(49), Beat]);
    assert_eq!(opened_by(&world), None);
    world.go([Wait(1), Beat]);
    assert_eq!(opened_by(&world), Some(OpenedBy::Quiet));
}

/// I12: the probe looks every few milliseconds, and each time both workers are still held.
#[test]
fn two_workers_that_are_held_at_the_same_time_make_two_long_tasks_however_often_they_are_seen() {
    let mut world = after(&plain(), [idle().now(), Wait(100)]);
    let began = world.now;
    for _ in 0..10 {
        world.now = world.now.after(millis(6));
        for worker in [0, 1] {
            world.core.saw_stall(began, world.now, Some(worker));
        }
    }
    assert_eq!(world.core.stalls().seen().count(), 2);
}
