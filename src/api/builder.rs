//! The governor's configuration: setters store, `build()` validates everything at once.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use rand::TryRng;
use rand::rngs::SysRng;
use tokio::runtime::Handle;

use crate::api::governor::Governor;
use crate::api::plan;
use crate::core::Core;
use crate::model::error::ConfigError;
use crate::model::gate_rules::GateRules;
use crate::model::monkey::Monkey;
use crate::model::profile::Profile;
use crate::shell::output::TaskOutput;
use crate::shell::shared::{Limits, Shared};
use crate::shell::signals::Signals;
use crate::shell::start::start;

/// Configures a [`Governor`]. Setters store values; [`build`](Builder::build) validates all of them at once.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    name: Cow<'static, str>,
    profile: Profile,
    gate: GateRules,
    monkey: Option<Monkey>,
    seed: Option<u64>,
    runtime: Option<Handle>,
    signals: Signals,
    overrides: Vec<Override>,
    stuck_after: Duration,
    segments: bool,
    samples: bool,
}

/// A profile's text from outside, with its origin for error messages.
#[derive(Debug)]
struct Override {
    origin: String,
    text: Result<String, ConfigError>,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            name: Cow::Borrowed("boot"),
            profile: Profile::default(),
            gate: GateRules::defaults(),
            monkey: None,
            seed: None,
            runtime: None,
            signals: Signals::default(),
            overrides: Vec::new(),
            stuck_after: Duration::from_secs(1),
            segments: false,
            samples: false,
        }
    }

    /// Sets the governor's name in reports, logs and spans. Must not be empty. Default: `boot`.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Builder {
        self.name = name.into();
        self
    }

    /// Sets concurrency, delay, pulse and, where the profile has one, the monkey. Default: [`Profile::default`].
    pub fn profile(mut self, profile: Profile) -> Builder {
        self.profile = profile;
        self
    }

    /// Delays one task on purpose. Overrides [`Profile::monkey`]. Default: none.
    pub fn monkey(mut self, monkey: Monkey) -> Builder {
        self.monkey = Some(monkey);
        self
    }

    /// Sets the seed of the random monkey, to repeat a run. Default: taken from the operating system's random source.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = Some(seed);
        self
    }

    /// Sets the runtime on which everything runs. Default: the runtime in which `build` is called.
    pub fn runtime(mut self, runtime: Handle) -> Builder {
        self.runtime = Some(runtime);
        self
    }

    /// Reads one environment variable in the text form of [`Profile`] and overrides the fields that it names. An unset
    /// or empty variable changes nothing. An invalid one makes [`build`](Builder::build) fail with the variable's name,
    /// the key, the value and the allowed values.
    ///
    /// `AFTERBOOT='concurrency=1,pulse=0,monkey="search index"' my-service`
    pub fn overrides_from_env(mut self, variable: &str) -> Builder {
        let text = match std::env::var(variable) {
            Ok(text) => Ok(text),
            Err(std::env::VarError::NotPresent) => return self,
            Err(std::env::VarError::NotUnicode(value)) => Err(ConfigError::value(format!(
                "{variable}: {}; allowed: valid Unicode",
                value.to_string_lossy()
            ))),
        };
        self.overrides.push(Override { origin: variable.to_owned(), text });
        self
    }

    /// Calls [`Governor::ready`] when this future resolves. The future is spawned with the first task. If it panics,
    /// `ready` is not called and the gate opens at [`gate_timeout`](Builder::gate_timeout). Implies
    /// [`await_ready`](Builder::await_ready).
    pub fn ready_when(mut self, ready: impl Future<Output = ()> + Send + 'static) -> Builder {
        self.signals.ready = Some(Box::pin(ready));
        self.await_ready()
    }

    /// Opens the gate when this future resolves, instead of after a quiet window. The future is spawned with the first
    /// task. If it fails, panics or is dropped, the quiet window applies again and the report records why.
    /// [`gate_timeout`](Builder::gate_timeout) bounds both.
    pub fn interactive_when<F>(mut self, interactive: F) -> Builder
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<Value = ()>,
    {
        // Not awaited: it would be dropped before its answer is out, and its destructor may panic.
        let mut interactive = Box::pin(interactive);
        let answer = poll_fn(move |cx| interactive.as_mut().poll(cx).map(TaskOutput::settle));
        self.signals.interactive = Some(Box::pin(answer));
        self.gate.interactive = true;
        self
    }

    /// Starts the quiet window only at [`Governor::ready`]. Without this setting the window starts at the first idle
    /// task, and `ready` restarts it.
    pub fn await_ready(mut self) -> Builder {
        self.gate.await_ready = true;
        self
    }

    /// Sets the length of the quiet window: how long there must be no long task, and at most
    /// [`max_in_flight`](Builder::max_in_flight) requests in flight, before the gate opens. At most `gate_timeout`.
    /// Below 60 ms a stall in progress may not be detected in time. Default: 5 s, as in Google's tti-polyfill ("first
    /// consistently interactive").
    pub fn quiet(mut self, window: Duration) -> Builder {
        self.gate.quiet = window;
        self
    }

    /// Sets the time after which the gate opens even if the application has never been quiet, counted from the first
    /// idle task. More than 0, at most 24 hours. Default: 45 s, as in the startup governor of a large web mail client.
    /// Not to be confused with a task's own [`timeout`](crate::Task::timeout).
    pub fn gate_timeout(mut self, timeout: Duration) -> Builder {
        self.gate.gate_timeout = timeout;
        self
    }

    /// Sets the maximum number of requests in flight at which the application still counts as quiet. A server under
    /// constant load always has more: set what is usual for it. Default: 2, as in Google's tti-polyfill.
    pub fn max_in_flight(mut self, requests: usize) -> Builder {
        self.gate.max_in_flight = requests;
        self
    }

    /// Sets how long the application must have been quiet again before each idle start after the gate has opened. While
    /// there was a long task, or were too many requests in flight, within this time, the next idle start is held, for
    /// at most [`max_hold`](Builder::max_hold). Each hold is in the report. Running tasks are not affected. 0 disables
    /// holds. Default: 500 ms, the quiet period Chromium uses while a page loads.
    pub fn resume_quiet(mut self, quiet: Duration) -> Builder {
        self.gate.resume_quiet = quiet;
        self
    }

    /// Limits two delays of idle tasks once the gate is open. A busy application can hold one idle start for at most
    /// this long. And where normal tasks have occupied every slot for this long, the governor demands the first idle
    /// task itself, one at a time, and marks it in the report. Default: 5 s.
    pub fn max_hold(mut self, hold: Duration) -> Builder {
        self.gate.max_hold = hold;
        self
    }

    /// Samples observed futures from a dedicated thread while an idle task waits. The sampler also sees the future in
    /// `block_on`, which no worker runs, and a poll that has not returned yet. Default: off, because it costs a thread;
    /// it sees nothing under a paused clock. See [`Governor::observe`].
    pub fn sampler(mut self) -> Builder {
        self.samples = true;
        self
    }

    /// Records when each task was polled and for how long, for the HTML page and for
    /// [`Report::replay`](crate::Report::replay). Keeps up to 64 segments per task, then merges neighbours; up to 3 KB
    /// per task. Default: off.
    pub fn record_segments(mut self) -> Builder {
        self.segments = true;
        self
    }

    /// Sets how long one governed poll may block the lane on a multi_thread runtime. After that a warning names the
    /// task, the task gives up its slot, and another lane continues on a thread of the blocking pool until the poll
    /// returns. If the pool has no thread, the other tasks wait for the poll, and the report records it. On a
    /// current_thread runtime nothing can run meanwhile, so the warning comes when the poll returns. At least 10 ms.
    /// Default: 1 s of real time.
    pub fn stuck_after(mut self, limit: Duration) -> Builder {
        self.stuck_after = limit;
        self
    }

    /// Returns the governor. Nothing is spawned before the first task is declared.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] that lists every invalid field with its value and the allowed values, or that no
    /// runtime was found.
    ///
    /// # Panics
    /// Does not panic itself. On a runtime without timers the first wait panics inside tokio ("enable_time").
    pub fn build(self) -> Result<Governor, ConfigError> {
        let Builder {
            name,
            mut profile,
            gate,
            monkey,
            seed,
            runtime,
            signals,
            overrides,
            stuck_after,
            segments,
            samples,
        } = self;
        if monkey.is_some() {
            profile.monkey = monkey;
        }
        let mut problems = Vec::new();
        for Override { origin, text } in overrides {
            let set = text.and_then(|text| profile.set(&text).map_err(|error| error.within(&origin)));
            problems.extend(set.err());
        }
        problems.extend(plan::check(&name, &profile, &gate, stuck_after).err());
        let runtime = runtime.map_or_else(Handle::try_current, Ok);
        if runtime.is_err() {
            problems.push(ConfigError::no_runtime());
        }
        ConfigError::all(problems)?;
        let Ok(runtime) = runtime else { return Err(ConfigError::no_runtime()) };
        let seed = seed.unwrap_or_else(random_seed);
        let limits = Limits { stuck_after, samples };
        let mut core = Core::new(profile, gate, seed);
        if segments {
            core.record_segments();
        }
        Ok(Governor::new(Arc::new(Shared::new(name, runtime, core, signals, limits, start))))
    }
}

/// Without a source of randomness the seed is fixed: a boot must not fail for that, and the report shows the seed.
fn random_seed() -> u64 {
    SysRng.try_next_u64().unwrap_or(0)
}
