//! Limits, cancellation, shutdown.

use super::*;
use Event::{CancelPiece, Demand, EndRunning, Flood, Look, Pick, Wait, Wake};

/// I11, I19: the successors of a task that runs on are over too.
#[test]
fn what_comes_after_a_blocking_task_that_timed_out_is_counted_once() {
    let blocking = Declaration { blocking: true, timeout: Some(10), ..normal() };
    let events = [blocking.now(), normal().after(&[0]), Wait(1), TURN, PENDING, Wait(10), TURN];
    let mut world = after(&plain(), events);
    world.go([Wake(0), TURN]);
    assert_eq!(world.outcome(0), Some(&Outcome::TimedOut { still_running: true }));
    assert_eq!(world.outcome(1), Some(&Outcome::Skipped(SkipReason::Predecessor("task 0".into()))));
    world.go([COMPLETED]);
    assert!(!world.core.has_work());
}

/// I14: from `shutdown` on nothing starts, also before its future is polled.
#[test]
fn nothing_starts_between_the_call_of_shutdown_and_its_first_poll() {
    let world = after(&plain(), [normal().now(), Wait(1), CLOSE, TURN]);
    assert_eq!(world.polling, None);
}

/// I14: the report must not blame a predecessor for what the shutdown did.
#[test]
fn what_comes_after_a_task_that_a_shutdown_cancels_is_cancelled_by_it_too() {
    let world = after(&plain(), [normal().now(), normal().after(&[0]), CLOSE, Look]);
    assert_eq!(world.outcome(1), Some(&Outcome::Cancelled(CancelReason::Shutdown)));
}

/// I14: the lane has looked and lets a tick pass; meanwhile somebody shuts down.
#[test]
fn a_demanded_task_does_not_start_in_the_tick_in_which_the_shutdown_comes() {
    for demand_comes_after in [false, true] {
        let [first, second] = if demand_comes_after { [CLOSE, Demand(0)] } else { [Demand(0), CLOSE] };
        let mut world = after(&plain(), [normal().now(), Wait(1), Look, first, second]);
        world.go([Pick]);
        assert_eq!(world.polling, None);
        world.go([TURN]);
        assert_eq!(world.outcome(0), Some(&Outcome::Cancelled(CancelReason::Shutdown)));
    }
}

/// I14: so many tasks are cancelled in pieces; those of a later piece do not start meanwhile.
#[test]
fn a_demanded_task_in_a_later_piece_of_a_shutdown_does_not_start() {
    let mut world = after(&plain(), [normal().now(), TURN, Flood, normal().now(), Demand(1), CLOSE]);
    world.go([Look, Pick]);
    assert_eq!(world.polling, None);
    world.drain();
}

/// I14: a task is cancelled in pieces; what a running one completes meanwhile starts nothing.
#[test]
fn a_successor_of_a_task_that_completes_during_the_shutdown_does_not_start() {
    let mut world = after(&plain(), [normal().now(), Wait(1), TURN, Flood, normal().after(&[0]), CLOSE]);
    world.go([CancelPiece, COMPLETED, Wait(5), TURN, CancelPiece]);
    assert_eq!(world.outcome(1), Some(&Outcome::Cancelled(CancelReason::Shutdown)));
}

/// I14.
#[test]
fn a_poll_in_progress_at_the_deadline_is_abandoned_and_its_slot_returned_after_it() {
    let mut world = after(&plain(), [normal().now(), Wait(1), TURN, CLOSE, CancelPiece, EndRunning]);
    assert_eq!(world.outcome(0), Some(&Outcome::Abandoned));
    assert!(world.core.has_work());
    world.go([PENDING]);
    assert!(!world.core.has_work());
}

/// I14: the runtime goes in the very poll that handed a closure to the pool: no lane will see it out.
#[test]
fn a_blocking_task_whose_runtime_goes_in_the_middle_of_its_poll_is_over_with_that_poll() {
    let lost = Event::Close { lost: true };
    let blocking = Declaration { blocking: true, ..normal() };
    let mut world = after(&plain(), [blocking.now(), Wait(1), TURN, lost, CancelPiece, EndRunning]);
    assert_eq!(world.outcome(0), Some(&Outcome::Abandoned));
    assert!(world.core.has_work());
    world.go([PENDING]);
    assert!(!world.core.has_work());
}

/// A condition that is asked in the task's tick: none of its own code has run.
#[test]
fn a_task_whose_condition_is_false_at_its_start_has_not_started() {
    let world = after(&narrow(), [normal().now(), TURN, Event::PollEnds(Verdict::Skipped)]);
    assert_eq!(world.outcome(0), Some(&Outcome::Skipped(SkipReason::Condition)));
    let record = world.core.table().get(world.tasks[0].id).unwrap();
    assert_eq!((record.started, record.polls), (None, 0));
}

/// Named once, and the lane wakes for it although nothing else happens.
#[test]
fn a_task_that_runs_for_thirty_seconds_is_named_once() {
    let mut world = after(&narrow(), [normal().now(), TURN, PENDING, TURN, Wait(29_999), TURN]);
    let slow = |world: &World| world.core.table().get(world.tasks[0].id).unwrap().slow;
    assert!(!slow(&world));
    world.go([Wait(1), TURN]);
    assert!(slow(&world));
    world.go([Wait(60_000), TURN]);
}

/// I16: a task that has no wait for the end of the run gives none up, though it comes after one that had.
#[test]
fn a_wait_for_the_end_that_was_never_begun_is_not_given_up() {
    let settled = Event::Declare(Declaration { after: vec![(0, true)], ..normal() });
    let mut world = after(&plain(), [normal().now(), Wait(1), TURN, Event::AwaitEnd, settled, COMPLETED]);
    world.go([Event::AwaitEndNoMore(1)]);
    world.drain();
}
