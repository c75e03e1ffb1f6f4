//! Random programs against the running governor under a paused clock: whatever is declared, demanded, cancelled
//! and shut down in whatever order, the laws hold. The program is printed where one does not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afterboot::{GateState, Governor, Outcome, Profile, Queue, Report, Task, TaskHandle, TaskReport};
use proptest::prelude::*;
use tokio::time::{advance, sleep, timeout};

use crate::common::{alive, breathe, ms, secs, silence, within};
use crate::program::{Declared, End, Ending, Program, Step, program};

/// What the tasks themselves saw: the number of each start, and of the end of its code.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<(usize, What)>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Starts,
    IsDropped,
}

impl Seen {
    fn add(&self, number: usize, what: What) {
        self.0.lock().unwrap().push((number, what));
    }
}

struct Inside(Arc<Seen>, usize);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.add(self.1, What::IsDropped);
    }
}

fn task(number: usize, declared: &Declared, handles: &[TaskHandle<()>], seen: &Arc<Seen>) -> Task<()> {
    let Declared { idle, condition, after, timeout, awaits, end } = declared.clone();
    let seen = Arc::clone(seen);
    let mut task = Task::new(number.to_string(), move || {
        seen.add(number, What::Starts);
        let inside = Inside(seen, number);
        assert!(!matches!(end, End::PanicInTheClosure), "boom in the closure");
        async move {
            let _inside = inside;
            for millis in awaits {
                sleep(ms(millis)).await;
            }
            match end {
                End::Error => Err("no"),
                End::Panic => panic!("boom"),
                End::Value | End::PanicInTheClosure => Ok(()),
            }
        }
    })
    .when(condition);
    if idle {
        task = task.idle();
    }
    if let Some(millis) = timeout {
        // Zero is wrong, and must be told as that.
        task = task.timeout(ms(millis));
    }
    for place in after.into_iter().filter(|_| !handles.is_empty()) {
        task = task.after(&handles[place % handles.len()]);
    }
    task
}

/// What came of a program.
struct Ran {
    report: Report,
    handles: Vec<TaskHandle<()>>,
    seen: Vec<(usize, What)>,
    alive: usize,
}

async fn run(program: &Program) -> Ran {
    let profile =
        Profile::default().concurrency(program.concurrency).delay(ms(program.delay)).pulse(ms(program.pulse));
    let mut builder = Governor::builder().profile(profile).quiet(ms(500)).gate_timeout(secs(3));
    if program.await_ready {
        builder = builder.await_ready();
    }
    let governor = builder.build().unwrap();
    let seen = Arc::new(Seen::default());
    let mut handles: Vec<TaskHandle<()>> = Vec::new();
    for step in &program.steps {
        let picked = |place: &usize| handles.get(place % handles.len().max(1));
        match step {
            Step::Declare(declared) => {
                let task = task(handles.len(), declared, &handles, &seen);
                handles.push(governor.govern(task));
            }
            Step::Demand(place) => drop(picked(place).map(TaskHandle::demand)),
            Step::Cancel(place) => picked(place).into_iter().for_each(TaskHandle::cancel),
            Step::GiveUp(place, millis) => {
                if let Some(handle) = picked(place) {
                    drop(timeout(ms(*millis), handle.demand()).await);
                }
            }
            Step::Ready => governor.ready(),
            Step::OpenGate => governor.open_gate(),
            Step::Report => drop(governor.report()),
            Step::Sleep(millis) => sleep(ms(*millis)).await,
            Step::Jump(millis) => advance(ms(*millis)).await,
            Step::Breathe => breathe().await,
        }
    }
    match program.ending {
        Ending::Finished => drop(within(governor.report().finished()).await),
        Ending::Shutdown(millis) => drop(within(governor.shutdown(ms(millis))).await),
        Ending::ShutdownTwice(millis) => {
            drop(governor.shutdown(ms(millis)));
            drop(within(governor.shutdown(ms(millis))).await);
        }
    }
    for handle in &handles {
        drop(within(handle.wait()).await);
    }
    // A probe may be in its last sleep.
    sleep(ms(10)).await;
    let report = governor.report().current();
    let seen = seen.0.lock().unwrap().clone();
    Ran { report, handles, seen, alive: alive() }
}

fn end_of(handle: &TaskHandle<()>) -> Outcome {
    let told = handle.try_get().expect("it was waited for");
    told.map_or_else(|error| error.outcome().unwrap().clone(), |_| Outcome::Completed)
}

/// I14, I6, I7, I19
fn everybody_is_accounted_for(program: &Program, ran: &Ran) {
    let Ran { report, handles, seen, alive } = ran;
    assert_eq!(*alive, 0, "something was left behind");
    assert_eq!(report.tasks.len() as u64 + report.late, handles.len() as u64);
    for task in &report.tasks {
        let number = usize::try_from(task.number).unwrap();
        assert_eq!(task.outcome.as_ref(), Some(&end_of(&handles[number])), "task {number}");
        assert!(task.finished.is_some() && task.declared <= task.finished.unwrap(), "task {number}");
    }
    let declared: Vec<_> = program
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Declare(d) => Some(d),
            _ => None,
        })
        .collect();
    for (number, (handle, declared)) in handles.iter().zip(declared).enumerate() {
        let times = |what| seen.iter().filter(|event| **event == (number, what)).count();
        let starts = times(What::Starts);
        assert!(starts <= 1, "task {number} started {starts} times");
        assert_eq!(starts, times(What::IsDropped), "task {number}");
        match end_of(handle) {
            Outcome::Completed => assert!(starts == 1 && matches!(declared.end, End::Value), "task {number}"),
            Outcome::Failed(_) => assert!(starts == 1 && matches!(declared.end, End::Error), "task {number}"),
            Outcome::Panicked(_) => {
                assert!(
                    starts == 1 && matches!(declared.end, End::Panic | End::PanicInTheClosure),
                    "task {number}"
                );
            }
            Outcome::TimedOut { still_running } => {
                assert!(starts == 1 && !still_running && declared.timeout.is_some())
            }
            Outcome::Skipped(_) => assert_eq!(starts, 0, "task {number}"),
            Outcome::Invalid(_) => assert!(starts == 0 && declared.timeout == Some(0), "task {number}"),
            Outcome::Cancelled(_) => {}
            other => panic!("task {number} ended as {other}"),
        }
    }
}

/// I2
fn slots_are_kept(program: &Program, ran: &Ran) {
    let mut running = 0;
    for (number, what) in &ran.seen {
        match what {
            What::IsDropped => running -= 1,
            What::Starts => {
                // Whether a late one was demanded is not in the report.
                let ordinary = ran.report.tasks.get(*number).is_some_and(|task| !jumps(task));
                assert!(!ordinary || running < program.concurrency, "task {number} went over the limit");
                running += 1;
            }
        }
    }
}

/// Started past queue, pulse and slots: somebody demanded it, or the governor itself because it had starved.
fn jumps(task: &TaskReport) -> bool {
    task.demanded || task.demanded_by_governor
}

/// I3, I4, I10: at each ordinary start nobody stood before it.
fn nobody_is_passed_over(ran: &Ran) {
    let place = |task: &TaskReport| {
        ran.seen.iter().position(|(number, what)| *number as u64 == task.number && *what == What::Starts)
    };
    for task in ran.report.tasks.iter().filter(|task| !jumps(task)) {
        let (Some(started), Some(turn)) = (task.started, place(task)) else { continue };
        if task.queue == Queue::Idle && !task.promoted {
            assert!(
                matches!(ran.report.gate, GateState::Open { at, .. } if at <= started),
                "task {} passed the gate",
                task.number
            );
        }
        for other in ran.report.tasks.iter().filter(|other| !jumps(other) && !other.promoted) {
            // One that was drawn into the normal queue was idle before, and since when is not in the report.
            // Strictly before: what happens within one moment is not in the report.
            let stood = other.queued.is_some_and(|queued| queued < started)
                && other.finished.is_none_or(|finished| finished > started)
                && place(other).is_none_or(|other| other > turn);
            let queue = if task.promoted { Queue::Normal } else { task.queue };
            let before = match (other.queue, queue) {
                (Queue::Normal, Queue::Idle) => true,
                (Queue::Idle, Queue::Normal) => false,
                _ => other.number < task.number,
            };
            assert!(!(stood && before), "task {} was passed over by task {}", other.number, task.number);
        }
    }
}

/// I10
fn predecessors_come_first(program: &Program, ran: &Ran) {
    let mut number = 0;
    for step in &program.steps {
        let Step::Declare(declared) = step else { continue };
        let (this, before) = (number, number);
        number += 1;
        for place in declared.after.iter().filter(|_| before > 0).map(|place| place % before) {
            let failed = !end_of(&ran.handles[place]).is_completed();
            let starts = ran.seen.iter().position(|event| *event == (this, What::Starts));
            let ends = ran.seen.iter().position(|event| *event == (place, What::IsDropped));
            if failed {
                let end = end_of(&ran.handles[this]);
                assert!(
                    starts.is_none()
                        && matches!(end, Outcome::Skipped(_) | Outcome::Cancelled(_) | Outcome::Invalid(_)),
                    "task {this} ended as {end} though task {place} did not complete"
                );
            } else if let Some(starts) = starts {
                assert!(
                    ends.is_some_and(|ends| ends < starts),
                    "task {this} started before task {place} had ended"
                );
            }
        }
    }
}

/// I5
fn starts_rest(program: &Program, ran: &Ran) {
    let mut starts: Vec<(Duration, bool)> =
        ran.report.tasks.iter().filter_map(|task| Some((task.started?, jumps(task)))).collect();
    starts.sort();
    let first = ran.report.tasks.iter().map(|task| task.declared).min();
    for (start, demanded) in &starts {
        let due = first.unwrap_or_default() + ms(program.delay);
        assert!(*demanded || *start >= due, "{start:?} is within the delay");
    }
    for pair in starts.windows(2) {
        let ((before, _), (start, demanded)) = (pair[0], pair[1]);
        // At the same moment the order is not in the report, so a demanded one may have been the later.
        assert!(
            demanded || start == before && pair[0].1 || start >= before + ms(program.pulse),
            "{before:?}, {start:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// I2, I3, I4, I5, I6, I7, I10, I14, I19
    #[test]
    fn every_program_keeps_the_laws(program in program()) {
        silence();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let ran = runtime.block_on(run(&program));
        everybody_is_accounted_for(&program, &ran);
        slots_are_kept(&program, &ran);
        nobody_is_passed_over(&ran);
        predecessors_come_first(&program, &ran);
        starts_rest(&program, &ran);
    }
}
