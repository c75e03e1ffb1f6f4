//! Small helpers for the other modules.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use afterboot::{Governor, Outcome, Profile, Report};
use tokio::runtime::{self, Handle, Runtime};
use tokio::time::timeout;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Neither delay nor pulse: a start takes a tick.
pub(crate) fn fast(concurrency: usize) -> Governor {
    paced(concurrency, Duration::ZERO, Duration::ZERO)
}

pub(crate) fn paced(concurrency: usize, delay: Duration, pulse: Duration) -> Governor {
    let profile = Profile::default().concurrency(concurrency).delay(delay).pulse(pulse);
    Governor::builder().profile(profile).build().expect("a runtime is running and the profile is valid")
}

/// Fails instead of hanging. Under a paused clock the hour is no time; elsewhere a test that comes near it has
/// failed anyhow.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    timeout(secs(3600), future).await.expect("it hangs")
}

/// Real time: for tests that need threads. Wide, because machines may be slow.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    timeout(secs(30), future).await.expect("it hangs")
}

/// Lets everything that is ready run, without letting time pass.
pub(crate) async fn breathe() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// How many spawned tasks this runtime holds.
pub(crate) fn alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Panics that a test makes on purpose say "boom", or have no text; the others are printed as ever.
pub(crate) fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            if text.or(payload.downcast_ref().copied()).is_some_and(|text: &str| !text.contains("boom")) {
                print(info);
            }
        }));
    });
}

/// Panics when it is dropped.
pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("boom in a destructor");
        }
    }
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes "`what` dropped" when it is dropped.
    pub(crate) fn on_drop(&self, what: impl Into<String>) -> OnDrop {
        OnDrop(self.clone(), what.into())
    }
}

pub(crate) struct OnDrop(Log, String);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.add(format!("{} dropped", self.1));
    }
}

/// How the task of this name ended.
pub(crate) fn ended(report: &Report, name: &str) -> Outcome {
    let task = report.task(name).unwrap_or_else(|| panic!("{name} is not in the report"));
    task.outcome.clone().unwrap_or_else(|| panic!("{name} has not ended"))
}

/// When the task of this name started.
pub(crate) fn started(report: &Report, name: &str) -> Duration {
    let task = report.task(name).unwrap_or_else(|| panic!("{name} is not in the report"));
    task.started.unwrap_or_else(|| panic!("{name} has not started"))
}

/// How many tasks ended with this word.
pub(crate) fn count(report: &Report, word: &str) -> usize {
    report
        .tasks
        .iter()
        .filter(|task| task.outcome.as_ref().is_some_and(|outcome| outcome.word() == word))
        .count()
}

/// The body of a task that panics.
pub(crate) async fn boom() {
    panic!("boom")
}

pub(crate) fn two_workers() -> Runtime {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads can be had")
}

/// Keeps this thread without using its CPU: on a machine that others use too, that is what can be repeated.
#[expect(clippy::disallowed_methods, reason = "keeping a worker is the point")]
pub(crate) fn hold(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

/// For claims about real time: `check` must hold in a run in which no control thread, which only sleeps, ever lost 10 ms
/// to the machine. Runs in which one did are repeated. What a control thread sees of a busy machine is a sample: a check that
/// fails is wrong where it fails in three such runs. What `run` itself asserts counts as the check does.
#[expect(clippy::print_stderr, reason = "whoever reads the run must see what it did not show")]
pub(crate) fn steady<T>(run: impl Fn() -> T, check: impl Fn(T)) {
    const RUNS: usize = 30;
    let mut failed = 0;
    for _ in 0..RUNS {
        let (result, lost) = control(&run);
        match result.and_then(|result| catch_unwind(AssertUnwindSafe(|| check(result)))) {
            Ok(()) => return,
            Err(failure) if lost < ms(10) => {
                failed += 1;
                if failed == 3 {
                    std::panic::resume_unwind(failure);
                }
            }
            Err(_) => {}
        }
    }
    eprintln!(
        "NOT TESTED: this machine took 10 ms from a sleeping thread in {} of {RUNS} runs",
        RUNS - failed
    );
}

/// What `run` gives, and how late a sleeping thread was at most meanwhile: of three, one for each that a test may need.
#[expect(clippy::disallowed_methods, reason = "whether the machine runs is real time")]
fn control<T>(run: impl Fn() -> T) -> (std::thread::Result<T>, Duration) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let lost = [(); 3].map(|()| {
            scope.spawn(|| {
                let mut lost = Duration::ZERO;
                while !over.load(Ordering::Relaxed) {
                    let before = Instant::now();
                    hold(ms(1));
                    lost = lost.max(before.elapsed().saturating_sub(ms(1)));
                }
                lost
            })
        });
        let result = catch_unwind(AssertUnwindSafe(run));
        over.store(true, Ordering::Relaxed);
        let lost = lost.map(|lost| lost.join().expect("it only sleeps"));
        (result, lost.into_iter().max().unwrap_or_default())
    })
}
