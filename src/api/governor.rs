//! The governor's public handle.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::api::builder::Builder;
use crate::api::events::Events;
use crate::api::guard::InFlightGuard;
use crate::api::handle::TaskHandle;
use crate::api::plan;
use crate::api::quiet::Quiet;
use crate::api::run::Run;
use crate::api::snapshot::Snapshot;
use crate::api::task::Task;
use crate::api::task_list::TaskList;
use crate::base::catch::logged;
use crate::model::gate_state::GateState;
use crate::model::outcome::CancelReason;
use crate::report::Report;
use crate::shell::cell::{Cell, Parts};
use crate::shell::observe::Observed;
use crate::shell::shared::Shared;

/// Runs startup tasks. Cheap to clone; all clones refer to the same governor.
///
/// A process may have several governors, each with its own name and limits. When the last clone is dropped, queued
/// tasks still run to their end; then the event streams end.
#[derive(Debug, Clone)]
pub struct Governor {
    pub(crate) shared: Arc<Shared>,
    /// Dropped with the last clone.
    _declares: Arc<Declares>,
}

/// Exists while tasks can still be declared.
#[derive(Debug)]
struct Declares(Arc<Shared>);

impl Drop for Declares {
    fn drop(&mut self) {
        // Who listens is told that nothing more can come, now or when what is left has ended.
        self.0.update(|state, _, effects| {
            state.core.last_governor_dropped();
            effects.notify_listeners = true;
        });
    }
}

impl Governor {
    pub(crate) fn new(shared: Arc<Shared>) -> Governor {
        Governor { _declares: Arc::new(Declares(Arc::clone(&shared))), shared }
    }

    /// Returns a builder with the default configuration.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Declares a task. Returns at once; none of the task's code runs during the call.
    ///
    /// Tasks may be declared at any time and from any thread, also inside another task. The handle of an invalid
    /// declaration resolves to [`Outcome::Invalid`](crate::Outcome::Invalid). After a shutdown, or after the loss of
    /// the runtime, the handle resolves to [`Outcome::Cancelled`](crate::Outcome::Cancelled).
    pub fn govern<T: Send + Sync + 'static>(&self, mut task: Task<T>) -> TaskHandle<T> {
        let spec = plan::spec(&mut task, &self.shared);
        let Task { body, given_up, .. } = task;
        let declared_in = logged(|| tracing::Span::current().id()).flatten();
        let parts = Parts { body, given_up, declared_in };
        let cell = self.shared.declare(spec, |id| Cell::new(Arc::downgrade(&self.shared), id, parts));
        TaskHandle::new(cell)
    }

    /// Declares several tasks in order: an array or `Vec` of tasks of one type, or a tuple of up to twelve tasks of any
    /// types. Returns their handles in the same shape.
    ///
    /// ```
    /// # use afterboot::{Governor, Task};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let governor = Governor::builder().build()?;
    /// let (answer, greeting) = governor.govern_all((
    ///     Task::value("answer", || async { 42 }),
    ///     Task::value("greeting", || async { "hello" }),
    /// ));
    /// assert_eq!((*answer.await?, *greeting.await?), (42, "hello"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn govern_all<L: TaskList>(&self, tasks: L) -> L::Handles {
        tasks.declare(self)
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.shared.runtime
    }

    /// Marks the end of the application's own boot: the quiet window starts, or restarts. Only the first call has an
    /// effect.
    pub fn ready(&self) {
        self.shared.apply(|core, now, _| core.ready(now));
    }

    /// Opens the gate of the idle queue at once, even if the application is busy.
    pub fn open_gate(&self) {
        self.shared.apply(|core, now, actions| core.open_gate(now, actions));
    }

    /// Returns the state of the idle queue's gate, with the reason.
    pub fn gate(&self) -> GateState {
        self.shared.apply(|core, now, _| core.gate().state(now))
    }

    /// Returns the governor's current state: queued and running tasks, and the gate with its reason. Meant for a
    /// readiness endpoint. While a task has not ended, the cost is linear in the number of kept task records.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.shared)
    }

    /// Returns a bounded stream of the events from now on. See [`Events`].
    pub fn events(&self) -> Events {
        Events::listen(&self.shared)
    }

    /// Records an outcome that the application itself measures, such as whether a login succeeded, so that the report
    /// shows what a delayed task may have affected. The last 1,000 are kept.
    pub fn outcome(&self, name: impl Into<Cow<'static, str>>, ok: bool) {
        let name = name.into();
        self.shared.apply(|core, now, _| core.application_outcome(name, ok, now));
    }

    /// Wraps one of the application's own futures so that long tasks caused by its polls are attributed to this name,
    /// in the report and in the gate's reason. Observed futures may be nested: a long task is attributed to the
    /// innermost one that accounts for at least half of it.
    ///
    /// ```
    /// # async fn example(governor: afterboot::Governor, serve: impl Future<Output = ()> + Send + 'static) {
    /// tokio::spawn(governor.observe("http server", serve));
    /// # }
    /// ```
    pub fn observe<F: Future>(&self, name: impl Into<Arc<str>>, future: F) -> Observed<F> {
        Observed::new(future, name.into(), &self.shared)
    }

    /// Returns a handle with which the application reports long tasks that the probe cannot see, and with which tests
    /// simulate them.
    pub fn quiet(&self) -> Quiet {
        Quiet::new(Arc::clone(&self.shared))
    }

    /// Counts a request as in flight until the returned guard is dropped. While there are more than `max_in_flight`,
    /// the application does not count as quiet. A guard taken inside a governed task is not counted.
    pub fn in_flight(&self, name: impl Into<Cow<'static, str>>) -> InFlightGuard {
        InFlightGuard::enter(&self.shared, name.into())
    }

    /// Closes the scope of the report and returns the [`Run`]: the tasks declared until now and those that they declare
    /// themselves. The monkey selects its victim at this moment. Further calls return the same run.
    ///
    /// The governor continues to work: tasks declared later are governed and listed as late.
    pub fn report(&self) -> Run {
        self.shared.apply(|core, now, _| core.seal(now));
        Run::new(Arc::clone(&self.shared))
    }

    /// Shuts the governor down: no further task starts, queued tasks are cancelled, and running tasks may continue
    /// until the deadline. Then their futures are dropped, and tasks that cannot be dropped (a blocking closure, a poll
    /// in progress) are abandoned. Resolves to the report as soon as no task runs, at the latest one tick after the
    /// deadline. By then every handle is resolved, and all code that did not run is dropped.
    ///
    /// Destructors cannot be interrupted. Destructors that are running on other threads at the deadline get up to one
    /// more second; the handle of a task whose destructor takes longer resolves when it returns. The destructors of
    /// queued tasks run inside this future, however long they take.
    ///
    /// A governed task that awaits this future is excluded from the wait, as with [`Run::finished`], and is not ended
    /// by the deadline. The future may be awaited anywhere, also outside of a runtime.
    ///
    /// The call itself stops further starts, whether or not the future is polled.
    ///
    /// # Cancel safety
    /// Safe, but if the future is dropped the deadline is not enforced: running tasks run to their end. Call `shutdown`
    /// again to complete it.
    pub fn shutdown(&self, deadline: Duration) -> impl Future<Output = Report> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        let ends = shared.apply(|core, now, actions| {
            core.close_for(CancelReason::Shutdown, actions);
            core.seal(now);
            now.after(deadline)
        });
        async move {
            while shared.apply(|core, now, actions| core.cancel_piece(now, actions)) {
                tokio::task::yield_now().await;
            }
            shared.leave(ends).await;
            Report::in_ticks(&shared).await
        }
    }
}
