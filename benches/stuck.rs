//! How long does the foreground wait while governed polls block the lane? Two workers; every poll of the boot blocks
//! its thread (it sleeps, so the figures do not depend on how many cores are free), and `stuck_after` is 100 ms, so
//! lanes are taken over all the time.
//!
//! ```sh
//! cargo bench --bench stuck
//! ```
//!
//! The promise is p99 within three times that of nothing running, or 1 ms more, whichever is wider. Rounds of all
//! scenes alternate, and medians over the rounds are compared: single rounds say more about the machine.
#![expect(clippy::print_stdout, reason = "a benchmark's figures")]

use std::time::Duration;

use afterboot::{Governor, Profile, Task};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(1_200);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scene {
    Nothing,
    /// Ten tasks, each with one poll of 60 ms: never stuck, always in the way.
    TenLong,
    /// One task whose poll lasts the whole round.
    OneStuck,
    /// Three such tasks: the second and third get stuck on threads of the blocking pool.
    ThreeStuck,
}

const SCENES: [Scene; 4] = [Scene::Nothing, Scene::TenLong, Scene::OneStuck, Scene::ThreeStuck];

#[expect(clippy::disallowed_methods, reason = "polls that block are what is measured")]
fn block(time: Duration) {
    std::thread::sleep(time);
}

/// p50 and p99 of the time from a spawn outside the workers to the answer.
fn round(scene: Scene) -> (Duration, Duration) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("two threads");
    let mut waited = runtime.block_on(async {
        let profile = Profile::default().concurrency(3);
        let governor = Governor::builder().profile(profile).stuck_after(Duration::from_millis(100)).build();
        let governor = governor.expect("the configuration is valid");
        let (tasks, length) = match scene {
            Scene::Nothing => (0, Duration::ZERO),
            Scene::TenLong => (10, Duration::from_millis(60)),
            Scene::OneStuck => (1, ROUND),
            Scene::ThreeStuck => (3, ROUND),
        };
        for n in 0..tasks {
            governor.govern(Task::new(format!("blocks {n}"), move || async move { block(length) }));
        }
        // Others that only wait, and are polled on the lane that took over.
        for n in 0..if scene == Scene::Nothing { 0 } else { 5 } {
            governor.govern(Task::new(format!("waits {n}"), || sleep(Duration::from_millis(50))));
        }
        let (begun, mut waited) = (Instant::now(), Vec::new());
        let measured = if scene == Scene::TenLong { ROUND / 2 } else { ROUND };
        while begun.elapsed() < measured {
            let asked = Instant::now();
            // A request: it arrives by a timer, and its handler is spawned.
            let answered = tokio::spawn(async {
                sleep(Duration::from_millis(1)).await;
                Instant::now()
            });
            drop(answered.await);
            waited.push(asked.elapsed().saturating_sub(Duration::from_millis(1)));
        }
        waited
    });
    runtime.shutdown_background();
    waited.sort_unstable();
    (waited[waited.len() / 2], waited[waited.len() * 99 / 100])
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let mut p50 = vec![Vec::new(); SCENES.len()];
    let mut p99 = vec![Vec::new(); SCENES.len()];
    for _ in 0..ROUNDS {
        for (place, scene) in SCENES.into_iter().enumerate() {
            let (half, most) = round(scene);
            p50[place].push(half);
            p99[place].push(most);
        }
    }
    let p50: Vec<_> = p50.into_iter().map(median).collect();
    let p99: Vec<_> = p99.into_iter().map(median).collect();
    let limit = (p99[0] * 3).max(p99[0] + Duration::from_millis(1));
    println!("{:<12} {:>9} {:>9} {:>7}   p99 at most {limit:.1?}", "", "p50", "p99", "ratio");
    for (place, scene) in SCENES.into_iter().enumerate() {
        let ratio = p99[place].as_secs_f64() / p99[0].as_secs_f64();
        let verdict = if p99[place] <= limit { "within" } else { "BEYOND" };
        println!(
            "{:<12} {:>9.1?} {:>9.1?} {ratio:>6.2}x   {verdict}",
            format!("{scene:?}"),
            p50[place],
            p99[place]
        );
    }
}
