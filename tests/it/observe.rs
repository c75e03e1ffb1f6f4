//! Attribution of long tasks: observed futures, spans, the sampler.

use std::sync::mpsc;
use std::time::Duration;

use afterboot::{Governor, LongTask, Task};
use tokio::runtime::Builder;
use tokio::time::{advance, sleep};

use crate::common::{hold, ms, secs, steady, two_workers};

/// A governor that watches for as long as the test wants: its gate does not open.
fn watching(builder: afterboot::Builder) -> Governor {
    let governor = builder.await_ready().build().unwrap();
    governor.govern(Task::new("idle", || async {}).idle());
    governor
}

/// Waits, with a deadline, for a long task of this name and at least this length.
async fn seen(governor: &Governor, name: &str, length: Duration) -> Option<LongTask> {
    for _ in 0..200 {
        let of_it = |long: &LongTask| long.who.as_deref() == Some(name) && long.length >= length;
        let long_tasks = governor.report().current().long_tasks;
        if let Some(long) = long_tasks.into_iter().find(of_it) {
            return Some(long);
        }
        sleep(ms(20)).await;
    }
    None
}

async fn long_task(governor: &Governor, name: &str) -> LongTask {
    if let Some(long) = seen(governor, name, Duration::ZERO).await {
        return long;
    }
    panic!("no long task by {name}: {:?}", governor.report().current().long_tasks);
}

/// I24: on a paused clock, virtual time alone decides.
#[tokio::test(start_paused = true)]
async fn a_stall_on_a_paused_clock_is_one_long_task_whoever_is_polled() {
    let governor = watching(Governor::builder());
    sleep(ms(50)).await;
    // `advance` gives the tick back at its end, so the stall is over before the poll is.
    tokio::spawn(governor.observe("importer", async { advance(ms(80)).await })).await.unwrap();
    sleep(ms(50)).await;
    let report = governor.report().current();
    assert_eq!(report.long_tasks.len(), 1, "{report}");
}

/// I24: timer-woken and from outside, on both kinds of runtime.
#[test]
fn an_observed_future_that_holds_a_worker_is_named_on_both_runtimes() {
    let current = || Builder::new_current_thread().enable_all().build().unwrap();
    for runtime in [current, two_workers] {
        // What the whole process missed, no future held.
        let run = || {
            runtime().block_on(async {
                let governor = watching(Governor::builder());
                let observed = governor.observe("timer-woken", async {
                    sleep(ms(60)).await;
                    hold(ms(120));
                });
                tokio::spawn(observed).await.unwrap();
                let woken = seen(&governor, "timer-woken", ms(60)).await;
                let outside = tokio::runtime::Handle::current();
                let observed = governor.observe("from outside", async { hold(ms(120)) });
                let (done, wait) = mpsc::channel();
                std::thread::spawn(move || done.send(outside.spawn(observed)).unwrap()).join().unwrap();
                wait.recv().unwrap().await.unwrap();
                let outside = seen(&governor, "from outside", Duration::ZERO).await;
                (woken, outside, governor.shutdown(Duration::ZERO).await.long_tasks)
            })
        };
        steady(run, |(woken, outside, all)| assert!(woken.is_some() && outside.is_some(), "{all:?}"));
    }
}

/// I24: the innermost that fills most of the stall; the outer one gets what is its own.
#[test]
fn nested_observed_futures_restore_the_outer() {
    let run = || {
        two_workers().block_on(async {
            let governor = watching(Governor::builder());
            let inner = governor.observe("inner", async { hold(ms(150)) });
            let outer = governor.observe("outer", async move {
                inner.await;
                sleep(ms(200)).await;
                hold(ms(150));
            });
            tokio::spawn(outer).await.unwrap();
            long_task(&governor, "inner").await;
            long_task(&governor, "outer").await;
            governor.shutdown(Duration::ZERO).await;
        });
    };
    steady(run, |()| ());
}

/// I24: only the sampler sees the future in `block_on`, and a poll that does not end.
#[test]
fn the_sampler_sees_the_root_future() {
    let run = || {
        let runtime = two_workers();
        let governor = {
            let _entered = runtime.enter();
            watching(Governor::builder().sampler())
        };
        runtime.block_on(governor.observe("main", async {
            sleep(ms(60)).await;
            hold(ms(200));
            let long = long_task(&governor, "main").await;
            assert!(long.length >= ms(60) && long.worker.is_none(), "{long:?}");
            governor.shutdown(Duration::ZERO).await;
        }));
    };
    steady(run, |()| ());
}

/// I24, I7: a panic in an observed future restores the outer too.
#[tokio::test(start_paused = true)]
async fn an_observed_future_that_panics_leaves_nothing_behind() {
    crate::common::silence();
    let governor = watching(Governor::builder().sampler());
    let observed = governor.observe("panics", async { panic!("boom") });
    assert!(tokio::spawn(observed).await.unwrap_err().is_panic());
    assert!(governor.report().current().long_tasks.is_empty());
}

/// I19: no probe and no thread is left when no idle task waits.
#[test]
fn the_sampler_ends_with_the_last_idle_task() {
    let named = || {
        let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
        names.filter(|name| name.starts_with("afterboot sampl")).count()
    };
    two_workers().block_on(async {
        let governor = Governor::builder().name("sampled").sampler().quiet(ms(200)).build().unwrap();
        governor.govern(Task::new("idle", || async {}).idle());
        let run = governor.report();
        sleep(ms(50)).await;
        assert_eq!(named(), usize::from(cfg!(target_os = "linux")));
        run.finished().await;
        for _ in 0..200 {
            if named() == 0 {
                return;
            }
            sleep(ms(20)).await;
        }
        panic!("the sampler's thread is still there");
    });
}

#[cfg(feature = "tracing-layer")]
mod spans {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    /// I24: the innermost span that fills most of the stall names it.
    #[test]
    fn the_applications_spans_name_what_froze_it() {
        let run = || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let governor = watching(Governor::builder());
                let subscriber = tracing_subscriber::registry().with(governor.tracing_layer());
                let _default = tracing::subscriber::set_default(subscriber);
                sleep(ms(30)).await;
                tracing::info_span!("request").in_scope(|| {
                    tracing::info_span!("parse").in_scope(|| hold(ms(120)));
                });
                tokio::task::yield_now().await;
                long_task(&governor, "parse").await;
                governor.shutdown(Duration::ZERO).await;
            });
        };
        steady(run, |()| ());
    }

    /// I24: a span whose guard was kept across an await did not hold the worker; who did is not known.
    #[test]
    fn a_span_that_was_entered_across_an_await_is_not_named_for_what_another_task_did() {
        let run = || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let governor = watching(Governor::builder().sampler());
                let subscriber = tracing_subscriber::registry().with(governor.tracing_layer());
                let _default = tracing::subscriber::set_default(subscriber);
                sleep(ms(30)).await;
                let culprit = tokio::spawn(async {
                    sleep(ms(30)).await;
                    hold(ms(300));
                });
                let innocent = tracing::info_span!("innocent").entered();
                sleep(ms(200)).await;
                culprit.await.unwrap();
                drop(innocent);
                sleep(ms(30)).await;
                governor.shutdown(Duration::ZERO).await.long_tasks
            })
        };
        // Where the machine takes the thread away while nobody but the span is known to hold it, the span is named rightly.
        steady(run, |long| {
            assert!(long.iter().any(|long| long.length >= ms(250)), "{long:?}");
            assert!(long.iter().all(|long| long.who.is_none()), "{long:?}");
        });
    }
}

#[cfg(feature = "tower")]
mod layers {
    use super::*;
    use std::convert::Infallible;
    use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

    /// I13: whoever holds the future on while a body streams holds no request; and the layer may be used inside a spawned task.
    #[tokio::test(start_paused = true)]
    async fn a_request_is_counted_until_its_response_is_ready_and_not_until_its_future_is_dropped() {
        let governor = Governor::builder().build().unwrap();
        let inside = governor.clone();
        tokio::spawn(async move {
            let ready = service_fn(|(): ()| async { Ok::<_, Infallible>("head") });
            let mut service =
                ServiceBuilder::new().layer(inside.in_flight_layer(|_: &()| "route")).service(ready);
            let mut response = Box::pin(service.ready().await.unwrap().call(()));
            assert_eq!(inside.snapshot().in_flight, 1);
            assert_eq!(response.as_mut().await.unwrap(), "head");
            assert_eq!(inside.snapshot().in_flight, 0);
            drop(response);
        })
        .await
        .unwrap();
        assert_eq!(governor.snapshot().in_flight, 0);
    }

    /// I13: a request is in flight from the call until its response is ready, fails or is dropped.
    #[tokio::test(start_paused = true)]
    async fn the_tower_layer_counts_requests_until_their_responses() {
        let governor = Governor::builder().build().unwrap();
        let name = |path: &&'static str| format!("GET {path}");
        let slow = service_fn(|path: &'static str| async move {
            sleep(secs(1)).await;
            Ok::<_, Infallible>(path)
        });
        let mut service = ServiceBuilder::new().layer(governor.in_flight_layer(name)).service(slow);
        let first = service.ready().await.unwrap().call("/");
        let second = service.ready().await.unwrap().call("/search");
        let third = service.ready().await.unwrap().call("/search");
        let idle = governor.govern(Task::new("idle", || async {}).idle());
        assert_eq!(governor.snapshot().in_flight, 3);
        assert!(
            governor.gate().to_string().contains("3 in flight: GET / (1), GET /search (2)"),
            "{}",
            governor.gate()
        );
        drop(third);
        assert_eq!(first.await.unwrap(), "/");
        assert_eq!(second.await.unwrap(), "/search");
        assert_eq!(governor.snapshot().in_flight, 0);
        idle.cancel();
    }
}
