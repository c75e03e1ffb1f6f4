//! The public handle: declare, say ready, ask for the report, shut down.

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

/// Governs startup tasks. Cheap to clone; all clones are one governor.
///
/// Several may live in one process, each with its own name and limits. When the last handle is dropped, what is
/// queued still finishes, and then the events end.
#[derive(Debug, Clone)]
pub struct Governor {
    pub(crate) shared: Arc<Shared>,
    /// Dropped with the last handle.
    _declares: Arc<Declares>,
}

/// Somebody can still declare tasks.
#[derive(Debug)]
struct Declares(Arc<Shared>);

impl Drop for Declares {
    fn drop(&mut self) {
        // Who listens is told that nothing more can come, now or when what is left has ended.
        self.0.tell(|state, _, effects| {
            state.core.nobody_declares();
            effects.tell = true;
        });
    }
}

impl Governor {
    pub(crate) fn new(shared: Arc<Shared>) -> Governor {
        Governor { _declares: Arc::new(Declares(Arc::clone(&shared))), shared }
    }

    /// Starts to configure a governor.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Takes a task in. Returns at once; no code of the task runs here.
    ///
    /// A task may be declared at any time and from any thread, also inside another task. A wrong declaration
    /// resolves the handle as [`Outcome::Invalid`](crate::Outcome::Invalid); after a shutdown, or when the
    /// runtime is gone, the handle resolves as cancelled.
    pub fn govern<T: Send + Sync + 'static>(&self, mut task: Task<T>) -> TaskHandle<T> {
        let spec = plan::spec(&mut task, &self.shared);
        let Task { body, given_up, .. } = task;
        let declared_in = logged(|| tracing::Span::current().id()).flatten();
        let parts = Parts { body, given_up, declared_in };
        let cell = self.shared.declare(spec, |id| Cell::new(Arc::downgrade(&self.shared), id, parts));
        TaskHandle::new(cell)
    }

    /// Takes several tasks in, in their order: an array or `Vec` of tasks of one type, or a tuple of up to
    /// twelve tasks of any types. Gives their handles in the same shape.
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

    /// Says that the application's own boot is over: the quiet window begins, or begins anew. Only the first
    /// call counts.
    pub fn ready(&self) {
        self.shared.apply(|core, now, _| core.ready(now));
    }

    /// Opens the gate of the idle queue at once, whatever the application does.
    pub fn open_gate(&self) {
        self.shared.apply(|core, now, actions| core.open_gate(now, actions));
    }

    /// How the gate of the idle queue stands, and why.
    pub fn gate(&self) -> GateState {
        self.shared.apply(|core, now, _| core.gate().state(now))
    }

    /// How the governor stands now: what is queued and running, how the gate stands and why. For a readiness
    /// endpoint; it walks through the records while a task has not ended.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.shared)
    }

    /// What happens from now on, as a bounded stream that says when it could not keep up.
    pub fn events(&self) -> Events {
        Events::listen(&self.shared)
    }

    /// Records whether something that the application itself counts went well, such as a login: what a late
    /// task may harm. It stands in the report; the last 1,000 are kept.
    pub fn outcome(&self, name: impl Into<Cow<'static, str>>, ok: bool) {
        let name = name.into();
        self.shared.apply(|core, now, _| core.application_outcome(name, ok, now));
    }

    /// Wraps a future of the application's own, so that a long task it makes is known by this name: in the report, and
    /// in what holds the gate. Nested ones restore the outer; the innermost that fills most of a long task names it.
    ///
    /// ```
    /// # async fn example(governor: afterboot::Governor, serve: impl Future<Output = ()> + Send + 'static) {
    /// tokio::spawn(governor.observe("http server", serve));
    /// # }
    /// ```
    pub fn observe<F: Future>(&self, name: impl Into<Arc<str>>, future: F) -> Observed<F> {
        Observed::new(future, name.into(), &self.shared)
    }

    /// The quiet window, for an application that knows more than the probe can see, and for its tests.
    pub fn quiet(&self) -> Quiet {
        Quiet::new(Arc::clone(&self.shared))
    }

    /// Counts a request as in flight until the guard is dropped. While more than `max_in_flight` are held the
    /// application is not quiet. A guard taken inside a governed task counts nothing.
    pub fn in_flight(&self, name: impl Into<Cow<'static, str>>) -> InFlightGuard {
        InFlightGuard::enter(&self.shared, name.into())
    }

    /// Ends the scope of the report: it speaks of the tasks declared until now, and of those that they declare
    /// themselves. The monkey picks its victim. Called again, it gives the same run.
    ///
    /// The governor lives on: later tasks are governed and counted as late.
    pub fn report(&self) -> Run {
        self.shared.apply(|core, now, _| core.seal(now));
        Run::new(Arc::clone(&self.shared))
    }

    /// Stops: nothing new starts, what is queued is cancelled, what is running gets until the deadline. Then
    /// its futures are dropped, and what cannot be dropped (a blocking closure, a poll in progress) is
    /// abandoned. Resolves as soon as nothing runs any more, at the latest one tick after the deadline, with
    /// the report: every declared task is in it. By then each handle is resolved, and what was not run is dropped.
    ///
    /// Destructors cannot be interrupted. Those that are at work on other threads then are waited for up to a second beyond the
    /// deadline; the handle of one that takes longer is resolved when it returns. Those of queued tasks run here, however long
    /// they take.
    ///
    /// A governed task that awaits this is left out of what it waits for, as with [`Run::finished`], and the deadline does not
    /// end it. May be awaited anywhere, also outside of a runtime.
    ///
    /// Nothing starts from the call on, whether or not the future is polled.
    ///
    /// # Cancel safety
    /// Safe, but a dropped future does not wait for the deadline: what runs then runs to its end. Call again to
    /// finish the work.
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
