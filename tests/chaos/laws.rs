//! What must hold after every program.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use afterboot::TaskReport;

use crate::drive::{self, Left};
use crate::program::Program;

/// # Errors
/// The first law that was broken.
pub(crate) fn check(program: &Program) -> Result<(), String> {
    let left = drive::run(program);
    every_handle_is_resolved(&left)?;
    every_task_is_accounted_for(&left)?;
    nobody_runs_twice(&left)?;
    one_poll_at_a_time_and_starts_within_the_limit(&left)?;
    nothing_is_left(&left)
}

fn every_handle_is_resolved(left: &Left) -> Result<(), String> {
    let handles = left.world.handles.lock().unwrap();
    let waits: Vec<usize> = (0..handles.len()).filter(|place| !handles[*place].is_finished()).collect();
    if !waits.is_empty() {
        return Err(format!("I14: handles that wait for ever: {waits:?}\n{}", left.report));
    }
    if !left.finished {
        return Err(format!("I14: not all tasks ended by themselves\n{}", left.report));
    }
    Ok(())
}

fn listed(left: &Left) -> impl Iterator<Item = &TaskReport> {
    left.report.tasks.iter().chain(&left.report.late_tasks)
}

fn every_task_is_accounted_for(left: &Left) -> Result<(), String> {
    let handles = left.world.handles.lock().unwrap();
    let listed: BTreeMap<&str, &TaskReport> = listed(left).map(|task| (task.name.as_str(), task)).collect();
    if listed.len() != handles.len() {
        return Err(format!("I14: {} of {} tasks in the report", listed.len(), handles.len()));
    }
    for (place, handle) in handles.iter().enumerate() {
        let told = handle.try_get().map(|result| result.err().and_then(|error| error.outcome().cloned()));
        let Some(task) = listed.get(place.to_string().as_str()) else {
            return Err(format!("I14: {place} is not in the report"));
        };
        let Some(outcome) = &task.outcome else {
            return Err(format!("I14: {place} has no outcome in the report"));
        };
        let agree = match &told {
            Some(None) => outcome.is_completed(),
            Some(Some(told)) => told == outcome,
            None => false,
        };
        if !agree {
            return Err(format!("I6: {place}: the handle says {told:?}, the report {outcome}"));
        }
    }
    Ok(())
}

fn nobody_runs_twice(left: &Left) -> Result<(), String> {
    let begun = left.world.begun.lock().unwrap();
    let once: BTreeSet<&String> = begun.iter().collect();
    if once.len() != begun.len() {
        return Err("I6: a body began twice".to_owned());
    }
    for task in listed(left) {
        if once.contains(&task.name) && task.started.is_none() {
            return Err(format!("I6: {} ran but has no start", task.name));
        }
    }
    Ok(())
}

/// A poll that was stuck, be it because the machine is slow, may overlap with others and comes back to its slot.
fn one_poll_at_a_time_and_starts_within_the_limit(left: &Left) -> Result<(), String> {
    if listed(left).any(|task| task.stuck) {
        return Ok(());
    }
    let overlaps = left.world.overlaps.load(Ordering::SeqCst);
    if overlaps > 0 {
        return Err(format!("I1: {overlaps} polls overlapped"));
    }
    for (name, busy) in left.world.over_the_limit.lock().unwrap().iter() {
        let task = listed(left).find(|task| task.name == *name);
        if task.is_some_and(|task| !task.demanded && !task.demanded_by_governor) {
            return Err(format!(
                "I2: {name} started while {busy} held slots that they did not lend\n{}",
                left.report
            ));
        }
    }
    Ok(())
}

fn nothing_is_left(left: &Left) -> Result<(), String> {
    let bodies = left.world.bodies.load(Ordering::SeqCst);
    if left.alive > 0 || bodies > 0 {
        return Err(format!(
            "I19: {} spawned tasks and {bodies} bodies are left\n{}",
            left.alive, left.report
        ));
    }
    Ok(())
}
