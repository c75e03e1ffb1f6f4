//! What a governed task costs in allocations and bytes. A binary of its own: it counts what the whole process
//! allocates.

use std::alloc::System;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afterboot::{Governor, Profile, Task, TaskHandle};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn governor() -> Governor {
    let profile = Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO);
    Governor::builder().profile(profile).build().unwrap()
}

fn allocations(before: Stats) -> f64 {
    (GLOBAL.stats().allocations - before.allocations) as f64
}

fn live(stats: Stats) -> f64 {
    stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
}

/// What one of so many tasks costs: allocations and bytes to declare it, allocations to run it.
#[derive(Debug, Clone, Copy)]
struct Cost {
    made: f64,
    bytes: f64,
    run: f64,
}

fn cost_of(n: usize) -> Cost {
    cost_with(n, |_| Task::new("no-op", || async {}))
}

fn cost_with(n: usize, task: impl Fn(usize) -> Task<()>) -> Cost {
    runtime().block_on(async {
        let governor = governor();
        // What exists once a governor: lane, slots, wakers.
        governor.govern(Task::new("first", || async {})).wait().await.unwrap();
        let mut handles: Vec<TaskHandle<()>> = Vec::with_capacity(n);
        let per_task = n as f64;

        let before = GLOBAL.stats();
        for i in 0..n {
            handles.push(governor.govern(task(i)));
        }
        let made = allocations(before) / per_task;
        let bytes = (live(GLOBAL.stats()) - live(before)) / per_task;

        let before = GLOBAL.stats();
        while !handles.iter().rev().take(1).all(TaskHandle::is_finished) {
            yield_now().await;
        }
        let run = allocations(before) / per_task;
        assert!(handles.iter().all(TaskHandle::is_finished));
        Cost { made, bytes, run }
    })
}

/// I22: the body's box and the shared cell; once declared, a task is run and ended with what it has.
#[test]
fn a_queued_no_op_costs_two_allocations_and_at_most_400_bytes_and_its_run_costs_none() {
    let _alone = alone();
    for n in [1_000, 10_000, 100_000] {
        // The harness allocates too, when it starts another test.
        let rounds = [(); 3].map(|()| cost_of(n));
        let least = |of: fn(&Cost) -> f64| rounds.iter().map(of).fold(f64::INFINITY, f64::min);
        assert!(least(|cost| cost.made) <= 2.01, "at {n}: {rounds:?}");
        assert!(least(|cost| cost.bytes) <= 400.0, "at {n}: {rounds:?}");
        assert!(least(|cost| cost.run) <= 0.05, "at {n}: {rounds:?}");
    }
}

/// I22, I39: a name of its own is written down once, and known by its hash.
#[test]
fn a_name_of_its_own_costs_its_text_and_no_further_allocation() {
    let _alone = alone();
    for n in [1_000, 10_000, 100_000] {
        let rounds = [(); 3].map(|()| cost_with(n, |i| Task::new(format!("task {i:06}"), || async {})));
        let least = |of: fn(&Cost) -> f64| rounds.iter().map(of).fold(f64::INFINITY, f64::min);
        // The text twice: as the test makes it, and as it is kept.
        assert!(least(|cost| cost.made) <= 4.05, "at {n}: {rounds:?}");
        assert!(least(|cost| cost.bytes) <= 450.0, "at {n}: {rounds:?}");
        assert!(least(|cost| cost.run) <= 0.05, "at {n}: {rounds:?}");
    }
}

/// I29, I39: what is forgotten leaves no name behind.
#[test]
fn a_forgotten_task_leaves_no_name_behind() {
    let _alone = alone();
    let n = std::cell::Cell::new(0_u64);
    let bytes = growth(|_| Task::new(format!("late {}", n.replace(n.get() + 1)), pending::<()>));
    assert!(bytes <= 1.0, "{bytes} bytes a task");
}

/// By how many bytes a governor grows with each of 50,000 tasks that are declared and cancelled late, while one task
/// runs for ever and others wait behind it.
fn growth(task: impl Fn(&TaskHandle<()>) -> Task<()>) -> f64 {
    runtime().block_on(async {
        let governor = governor();
        let runs = governor.govern(Task::new("runs", pending::<()>));
        for _ in 0..5 {
            governor.govern(Task::new("runs or waits", pending::<()>));
        }
        while governor.snapshot().running.len() < 3 {
            yield_now().await;
        }
        governor.report();
        let rounds = |n: usize| (0..n).for_each(|_| governor.govern(task(&runs)).cancel());
        rounds(5_000);
        let before = live(GLOBAL.stats());
        rounds(50_000);
        (live(GLOBAL.stats()) - before) / 50_000.0
    })
}

/// I14: a service that goes on for months must not keep something of each task behind one that never starts.
#[test]
fn a_cancelled_task_leaves_nothing_in_the_queue_it_stood_in() {
    let _alone = alone();
    let bytes = growth(|_| Task::new("late", pending::<()>));
    assert!(bytes <= 1.0, "{bytes} bytes a task");
}

/// I14: nor in the record of one that never ends.
#[test]
fn a_cancelled_task_leaves_nothing_in_the_record_of_what_it_waited_for() {
    let _alone = alone();
    let bytes = growth(|runs| Task::new("late", pending::<()>).after(runs));
    assert!(bytes <= 1.0, "{bytes} bytes a task");
}
