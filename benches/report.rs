//! What a boot of a million tasks costs those who share the governor's lock: how long a request waits while a report or a
//! snapshot is made, how long the event loop stands still meanwhile, and whether anything grows faster than its size.
//!
//! ```sh
//! cargo bench --bench report
//! ```
//!
//! A request takes an in-flight guard and gives it back: the lock twice. It must not wait for more than a millisecond. This
//! machine takes longer than that from a thread now and then, so each round has a control in which nothing is reported, and
//! medians over the rounds are compared. Fails where a bound is missed.
#![expect(clippy::print_stdout, reason = "a benchmark's figures")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use afterboot::{Governor, Profile, Task};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

const TASKS: usize = 1_000_000;
const ROUNDS: usize = 5;
/// A request may wait this long for the lock.
const REQUEST: Duration = Duration::from_millis(1);
/// The event loop may stand still this long while a report is made on it.
const LOOP: Duration = Duration::from_millis(10);
/// What is linear takes four times as long at four times the size; what is quadratic sixteen times.
const GROWTH: f64 = 8.0;

fn main() -> ExitCode {
    let mut kept = true;
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let governor = finished(&runtime, TASKS);
    println!("{TASKS} tasks have ended. A request takes the lock twice, on a thread of its own:");
    println!("| while | longest wait | p99.9 | made in |");
    println!("| --- | --- | --- | --- |");
    let control = rounds(&governor, || thread::park_timeout(Duration::from_millis(500)));
    print_row("nothing", &control);
    let run = governor.report();
    for (what, row) in [
        ("the final report", rounds(&governor, || drop(runtime.block_on(run.finished())))),
        ("the report so far", rounds(&governor, || drop(run.current()))),
        ("1,000 snapshots", rounds(&governor, || (0..1_000).for_each(|_| drop(governor.snapshot())))),
    ] {
        print_row(what, &row);
        kept &= row.longest <= REQUEST.max(control.longest * 2) && row.p999 <= REQUEST;
    }
    let stalls: Vec<Duration> = (0..ROUNDS).map(|_| longest_stall(&runtime, &governor)).collect();
    let stall = median(stalls);
    println!("\nThe event loop stood still for {stall:.1?} at most while the final report was made on it.");
    kept &= stall <= LOOP;
    println!("\n| grows with | at a quarter | at the size | factor |");
    println!("| --- | --- | --- | --- |");
    for (what, size, time) in [
        ("a task after 50,000 others", 50_000, predecessors as fn(usize) -> Duration),
        ("100,000 that wait for one handle, polled again and dropped", 100_000, waiters),
        ("a shutdown of 1,000,000 queued tasks", 1_000_000, shutdown),
    ] {
        let [small, large] =
            [size / 4, size].map(|size| (0..3).map(|_| time(size)).min().unwrap_or_default());
        let factor = large.as_secs_f64() / small.as_secs_f64();
        println!("| {what} | {small:.1?} | {large:.1?} | {factor:.1} |");
        kept &= factor <= GROWTH;
    }
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn governor() -> Governor {
    let profile = Profile::default().concurrency(3).delay(Duration::ZERO).pulse(Duration::ZERO);
    Governor::builder().profile(profile).build().expect("the configuration is valid")
}

/// A governor under which so many tasks have ended.
fn finished(runtime: &Runtime, tasks: usize) -> Governor {
    runtime.block_on(async {
        let governor = governor();
        for n in 0..tasks {
            governor.govern(Task::new(format!("task {n}"), || async {}));
        }
        // In its scope from now on: none of the records is forgotten.
        drop(governor.report().finished().await);
        governor
    })
}

struct Row {
    longest: Duration,
    p999: Duration,
    made: Duration,
}

/// Medians over the rounds in which `make` runs here while another thread makes requests.
fn rounds(governor: &Governor, make: impl Fn()) -> Row {
    let (mut longest, mut p999, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let over = Arc::new(AtomicBool::new(false));
        let requests = {
            let (governor, over) = (governor.clone(), Arc::clone(&over));
            thread::spawn(move || requests(&governor, &over))
        };
        let begun = Instant::now();
        make();
        made.push(begun.elapsed());
        over.store(true, Ordering::Relaxed);
        let mut waits = requests.join().expect("requests do not panic");
        waits.sort_unstable();
        longest.push(*waits.last().expect("there was a request"));
        p999.push(waits[waits.len() * 999 / 1_000]);
    }
    Row { longest: median(longest), p999: median(p999), made: median(made) }
}

/// How long each of them took, a few thousand a second.
fn requests(governor: &Governor, over: &AtomicBool) -> Vec<Duration> {
    let mut waits = Vec::new();
    while !over.load(Ordering::Relaxed) || waits.is_empty() {
        let begun = Instant::now();
        drop(governor.in_flight("GET /"));
        waits.push(begun.elapsed());
        thread::park_timeout(Duration::from_micros(100));
    }
    waits
}

fn print_row(what: &str, row: &Row) {
    println!("| {what} | {:.1?} | {:.1?} | {:.0?} |", row.longest, row.p999, row.made);
}

fn longest_stall(runtime: &Runtime, governor: &Governor) -> Duration {
    runtime.block_on(async {
        let run = governor.report();
        let over = Arc::new(AtomicBool::new(false));
        let ticks = Arc::clone(&over);
        let ticker = tokio::spawn(async move {
            let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
            while !ticks.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            longest
        });
        tokio::task::yield_now().await;
        let report = run.finished().await;
        over.store(true, Ordering::Relaxed);
        let longest = ticker.await.expect("it only yields");
        assert_eq!(report.tasks.len(), TASKS);
        longest
    })
}

fn median<T: Ord + Copy>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all[all.len() / 2]
}

/// One `govern` of a task that comes after so many.
fn predecessors(size: usize) -> Duration {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let governor = governor();
        let before: Vec<_> = (0..size).map(|_| governor.govern(Task::new("before", || async {}))).collect();
        let task = before.iter().fold(Task::new("after", || async {}), |task, before| task.after(before));
        let begun = Instant::now();
        governor.govern(task);
        begun.elapsed()
    })
}

/// So many futures wait for one handle, are polled twice and dropped.
fn waiters(size: usize) -> Duration {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let governor = governor();
        let handle = governor.govern(Task::new("waited for", std::future::pending::<()>));
        let mut waits: Vec<_> = (0..size).map(|_| Box::pin(handle.wait())).collect();
        let begun = Instant::now();
        for _ in 0..2 {
            for wait in &mut waits {
                assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
        }
        drop(waits);
        begun.elapsed()
    })
}

fn shutdown(size: usize) -> Duration {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let governor = governor();
        for _ in 0..size {
            governor.govern(Task::new("queued", || async {}));
        }
        let begun = Instant::now();
        governor.shutdown(Duration::ZERO).await;
        begun.elapsed()
    })
}
