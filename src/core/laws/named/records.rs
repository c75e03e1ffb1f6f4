//! What is kept of tasks that have ended, and what is told of them.

use super::*;
use crate::base::clock::Stamp;
use crate::core::table::{After, Spec};
use crate::core::{Actions, Core};
use crate::model::id::Id;
use Event::{Demand, Flood, Seal, Wait, WaitEnds, Wake};
use std::time::Duration;

fn spec(name: impl Into<std::borrow::Cow<'static, str>>, after: Vec<After>) -> Spec {
    Spec {
        name: name.into(),
        queue: Queue::Normal,
        condition: true,
        blocking: false,
        timeout: None,
        no_later_than: None,
        never_delay: false,
        after,
        declared_in: None,
        invalid: None,
    }
}

fn core() -> Core {
    let Settings { profile, gate, seed } = narrow();
    Core::new(profile, gate, seed)
}

const START: Duration = Duration::ZERO;

/// Declares a task and runs it to its end.
fn run(core: &mut Core, name: String) -> Id {
    let now = Stamp::from_duration(START);
    let mut actions = Actions::default();
    let id = core.declare(spec(name, Vec::new()), now, &mut actions);
    core.advance(now, &mut actions);
    assert_eq!(core.next(now, &mut actions).map(|turn| turn.id), Some(id));
    core.poll_begins(id, None, now);
    core.poll_ended(id, START, Some(Outcome::Completed), now, &mut actions);
    core.forget_retired();
    id
}

/// A service governs tasks for months.
#[test]
fn of_the_late_tasks_that_ended_the_last_thousand_are_kept_and_an_old_id_names_nobody() {
    let mut core = core();
    core.seal(Stamp::from_duration(START));
    let ids: Vec<Id> = (0..2_500).map(|n| run(&mut core, format!("late {n}"))).collect();
    assert_eq!((core.scope().late(), core.scope().forgotten()), (2_500, 1_500));
    assert!(core.table().places() <= 1_001, "{} places", core.table().places());
    for (n, id) in ids.iter().enumerate() {
        let name = core.table().get(*id).map(|record| record.name.to_string());
        assert_eq!(name, (n >= 1_500).then(|| format!("late {n}")));
    }
    let mut actions = Actions::default();
    let next = core.declare(spec("next", Vec::new()), Stamp::from_duration(START), &mut actions);
    for old in ids {
        core.demand(old, Stamp::from_duration(START), &mut actions);
        core.cancel(old, Stamp::from_duration(START), &mut actions);
    }
    let record = core.table().get(next).expect("it has not ended");
    assert_eq!((record.demanded, record.outcome.clone()), (false, None));
}

/// Where nobody asks for a report, a boot of ordinary size is still kept whole.
#[test]
fn without_a_report_the_last_ten_thousand_are_kept_and_a_report_keeps_what_is_there() {
    let mut core = core();
    for n in 0..10_003 {
        run(&mut core, format!("task {n}"));
    }
    assert_eq!(core.scope().forgotten(), 3);
    core.seal(Stamp::from_duration(START));
    for n in 0..1_001 {
        run(&mut core, format!("late {n}"));
    }
    assert_eq!(core.scope().forgotten(), 4);
    assert_eq!(core.table().iter().filter(|(_, record)| record.in_scope).count(), 10_000);
}

/// I8: more tasks may end at once than are kept, and then a handle is not resolved yet when its record is gone.
#[test]
fn a_declaration_after_a_task_that_was_forgotten_before_its_handle_was_resolved_is_no_panic() {
    let mut core = core();
    let now = Stamp::from_duration(START);
    core.seal(now);
    let forgotten = run(&mut core, "the first".to_owned());
    for n in 0..1_000 {
        run(&mut core, format!("late {n}"));
    }
    let mut actions = Actions::default();
    let after = vec![After { id: forgotten, outcome: None, accepts_any_outcome: false }];
    let id = core.declare(spec("next", after), now, &mut actions);
    let record = core.table().get(id).expect("just declared");
    assert!(record.outcome.is_some() || record.queued.is_some(), "it waits for what nobody will tell it");
}

/// I10, I14: each of these was said of a task that is forgotten by then.
#[test]
fn what_is_asked_of_a_forgotten_task_does_nothing() {
    let mut world = after(&narrow(), [Seal, normal().now(), idle().now(), TURN, COMPLETED, Flood]);
    world.go([Demand(0), Event::Cancel(0), Wake(0), WaitEnds(0), Event::AwaitEndNoMore(0)]);
    let lax = Declaration { after: vec![(0, true)], ..normal() };
    world.go([normal().after(&[0]), lax.now(), Wait(1), TURN]);
    world.drain();
}

/// I16: a task that no longer waits for the end of the run is waited for again.
#[test]
fn a_task_that_gave_up_waiting_for_the_end_is_part_of_it() {
    let finished = |world: &World| world.core.has_come(crate::core::Waits::Finished);
    let mut world = after(&narrow(), [Seal, normal().now()]);
    assert!(finished(&world), "it is late");
    world = after(&narrow(), [normal().now(), Seal, TURN, Event::AwaitEnd]);
    assert!(finished(&world));
    world.go([Event::AwaitEndNoMore(0)]);
    assert!(!finished(&world));
    world.go([COMPLETED]);
    assert!(finished(&world));
}

#[test]
fn where_nobody_listens_nothing_is_written() {
    let mut core = core();
    run(&mut core, "unheard".to_owned());
    assert!(core.take_notes().is_empty());
    core.listen(true);
    run(&mut core, "heard".to_owned());
    assert_eq!(core.take_notes().len(), 3, "declared, started, ended");
}

/// A thousand of the application's own outcomes are kept.
#[test]
fn old_outcomes_of_the_application_fall_out_and_are_counted() {
    let mut core = core();
    for n in 0..1_003 {
        core.application_outcome("login".into(), n % 2 == 0, Stamp::from_duration(START));
    }
    assert_eq!(
        (core.application_outcomes().iter().count(), core.application_outcomes().forgotten()),
        (1_000, 3)
    );
}
