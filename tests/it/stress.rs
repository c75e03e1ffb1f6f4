//! Many threads declare, cancel and wake while the lane drains; nothing is lost and no limit is broken.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};
use std::thread;

use afterboot::{Governor, Outcome, Profile, Report, Task, TaskHandle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Duration, sleep, timeout};

use crate::common::{ms, secs, silence};

const DECLARING: usize = 8;
const EACH: usize = 1_200;
/// More than `DECLARING`: a task that waits for the next one of its thread must not fill the house.
const CONCURRENCY: usize = 12;

/// What all tasks of one flood watch together.
#[derive(Default)]
struct Watch {
    flying: AtomicUsize,
    peak: AtomicUsize,
    polled: AtomicBool,
    overlaps: AtomicUsize,
    /// Starts of each declaring thread, in their order.
    starts: [Mutex<Vec<usize>>; DECLARING],
}

struct Flying(Arc<Watch>);

impl Flying {
    fn begin(watch: &Arc<Watch>) -> Flying {
        let now = watch.flying.fetch_add(1, Ordering::SeqCst) + 1;
        watch.peak.fetch_max(now, Ordering::SeqCst);
        Flying(Arc::clone(watch))
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.0.flying.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts polls of one flood that overlap.
struct Solo<F> {
    watch: Arc<Watch>,
    inner: Pin<Box<F>>,
}

struct Polled<'a>(&'a Watch);

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.0.polled.store(false, Ordering::SeqCst);
    }
}

impl<F: Future> Future for Solo<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let watch = Arc::clone(&self.watch);
        if watch.polled.swap(true, Ordering::SeqCst) {
            watch.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        let _polled = Polled(&watch);
        self.inner.as_mut().poll(cx)
    }
}

/// A task of the flood: what it does follows from its number.
fn task(
    watch: &Arc<Watch>,
    thread: usize,
    n: usize,
    wake: Option<oneshot::Sender<()>>,
    woken: Option<oneshot::Receiver<()>>,
) -> Task<()> {
    let watch = Arc::clone(watch);
    let body = move || {
        let flying = Flying::begin(&watch);
        watch.starts[thread].lock().unwrap().push(n);
        let inner = Box::pin(async move {
            let _flying = flying;
            if let Some(wake) = wake {
                let _ = wake.send(());
            }
            match n % 8 {
                0 => {}
                1 => {
                    for _ in 0..3 {
                        yield_now().await;
                    }
                }
                2 => sleep(ms(1)).await,
                // Woken by the next task of the same thread, or by its end.
                3 => {
                    let _ = woken.expect("it has somebody to wait for").await;
                }
                4 => {
                    yield_now().await;
                    panic!("boom");
                }
                // Cancelled by another thread, sooner or later.
                5 => std::future::pending().await,
                6 => return Err("no"),
                _ => {
                    let (sender, receiver) = oneshot::channel();
                    tokio::spawn(async move {
                        yield_now().await;
                        let _ = sender.send(());
                    });
                    let _ = receiver.await;
                }
            }
            Ok(())
        });
        Solo { watch, inner }
    };
    Task::new(format!("{thread}:{n}"), body)
}

/// Declares one thread's tasks while the lane runs; every fifth is cancelled by a third thread.
fn declare(
    governor: &Governor,
    watch: &Arc<Watch>,
    thread: usize,
    cancel: &mpsc::Sender<TaskHandle<()>>,
) -> Vec<TaskHandle<()>> {
    let mut wake = None;
    (0..EACH)
        .map(|n| {
            let waker = wake.take();
            let woken = (n % 8 == 3).then(|| {
                let (sender, receiver) = oneshot::channel();
                wake = Some(sender);
                receiver
            });
            let handle = governor.govern(task(watch, thread, n, waker, woken));
            if n % 8 == 5 || n.is_multiple_of(25) {
                cancel.send(handle.clone()).expect("the cancelling thread outlives us");
            }
            handle
        })
        .collect()
}

fn flood(workers: usize) -> (Arc<Watch>, Report) {
    silence();
    let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
    let profile = Profile::default().concurrency(CONCURRENCY).delay(Duration::ZERO).pulse(Duration::ZERO);
    let governor = Governor::builder().profile(profile).runtime(runtime.handle().clone()).build().unwrap();
    let watch = Arc::new(Watch::default());
    let (cancel, to_cancel) = mpsc::channel::<TaskHandle<()>>();
    let handles: Vec<TaskHandle<()>> = thread::scope(|scope| {
        scope.spawn(move || to_cancel.iter().for_each(|handle| handle.cancel()));
        let threads: Vec<_> = (0..DECLARING)
            .map(|thread| {
                let (governor, watch, cancel) = (&governor, &watch, cancel.clone());
                scope.spawn(move || declare(governor, watch, thread, &cancel))
            })
            .collect();
        drop(cancel);
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let report = runtime.block_on(async {
        let all = async {
            for handle in &handles {
                let _ = handle.wait().await;
            }
        };
        if timeout(secs(60), all).await.is_err() {
            let left = handles.iter().filter(|handle| !handle.is_finished()).count();
            panic!("{left} handles never resolved");
        }
        let report = timeout(secs(60), governor.report().finished()).await.expect("all have ended");
        let lane_is_gone = async {
            while Handle::current().metrics().num_alive_tasks() > 0 {
                sleep(ms(1)).await;
            }
        };
        timeout(secs(60), lane_is_gone).await.expect("the lane ends");
        report
    });
    (watch, report)
}

fn every_law_holds_in_a_flood(workers: usize) {
    let (watch, report) = flood(workers);
    assert_eq!(watch.overlaps.load(Ordering::SeqCst), 0, "polls overlapped");
    assert_eq!(watch.flying.load(Ordering::SeqCst), 0, "a body was not dropped");
    let peak = watch.peak.load(Ordering::SeqCst);
    assert!(peak <= CONCURRENCY, "{peak} in flight");
    for (thread, starts) in watch.starts.iter().enumerate() {
        let starts = starts.lock().unwrap();
        let unsorted = starts.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(unsorted, None, "thread {thread}: first declared, first started, and once");
    }
    accounts_for_all(&report, &watch);
}

fn accounts_for_all(report: &Report, watch: &Watch) {
    // Fewer than the 10,000 that are kept where nobody has asked for a report before the end.
    assert_eq!((report.tasks.len(), report.forgotten), (DECLARING * EACH, 0));
    let started: usize = watch.starts.iter().map(|starts| starts.lock().unwrap().len()).sum();
    assert_eq!(report.tasks.iter().filter(|task| task.started.is_some()).count(), started);
    for task in &report.tasks {
        let n: usize = task.name.split_once(':').unwrap().1.parse().unwrap();
        let asked = n % 8 == 5 || n.is_multiple_of(25);
        match task.outcome.as_ref().unwrap_or_else(|| panic!("{} is forgotten", task.name)) {
            Outcome::Cancelled(_) => assert!(asked, "nobody cancelled {}", task.name),
            Outcome::Panicked(text) => assert_eq!((n % 8, &**text), (4, "boom")),
            Outcome::Failed(text) => assert_eq!((n % 8, &**text), (6, "no")),
            Outcome::Completed => assert!(!matches!(n % 8, 4..=6), "{}", task.name),
            other => panic!("{}: {other}", task.name),
        }
    }
}

/// I1, I2, I3, I6, I7, I14, I19: one worker for the lane, one for the rest.
#[test]
fn eight_declaring_threads_on_two_workers() {
    every_law_holds_in_a_flood(2);
}

/// I1, I2, I3, I6, I7, I14, I19: the lane wanders over more workers than there are cores.
#[test]
fn eight_declaring_threads_on_four_workers() {
    every_law_holds_in_a_flood(4);
}
