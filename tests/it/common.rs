//! Small helpers for the other modules.

use std::future::Future;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use afterboot::{Governor, Outcome, Profile, Report};
use tokio::runtime::Handle;
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
