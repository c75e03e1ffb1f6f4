//! Reports of real runs, under a paused clock.

use std::future::Future;
use std::time::Duration;

use afterboot::{Governor, Monkey, Profile, Report, Task, TaskError};
use serde_json::Value;
use tokio::time::{advance, sleep};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn paused<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(future)
}

/// A boot with a bit of everything, each task's name saying what it is there for.
pub(crate) fn boot() -> Report {
    paused(async {
        let governor = Governor::builder()
            .name("orders service")
            .profile(Profile::default().concurrency(2))
            .await_ready()
            .quiet(ms(2_000))
            .monkey(Monkey::task("telemetry", ms(300)))
            .record_segments()
            .build()
            .expect("a runtime is running");
        let config = governor.govern(Task::new("configuration", || sleep(ms(40))));
        governor.govern(Task::new("notifications", || sleep(ms(160))));
        governor.govern(Task::new("senders", || sleep(ms(90))).after(&config));
        let cache = governor.govern(Task::new("migrate cache", || async {
            sleep(ms(30)).await;
            Err::<(), _>("version 3 is newer than this program")
        }));
        governor.govern(Task::new("warm cache", || async {}).after(&cache));
        governor.govern(Task::new("licence check", || async {}).when(false));
        let index = governor.govern(Task::new("search index", || sleep(ms(420))).idle());
        let thumbnails = governor.govern(Task::new("thumbnails", || sleep(ms(260))).idle().after(&index));
        governor.govern(Task::new("telemetry", || sleep(ms(15))).idle());
        let words = governor.govern(Task::new("dictionary", || sleep(ms(70))).idle());
        let awaited = words.clone();
        governor.govern(Task::new("suggestions", move || async move {
            awaited.wait().await?;
            sleep(ms(35)).await;
            Ok::<(), TaskError>(())
        }));
        sleep(ms(250)).await;
        words.demand().await.expect("it completes");
        // Somebody blocks the loop.
        advance(ms(120)).await;
        governor.ready();
        let run = governor.report();
        index.wait().await.expect("it completes");
        // The application gets busy just before the next idle start.
        let late = governor.govern(Task::new("old logs", || sleep(ms(50))).idle().after(&thumbnails));
        sleep(ms(200)).await;
        let busy: Vec<_> = (0..3).map(|_| governor.in_flight("GET /search")).collect();
        sleep(ms(200)).await;
        drop(busy);
        late.wait().await.expect("it completes");
        run.finished().await
    })
}

/// So many tasks, half of them idle.
pub(crate) fn many(count: u64) -> Report {
    paused(async {
        let governor = Governor::builder()
            .name(format!("boot of {count}"))
            .profile(Profile::default().concurrency(8))
            .quiet(ms(500))
            .build()
            .expect("a runtime is running");
        let mut before = None;
        for n in 0..count {
            let rest = ms(3 + n * 7919 % 37);
            let task = Task::new(format!("task {n}"), move || sleep(rest));
            let task = if n % 2 == 1 { task.idle() } else { task };
            let task = match &before {
                Some(handle) if n % 10 == 3 => task.after(handle),
                _ => task,
            };
            let handle = governor.govern(task.when(n % 50 != 49));
            before = (n % 10 == 1).then_some(handle).or(before);
        }
        governor.report().finished().await
    })
}

/// The same with some of its JSON changed.
pub(crate) fn changed(report: &Report, change: impl FnOnce(&mut Value)) -> Report {
    let mut json = serde_json::to_value(report).expect("a report is JSON");
    change(&mut json);
    serde_json::from_value(json).expect("it is still a report")
}
