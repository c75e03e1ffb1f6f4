//! Polls that hold the lane for too long.

use super::*;
use Event::{Cancel, CancelPiece, Demand, EndRunning, GiveUpStuck, StuckReturns, Wait, Wake};

/// I2: a stuck task has given up its slot, and takes one again over the limit.
#[test]
fn several_polls_may_be_stuck_and_each_takes_a_slot_again() {
    let declared = [normal().now(), normal().now(), normal().now()];
    let mut world = after(&narrow(), declared);
    world.go([TURN, Wait(10), GiveUpStuck, TURN, Wait(10), GiveUpStuck, TURN, PENDING]);
    assert!(world.tasks[0].stuck && world.tasks[1].stuck);
    world.go([StuckReturns(0, Verdict::Pending), TURN, PENDING, Wake(2), TURN, COMPLETED]);
    world.go([normal().now(), TURN]);
    assert_eq!(world.polling, None, "the one that returned holds the slot");
    world.drain();
}

/// I14: a shutdown that did not count it would return before its deadline, and leave a handle.
#[test]
fn a_shutdown_waits_for_a_stuck_task() {
    let mut world = after(&narrow(), [normal().now(), TURN, Wait(10), GiveUpStuck]);
    assert_eq!(world.core.running_unresolved(), 1);
    world.go([CLOSE, CancelPiece, EndRunning]);
    assert_eq!(world.outcome(0), Some(&Outcome::Abandoned));
    assert_eq!(world.core.running_unresolved(), 0);
    world.go([StuckReturns(0, Verdict::Completed)]);
    assert!(!world.core.has_work());
}

/// I11: its poll may never return.
#[test]
fn a_stuck_task_past_its_limit_is_resolved_whichever_came_first() {
    for (timeout, events) in [(5, [Wait(10), GiveUpStuck]), (15, [GiveUpStuck, Wait(15)])] {
        let task = Declaration { timeout: Some(timeout), ..normal() };
        let mut world = after(&narrow(), [task.now(), TURN, Wait(10)]);
        world.go(events);
        world.go([TURN]);
        assert_eq!(world.outcome(0), Some(&Outcome::TimedOut { still_running: true }));
        world.go([StuckReturns(0, Verdict::Completed)]);
        assert!(!world.core.has_work());
    }
}

/// I11, I14.
#[test]
fn a_stuck_task_that_is_cancelled_is_resolved_whichever_came_first() {
    for events in [[Cancel(0), GiveUpStuck], [GiveUpStuck, Cancel(0)]] {
        let mut world = after(&narrow(), [normal().now(), TURN, Wait(10)]);
        world.go(events);
        assert_eq!(world.outcome(0), Some(&Outcome::Abandoned));
        world.go([StuckReturns(0, Verdict::Pending)]);
        assert!(!world.core.has_work());
    }
}

/// I5: a demanded task that gets stuck at once is no way round the delay.
#[test]
fn a_stuck_first_poll_does_not_shorten_the_delay() {
    let settings = Settings { profile: Profile::default().delay(millis(1_000)), ..plain() };
    let mut world = after(&settings, [normal().now(), normal().now(), Demand(0), TURN, Wait(10)]);
    world.go([GiveUpStuck, Wait(5), TURN]);
    assert_eq!(world.tasks[1].started, None);
}

/// I2, I14: it went on waiting all the time.
#[test]
fn a_task_that_was_stuck_lends_its_slot_again_when_its_poll_returns() {
    let declared = [normal().now(), normal().now(), normal().now()];
    let mut world = after(&narrow(), declared);
    world.go([TURN, Event::WaitBegins { stuck: false, target: 2 }, Wait(10), GiveUpStuck]);
    world.go([TURN, PENDING, StuckReturns(0, Verdict::Pending), TURN, PENDING]);
    world.go([Wake(1), TURN, COMPLETED, TURN]);
    assert_eq!(world.polling, Some(2), "task 0 waits for task 2 and holds the only slot");
}

/// I2.
#[test]
fn a_stuck_task_that_begins_to_wait_has_no_slot_to_lend() {
    let declared = [normal().now(), normal().now(), normal().now()];
    let mut world = after(&narrow(), declared);
    world.go([TURN, Wait(10), GiveUpStuck, Event::WaitBegins { stuck: true, target: 2 }]);
    world.go([TURN, PENDING, TURN]);
    assert_eq!(world.polling, None, "task 1 holds the only slot");
}

/// I14: a cycle is a cycle, whoever is stuck.
#[test]
fn a_wait_for_a_stuck_task_that_waits_is_refused_as_a_cycle() {
    let mut world = after(&narrow(), [normal().now(), normal().now()]);
    world.go([TURN, Event::WaitBegins { stuck: false, target: 1 }, Wait(10), GiveUpStuck, TURN]);
    let [a, b] = [0, 1].map(|i| world.tasks[i].id);
    assert!(world.core.wait_begins(b, a, world.now, &mut Default::default()).is_err());
}
