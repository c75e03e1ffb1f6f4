//! What several modules need.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afterboot_retry::{Clock, Failure, GivenUp, JitterRng, Retry, RetryPolicy, Wait};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A clock whose hand the test moves.
#[derive(Clone, Default)]
pub(crate) struct Hand(Arc<AtomicU64>);

impl Hand {
    pub(crate) fn clock(&self) -> Clock {
        let hand = self.0.clone();
        Clock::new(move || Duration::from_nanos(hand.load(Ordering::Relaxed)))
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_nanos()).unwrap(), Ordering::Relaxed);
    }
}

/// A retry without jitter from chance: `unit` stands for every draw.
pub(crate) fn start(policy: &RetryPolicy, hand: &Hand, unit: f64) -> Retry {
    policy.start_with(hand.clock(), JitterRng::constant(unit))
}

/// Under a paused clock a wait that never ends hangs the test: here it fails it.
#[cfg(feature = "tokio")]
pub(crate) async fn ends<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(s(100_000), what).await.expect("waits for ever")
}

#[track_caller]
pub(crate) fn waits(retry: &mut Retry, failure: Failure) -> Wait {
    retry.decide(failure).into_result().unwrap_or_else(|given_up| panic!("{given_up}"))
}

#[track_caller]
pub(crate) fn gives_up(retry: &mut Retry, failure: Failure) -> GivenUp {
    match retry.decide(failure).into_result() {
        Ok(wait) => panic!("retries after {wait:?}"),
        Err(given_up) => given_up,
    }
}
