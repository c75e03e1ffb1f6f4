//! One run of a loop: attempt, verdict, wait, and again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::attempt::{Attempt, Progress};
use crate::decision::{Decision, Failure, Wait};
use crate::gate::Pass;
use crate::limits::GiveUpReason;
use crate::nesting::{self, Scope};
use crate::race::{Either, race};
use crate::retry_error::{LastAttempt, RetryError};
use crate::retry_loop::{RetryEvent, RetryLoop};

pub(super) struct Run {
    settings: RetryLoop,
    progress: Progress,
    /// The outer retry, which does the retrying.
    outer: Option<Arc<Scope>>,
    /// The scope of the attempts.
    scope: Arc<Scope>,
}

impl Run {
    pub(super) fn new(mut settings: RetryLoop) -> Run {
        if let Some(time) = settings.timeout {
            settings.retry.end_in(time);
        }
        let outer = if settings.independent { None } else { nesting::outer() };
        let scope = outer.clone().unwrap_or_default();
        let progress = Progress::new(settings.retry.clock().clone());
        Run { settings, progress, outer, scope }
    }

    pub(super) async fn until_end<T, E, Fut>(
        mut self,
        mut operation: impl FnMut(Attempt) -> Fut,
        mut judge: impl FnMut(&E) -> Failure,
    ) -> Result<T, RetryError<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        let mut last = LastAttempt::NotMade;
        for number in 1u32.. {
            let pass = match self.admission(number).await {
                Ok(pass) => pass,
                Err(reason) => return Err(self.give_up(reason, last)),
            };
            self.emit(RetryEvent::Attempt { number, probe: pass.as_ref().is_some_and(Pass::is_probe) });
            self.settings.retry.on_attempt();
            let attempt = operation(Attempt::new(number, self.progress.clone()));
            let failure;
            (failure, last) = match self.attempt(attempt).await {
                Ok(value) => {
                    self.succeeded(number, pass);
                    return Ok(value);
                }
                Err(LastAttempt::Failed(error)) => (judge(&error), LastAttempt::Failed(error)),
                Err(dropped) => (Failure::transient(), dropped),
            };
            match self.after_failure(failure, pass) {
                Ok(wait) => self.pause(wait).await,
                Err(reason) => return Err(self.give_up(reason, last)),
            }
        }
        Err(self.give_up(GiveUpReason::TotalRetries, last))
    }

    /// Waits at the gate, if there is one, for as long as there is time.
    async fn admission(&mut self, number: u32) -> Result<Option<Pass>, GiveUpReason> {
        let Some(gate) = self.settings.gate.clone() else { return Ok(None) };
        let skip = self.settings.skip.clone();
        let admitted = async {
            let by_the_gate = async { if number == 1 { gate.enter().await } else { gate.reenter().await } };
            match race(pin!(by_the_gate), skip.0.notified()).await {
                Either::First(pass) => (pass, false),
                Either::Second(()) => (gate.bypass(), true),
            }
        };
        let (pass, skipped) = match self.settings.retry.time_left() {
            None => admitted.await,
            Some((left, reason)) => timeout(left, admitted).await.map_err(|_| reason)?,
        };
        if skipped {
            self.emit(RetryEvent::Skipped);
        }
        Ok(Some(pass))
    }

    async fn attempt<T, E>(
        &mut self,
        attempt: impl Future<Output = Result<T, E>>,
    ) -> Result<T, LastAttempt<E>> {
        let attempt = nesting::inside(self.scope.clone(), attempt);
        let own = self.settings.attempt_timeout.unwrap_or(Duration::MAX);
        let time = self.settings.retry.time_left_for_attempt().min(own);
        let ended = timeout(time, attempt).await;
        // Progress counts whether the attempt then succeeds, fails or is dropped.
        if let Some(at) = self.progress.take() {
            self.settings.retry.on_progress_at(at);
        }
        match ended {
            Ok(result) => result.map_err(LastAttempt::Failed),
            Err(_) => {
                // A long attempt that was cut short was not necessarily healthy.
                self.settings.retry.on_attempt();
                Err(LastAttempt::TimedOut(time))
            }
        }
    }

    fn after_failure(&mut self, failure: Failure, pass: Option<Pass>) -> Result<Wait, GiveUpReason> {
        match pass {
            Some(pass) if failure.retryable => pass.failed(),
            // A permanent failure shows neither that the dependency is down nor that it is back.
            pass => drop(pass),
        }
        if let Some(outer) = &self.outer
            && failure.retryable
        {
            if let Some(asked) = failure.retry_after {
                outer.asked(asked);
            }
            return Err(GiveUpReason::Nested);
        }
        let asked = failure.retry_after.max(self.scope.take_asked());
        match self.settings.retry.decide(failure.retry_after(asked)) {
            Decision::GiveUp(given_up) => Err(given_up.reason),
            Decision::Retry(wait) => {
                self.emit(RetryEvent::Waiting(wait));
                Ok(wait)
            }
        }
    }

    async fn pause(&mut self, wait: Wait) {
        if wait.asked.is_some() {
            sleep(wait.after).await;
        } else if self.settings.gate.is_none()
            && timeout(wait.after, self.settings.skip.0.notified()).await.is_ok()
        {
            self.emit(RetryEvent::Skipped);
        }
    }

    fn succeeded(&mut self, number: u32, pass: Option<Pass>) {
        if let Some(pass) = pass {
            pass.succeeded();
        }
        // A nested loop made one attempt and withdrew nothing.
        if self.outer.is_none() {
            self.settings.retry.on_success();
        }
        self.emit(RetryEvent::Succeeded { number });
    }

    fn give_up<E>(&mut self, reason: GiveUpReason, last: LastAttempt<E>) -> RetryError<E> {
        let given_up = self.settings.retry.given_up(reason);
        self.emit(RetryEvent::GaveUp(given_up.clone()));
        RetryError::new(given_up, last)
    }

    fn emit(&mut self, event: RetryEvent) {
        (self.settings.on_event)(event);
    }
}
