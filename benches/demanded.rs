//! What does somebody wait who demands a task while others of its kind run? The task keeps its worker for 300 ms, in 60
//! polls of 5 ms or in 6 of 50 ms; beside it three others do the same for ever. Every poll sleeps, so the figures do not depend
//! on how many cores are free.
//!
//! ```sh
//! cargo bench --bench demanded
//! ```
//!
//! The promise is 1.15 times what it takes alone, and one poll. `Demanded` demands the task itself; `Behind` demands one that
//! awaits the handle of an idle task, which the gate keeps and which does the work. Rounds alone and beside others
//! alternate, and medians are compared. Ends with an error where the promise does not hold.
#![expect(clippy::print_stdout, reason = "a benchmark's figures")]

use std::process::ExitCode;
use std::time::Duration;

use afterboot::{Governor, Profile, Task, TaskError};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::Instant;

const ROUNDS: usize = 9;
const OTHERS: [usize; 2] = [0, 3];

#[derive(Debug, Clone, Copy)]
enum Scene {
    Demanded,
    Behind,
}

#[derive(Debug, Clone, Copy)]
enum Workers {
    CurrentThread,
    MultiThread2,
}

impl Workers {
    fn runtime(self) -> Runtime {
        let runtime = match self {
            Workers::CurrentThread => Builder::new_current_thread().enable_all().build(),
            Workers::MultiThread2 => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        };
        runtime.expect("two threads")
    }
}

#[expect(clippy::disallowed_methods, reason = "polls that keep their worker are what is measured")]
fn block(time: Duration) {
    std::thread::sleep(time);
}

async fn work(polls: usize, length: Duration) {
    for _ in 0..polls {
        block(length);
        yield_now().await;
    }
}

/// From the demand to the result.
fn round(workers: Workers, scene: Scene, polls: usize, length: Duration, others: usize) -> Duration {
    let runtime = workers.runtime();
    let took = runtime.block_on(async {
        let profile = Profile::default().concurrency(3).delay(Duration::ZERO).pulse(Duration::ZERO);
        let governor = Governor::builder().profile(profile).await_ready().build();
        let governor = governor.expect("the configuration is valid");
        let others: Vec<_> = (0..others)
            .map(|n| governor.govern(Task::new(format!("other {n}"), move || work(usize::MAX, length))))
            .collect();
        let worker = governor.govern(Task::new("works", move || work(polls, length)).idle());
        while governor.snapshot().running.len() < others.len() {
            yield_now().await;
        }
        let asked = Instant::now();
        match scene {
            Scene::Demanded => drop(worker.demand().await.expect("it completes")),
            Scene::Behind => {
                let inner = worker.clone();
                let behind = governor.govern(
                    Task::new("behind it", move || async move {
                        inner.wait().await?;
                        Ok::<_, TaskError>(())
                    })
                    .idle(),
                );
                drop(behind.demand().await.expect("it completes"));
            }
        }
        let took = asked.elapsed();
        assert!(worker.is_finished() && others.iter().all(|other| !other.is_finished()));
        for other in others {
            other.cancel();
        }
        governor.report().finished().await;
        took
    });
    runtime.shutdown_background();
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> ExitCode {
    let mut kept = true;
    println!("{:<14} {:<9} {:>10} {:>9} {:>9} {:>7}", "", "", "polls", "alone", "beside 3", "ratio");
    for workers in [Workers::CurrentThread, Workers::MultiThread2] {
        for scene in [Scene::Demanded, Scene::Behind] {
            for (polls, length) in [(60, Duration::from_millis(5)), (6, Duration::from_millis(50))] {
                let mut times = [Vec::new(), Vec::new()];
                for _ in 0..ROUNDS {
                    for (times, others) in times.iter_mut().zip(OTHERS) {
                        times.push(round(workers, scene, polls, length, others));
                    }
                }
                let [alone, beside] = times.map(median);
                let limit = alone.mul_f64(1.15) + length;
                let within = beside <= limit;
                kept &= within;
                println!(
                    "{:<14} {:<9} {:>10} {alone:>9.1?} {beside:>9.1?} {:>6.3}x   {} {limit:.1?}",
                    format!("{workers:?}"),
                    format!("{scene:?}"),
                    format!("{polls} x {length:?}"),
                    beside.as_secs_f64() / alone.as_secs_f64(),
                    if within { "within" } else { "BEYOND" },
                );
            }
        }
    }
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
